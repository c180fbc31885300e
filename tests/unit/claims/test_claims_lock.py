"""claims.lock: entries that are only appended, one claim a line, and what is said of later ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy import layout
from restudy.claims import Claim
from restudy.claims.amended import SAME, UNSEEN, notes_since
from restudy.claims.lock import Compared, Entry, decision_hash, entry_in_force
from restudy.claims.lock_file import entry_text, freeze, lock_text, read_lock
from restudy.errors import ConfigError

from .claims_material import claim

# The entries of each study as they were when each was written; later ones may follow.
IDS = {
    "batch_norm": ["4b75a4cff3a80bc2"],
    "batch_size": ["76dbeaa2fbfe4168", "0e4151f020abbc3a", "538f0bb828300a4a"],
    "counterfactual_infill": ["bd676d841455d2af"],
    "head_pruning": ["2fd23901e52196e3", "d15c294d24915728"],
    "importance_weighting": ["33b3b72c94a6d74a"],
    "neural_ode": ["ade740cdfbe40389"],
    "rao_blackwell": ["941eb871d1141c34", "a6a25dc589cee95b"],
    "relevance_evaluation": ["b3dd2028c9f3dedc"],
    "saliency_sanity": ["88a1ef8122b3b278"],
}
CLAIMS = [
    claim(id="A", statistic="gap", control="two_nets", primary=True),
    claim(id="B", statistic="other"),
    claim("exact", id="C", statistic="zero", tolerance=1e-6),
]


def frozen(path: Path, claims: list[Claim] | None = None, **options: Any) -> Entry:
    known: dict[str, Any] = {"code": "c0de", "seeds": range(5), "reason": "before the run", "date": "2025-01-01"}
    return freeze(path, CLAIMS if claims is None else claims, **(known | options))


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "claims.lock"


def test_it_is_appended_and_remembers(lock: Path) -> None:
    first = frozen(lock)
    assert entry_in_force(read_lock(lock), CLAIMS, "c0de") == first
    reworded = [CLAIMS[0].model_copy(update={"says": "other words"}), *CLAIMS[1:]]
    assert decision_hash(reworded) == decision_hash(CLAIMS)
    with pytest.raises(ConfigError, match="nothing changed"):
        frozen(lock, reworded, reason="again")
    changed = [CLAIMS[0].model_copy(update={"sesoi": 0.05}), *CLAIMS[1:]]
    assert entry_in_force(read_lock(lock), changed, "c0de") is None
    before = lock.read_text(encoding="utf-8")
    frozen(lock, changed, reason="too strict", date="2025-01-03")
    assert lock.read_text(encoding="utf-8").startswith(before)
    notes = notes_since(read_lock(lock), first.id, changed)
    assert notes == {"A": ["amended after results (2025-01-03): sesoi: 0.5 -> 0.05"]}
    lock.write_text(lock.read_text(encoding="utf-8").replace("before the run", "whenever"), encoding="utf-8")
    with pytest.raises(ConfigError, match="changed or removed"):
        read_lock(lock)


@pytest.mark.parametrize(("options", "word"), [({"reason": " "}, "reason"), ({"seeds": [1, 2]}, "seeds")])
def test_what_is_not_a_freeze_is_refused(lock: Path, options: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        frozen(lock, **options)
    assert not lock.exists()


def test_later_entries_list_what_changed(lock: Path) -> None:
    frozen(lock)
    changed = [CLAIMS[1].model_copy(update={"sesoi": 0.05}), CLAIMS[2], claim(id="D", statistic="new")]
    last = frozen(lock, changed, reason="A is gone, D is new")
    text = lock.read_text(encoding="utf-8").partition("A is gone")[2]
    assert [line.split(":")[0].strip() for line in text.splitlines()[3:]] == ["removed", "changed", "B", "D"]
    assert "removed: [A]" in text
    assert read_lock(lock)[1] == last and list(last.claims) == ["B", "C", "D"]


def test_claims_are_one_a_line(lock: Path) -> None:
    frozen(lock)
    frozen(lock, code="c0de2", reason="a mended statistic")
    lines = lock.read_text(encoding="utf-8").splitlines()
    assert "    A: {kind: direction, statistic: gap, control: two_nets, sesoi: 0.5, " in lock.read_text(
        encoding="utf-8"
    )
    assert sum(line.startswith("    ") for line in lines) == len(CLAIMS) and lines[-1] == "  changed: {}"


def test_a_lock_that_lists_every_claim_in_full_is_read_too(lock: Path) -> None:
    entries = [frozen(lock), frozen(lock, CLAIMS[1:], reason="A is gone"), frozen(lock, code="new")]
    lock.write_text(yaml.safe_dump([entry.plain() for entry in entries], sort_keys=False), encoding="utf-8")
    assert read_lock(lock) == entries
    lock.write_text(lock_text(entries), encoding="utf-8")
    assert read_lock(lock) == entries


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("claims:", "changed:", "not a claims lock: 'claims'"),
        ("- previous: ''", "- 3", "not a claims lock"),
        ("removed: [A]", "removed: [Z]", "Z was not there before"),
        ("removed: [A]", "removed: [B]", "entry 3: what stands before it was changed or removed"),
        ("changed: {}", "", "not a claims lock: 'changed'"),
    ],
)
def test_a_damaged_lock_is_refused_in_one_line(lock: Path, old: str, new: str, words: str) -> None:
    frozen(lock)
    frozen(lock, CLAIMS[1:], reason="A is gone")
    frozen(lock, CLAIMS[1:], code="new")
    text = lock.read_text(encoding="utf-8")
    assert old in text
    lock.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        read_lock(lock)
    assert words in str(caught.value) and "\n" not in str(caught.value)


names = st.text("aN01.~ _-:#'\"{}[],&*!|>%@é", min_size=1, max_size=9)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.dictionaries(names, st.dictionaries(names, plain, max_size=3), max_size=4), max_size=4), st.text())
def test_any_content_comes_back(tmp_path_factory: pytest.TempPathFactory, contents: Any, reason: str) -> None:
    entries: list[Entry] = []
    for content in contents:
        previous = entries[-1].id if entries else ""
        entries.append(Entry("2025-01-01", reason, "c0de", (0, 1), content, previous))
    path = tmp_path_factory.getbasetemp() / "any.lock"
    path.write_text(lock_text(entries), encoding="utf-8")
    assert [entry.plain() for entry in read_lock(path)] == [entry.plain() for entry in entries]
    for entry in entries:
        assert len(entry_text(entry, None).split("\n")) == 5 + 1 + len(entry.claims) + 1


@pytest.mark.parametrize("slug", sorted(IDS))
def test_the_entries_of_the_first_studies_keep_their_ids(slug: str) -> None:
    path = layout.STUDIES / slug / "claims.lock"
    entries = read_lock(path)
    assert [entry.id for entry in entries][: len(IDS[slug])] == IDS[slug]
    assert lock_text(entries) == path.read_text(encoding="utf-8")


def test_moved_code_with_the_same_numbers_is_no_amendment(lock: Path) -> None:
    first = frozen(lock)
    compared = Compared(("laptop", "smoke"), 2, ("other",))
    moved = frozen(lock, code="moved", reason="shared modules", compare=lambda _: compared)
    assert "  same_numbers: true\n  compared: {presets: [laptop, smoke], statistics: 2, without: [other]}\n" in (
        lock.read_text(encoding="utf-8")
    )
    entries = read_lock(lock)
    assert entries == [first, moved] and entries[1].compared == compared
    assert notes_since(entries, first.id, CLAIMS) == {"A": [SAME], "B": [UNSEEN], "C": [SAME]}
    assert notes_since(entries, moved.id, CLAIMS) == {}
    stricter = [CLAIMS[0].model_copy(update={"sesoi": 0.9}), *CLAIMS[1:]]
    frozen(lock, stricter, code="moved", reason="stricter")
    notes = notes_since(read_lock(lock), first.id, stricter)
    assert notes["A"] == ["amended after results (2025-01-01): sesoi: 0.5 -> 0.9", SAME] and notes["C"] == [SAME]


def test_an_amendment_of_the_code_stays_one_whatever_follows(lock: Path) -> None:
    first = frozen(lock)
    frozen(lock, code="other", reason="a mended statistic")
    frozen(lock, code="moved", reason="shared modules", compare=lambda _: Compared(("laptop",), 3))
    notes = notes_since(read_lock(lock), first.id, CLAIMS)
    assert notes == {name: ["amended after results (2025-01-01): statistics: c0de -> moved"] for name in "ABC"}


@pytest.mark.parametrize(
    ("claims", "options", "words"),
    [
        ([CLAIMS[0].model_copy(update={"sesoi": 0.9}), *CLAIMS[1:]], {}, "claim A: sesoi: 0.5 -> 0.9"),
        (CLAIMS[1:], {}, "claim A: removed"),
        (CLAIMS, {"seeds": range(6)}, "seeds: 5 -> 6"),
    ],
)
def test_same_numbers_allows_no_other_change(lock: Path, claims: Any, options: Any, words: str) -> None:
    frozen(lock)
    before = lock.read_bytes()
    with pytest.raises(ConfigError, match="more than the code differs") as caught:
        frozen(lock, claims, code="moved", compare=lambda _: Compared(("laptop",), 3), **options)
    assert words in str(caught.value) and lock.read_bytes() == before


def test_same_numbers_needs_an_entry_before(lock: Path) -> None:
    with pytest.raises(ConfigError, match="nothing is frozen yet"):
        frozen(lock, compare=lambda _: Compared(("laptop",), 3))

"""Code that moved is frozen again without an amendment only where all stored results give the same numbers."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.conftest import Project

from restudy.bench.same_numbers import differences
from restudy.claims.lock_file import read_lock
from restudy.results.tables import table_bytes

SAME = ("claims", "freeze", "toy", "--reason", "shared readers", "--same-numbers")


MOVED = ('partial(mean, "steps", metric="steps")', 'partial(mean, "steps", "value", metric="steps")')
HALVED = ('log_steps(method="plain") -', '0.5 * log_steps(method="plain") -')


def steps(seeds: int) -> pa.Table:
    rows = [
        {
            "seed": s,
            "instance": i,
            "method": m,
            "metric": metric,
            "value": math.log(n) if metric[0] == "l" else float(n),
        }
        for s in range(seeds)
        for i in range(2)
        for m, add in (("plain", 30), ("momentum", 3), ("zero", 30))
        for metric, n in (("steps", 10 * (s + 1) + i + add), ("log_steps", 10 * (s + 1) + i + add))
    ]
    return pa.Table.from_pylist(rows)


@pytest.fixture
def project(empty: Project) -> Project:
    """A repository with one study, frozen and committed, and results at two presets."""
    empty.restudy("new", "toy")
    empty.restudy("claims", "freeze", "toy", "--reason", "before the run")
    (empty.root / ".gitignore").write_text("__pycache__/\nresults/\n")
    empty.run("git", "init", "-q")
    commit(empty)
    for preset, seeds in (("smoke", 1), ("laptop", 5)):
        path = empty.root / "results" / preset / "toy" / "steps.parquet"
        path.parent.mkdir(parents=True)
        path.write_bytes(table_bytes(steps(seeds)))
    return empty


def commit(project: Project) -> None:
    project.run("git", "add", "-A")
    project.run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a change")


def edit(project: Project, old: str, new: str, name: str = "statistics.py") -> None:
    path = project.study("toy") / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def refused(project: Project, *more: str) -> str:
    """The one line with which freezing is refused; the lock stays as it is."""
    lock = project.study("toy") / "claims.lock"
    before = lock.read_bytes()
    said = project.restudy(*SAME, *more, code=1)
    assert said.count("\n") == 1 and lock.read_bytes() == before
    return said


def test_moved_code_with_the_same_numbers_is_frozen(project: Project) -> None:
    edit(project, *MOVED)
    commit(project)
    said = project.restudy(*SAME)
    assert "2 statistics give the same numbers on the results of laptop, smoke" in said
    first, last = read_lock(project.study("toy") / "claims.lock")
    assert last.compared and last.compared.plain() == {"presets": ["laptop", "smoke"], "statistics": 2}
    assert last.previous == first.id and last.claims == first.claims and last.code != first.code
    assert "nothing changed" in refused(project)
    assert rows_flags(project) == {"Q1": ["code moved, numbers unchanged"], "Q2": ["code moved, numbers unchanged"]}


def rows_flags(project: Project) -> dict[str, list[str]]:
    """The flags of verdict rows on results that were computed under the first entry."""
    code = "\n".join(
        [
            "import json",
            "from pathlib import Path",
            "from restudy.bench.judging import judge",
            "from restudy.results.tables import read_table",
            "tables = {'steps': read_table(Path('results/laptop/toy/steps.parquet'))}",
            "rows = judge('toy', 'laptop', tables, recorded=1).verdicts",
            "print(json.dumps({row.claim: [f for f in row.flags if f != 'fragile'] for row in rows}))",
        ]
    )
    found: dict[str, list[str]] = json.loads(project.run(sys.executable, "-c", code))
    return found


def test_other_numbers_are_refused_with_both_values(project: Project) -> None:
    edit(project, *HALVED)
    said = refused(project)
    assert "statistic plain_minus_momentum_log_steps, preset laptop, replicate 0, value: frozen code gives 1." in said
    assert "present code -0.7" in said and "amendment" in said


def test_an_edited_revision_is_not_taken_for_the_frozen_code(project: Project) -> None:
    edit(project, "zero_momentum_deviation = steps", "zero_momentum_deviation = 1 * steps")
    commit(project)
    edit(project, *MOVED)
    assert "HEAD does not hold the statistics frozen as" in refused(project, "--against", "HEAD")
    assert "not a valid object name" in refused(project, "--against", "nowhere")
    assert "numbers differ" not in refused(project, "--against", "HEAD")
    assert "2 statistics" in project.restudy(*SAME)  # the history holds the frozen code


def test_code_frozen_but_never_committed_is_said(project: Project) -> None:
    edit(project, "zero_momentum_deviation = steps", "zero_momentum_deviation = 1 * steps")
    project.restudy("claims", "freeze", "toy", "--reason", "a factor")
    edit(project, *MOVED)
    assert "no commit that touched toy/claims.lock holds the statistics frozen as" in refused(project)


def test_changed_decisions_are_refused_before_anything_runs(project: Project) -> None:
    edit(project, *MOVED)
    edit(project, "tolerance: 1.0e-12", "tolerance: 1.0e-11", "claims.yaml")
    assert "more than the code differs" in refused(project) and "tolerance: 1e-12 -> 1e-11" in refused(project)


def test_without_results_there_is_nothing_to_show(project: Project) -> None:
    edit(project, *MOVED)
    for path in project.root.glob("results/*/toy/steps.parquet"):
        path.unlink()
    assert "no stored results to compare on" in refused(project)


def test_against_needs_same_numbers(project: Project) -> None:
    said = project.restudy("claims", "freeze", "toy", "--reason", "x", "--against", "HEAD", code=2)
    assert "--against goes with --same-numbers" in said


def computed(**columns: Any) -> dict[str, Any]:
    return {"laptop": {"s": {"replicate": [0, 1, 2], "value": [1.0, math.nan, 3.0]} | columns}}


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"value": [1.0 + 2e-13, math.nan, 3.0]},
        {"replicate": [2, 0, 1], "value": [3.0, 1.0, math.nan]},
    ],
)
def test_rounding_order_and_nan_are_no_difference(columns: dict[str, Any]) -> None:
    assert list(differences(computed(), computed(**columns))) == []


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (
            {"value": [1.0 + 2e-12, math.nan, 3.0]},
            "replicate 0, value: frozen code gives 1.0, present code 1.000000000002",
        ),
        ({"value": [1.0, 2.0, 3.0]}, "replicate 1, value: frozen code gives nan, present code 2.0"),
        ({"replicate": [0, 1, 7]}, "replicate 2: frozen code gives 1 rows, present code 0"),
        ({"replicate": [0, 1], "value": [1.0, math.nan]}, "replicate 2: frozen code gives 1 rows, present code 0"),
        (
            {"group": ["a", "a", "b"]},
            "columns: frozen code gives replicate, value, present code group, replicate, value",
        ),
    ],
)
def test_differences_name_the_place(columns: dict[str, Any], words: str) -> None:
    assert next(differences(computed(), computed(**columns))) == f"statistic s, preset laptop, {words}"


def test_renamed_replicates_keep_their_numbers() -> None:
    named = computed(replicate=["a", "b", "c"])
    assert not list(differences(computed(), named))
    other = computed(replicate=["a", "b", "c"], value=[3.0, math.nan, 1.0])
    assert len(list(differences(computed(), other))) == 2


def test_levels_are_compared_by_replicate_and_level() -> None:
    one = {"laptop": {"s": {"replicate": [0, 0], "x": [1.0, 2.0], "value": [5.0, 6.0]}}}
    turned = {"laptop": {"s": {"replicate": [0, 0], "x": [2.0, 1.0], "value": [6.0, 5.0]}}}
    other = {"laptop": {"s": {"replicate": [0, 0], "x": [1.0, 2.0], "value": [6.0, 5.0]}}}
    assert not list(differences(one, turned)) and len(list(differences(one, other))) == 2


def test_a_statistic_that_only_one_code_computes_differs() -> None:
    failed = {"laptop": {"s": "KeyError: 'steps'"}}
    nothing = {"laptop": {"s": {"replicate": [0], "value": [math.nan]}}}
    assert not list(differences(failed, failed)) and not list(differences(failed, nothing))
    assert list(differences(computed(), failed)) == [
        "statistic s, preset laptop: frozen code gives a table, present code `KeyError: 'steps'`"
    ]


def test_a_tree_is_asked_for_its_own_statistics(project: Project, tmp_path: Path) -> None:
    from restudy.bench.numbers import code_hash, numbers

    source, folder = project.root / "src", project.root / "results" / "laptop" / "toy"
    found = numbers(source, "toy", ["zero_momentum_deviation", "absent"], {"laptop": folder})["laptop"]
    assert found["zero_momentum_deviation"] == {"replicate": [0, 1, 2, 3, 4], "value": [0.0] * 5}
    assert found["absent"].startswith("AttributeError")
    assert code_hash(source, "toy") == read_lock(project.study("toy") / "claims.lock")[-1].code

"""What every study's claims must do on hand-made results: hold where their effects are, and nowhere else."""

from __future__ import annotations

from functools import cache

from restudy.bench.judging import claims_of, statistics_of
from restudy.bench.planting import nulls_of
from restudy.claims import Claim
from restudy.claims.statistics import lookup
from restudy.tables import Tables, levels, where
from tests.examples import example, home, judged, tables, verdict

NO_VERDICT = ("inconclusive", "error")


class Recorded(dict):  # type: ignore[type-arg]
    """Tables that remember which of them were asked for."""

    def __init__(self, given: Tables) -> None:
        super().__init__(given)
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> object:
        self.seen.add(name)
        return super().__getitem__(name)


@cache
def reads(slug: str, claim: Claim) -> frozenset[str]:
    """The tables that a claim's statistics, controls and gates read."""
    given = Recorded(tables(slug, claim.id))
    statements = (claim, *claim.parts)
    names = {name for one in statements for name in (one.statistic, one.control) if name is not None}
    for name in names | {gate.statistic for gate in claim.gate}:
        function = lookup(statistics_of(slug), name)
        assert function is not None
        function(given)
    return frozenset(given.seen)


def test_every_claim_holds_where_its_effect_is(slug: str) -> None:
    wanted = [claim for claim in claims_of(slug) if claim.kind != "qualitative"]
    apart = getattr(example(slug), "HOLDS_ON", {})
    said = {}
    for preset in {home(claim) for claim in wanted}:
        found = judged(slug, tables(slug), preset, [claim.id for claim in wanted if home(claim) == preset])
        said |= {one.claim: one for one in found.verdicts}
    said |= {name: verdict(slug, name, tables(slug, name)) for name in apart}
    assert {name: found.text for name, found in said.items()} == dict.fromkeys(said, "reproduced")
    for name in apart:
        assert verdict(slug, name, tables(slug)).verdict != "reproduced", f"{name} needs no tables of its own"


def test_no_claim_holds_on_its_planted_null(slug: str, claim_with_null: str) -> None:
    found = verdict(slug, claim_with_null, nulls_of(slug)[claim_with_null](tables(slug, claim_with_null)))
    assert found.verdict != "reproduced", found.text
    refused = getattr(example(slug), "NULL_IS_REFUSED", {})
    assert (found.verdict == "error") == (claim_with_null in refused), found.text


def test_smoke_judges_what_chance_has_no_part_in(slug: str) -> None:
    said = {v.claim: v.verdict for v in judged(slug, tables(slug), "smoke").verdicts}
    here = {c.id for c in claims_of(slug) if "smoke" in c.presets and not c.statistical and c.kind != "qualitative"}
    assert {name for name, word in said.items() if word != "not testable"} == here


def test_missing_results_give_no_verdict(slug: str, primary: str) -> None:
    """A seed missing from a table, the table empty, the table absent: one line, and neither yes nor no."""
    claim = next(one for one in claims_of(slug) if one.id == primary)
    whole = tables(slug, primary)
    spared = getattr(example(slug), "SPARED", {})
    for name in sorted(reads(slug, claim)):
        table = whole[name]
        worse = {"empty": {**whole, name: table.slice(0, 0)}}
        worse["absent"] = {key: content for key, content in whole.items() if key != name}
        if "seed" in table.column_names:
            worse["a seed missing"] = {**whole, name: where(table, seed=tuple(levels(table)[:-1]))}
        for how, given in worse.items():
            found = verdict(slug, primary, given)
            assert "\n" not in found.reason
            if (primary, name) not in spared or how == "absent":
                assert found.verdict in NO_VERDICT, f"{name} {how}: {found.text}"
    for name in [table for claim_id, table in spared if claim_id == primary]:
        lacking = {**whole, name: where(whole[name], seed=tuple(levels(whole[name])[:-1]))}
        assert verdict(slug, primary, lacking).verdict not in NO_VERDICT, f"{name} need not be spared"
    lacking = {n: where(t, seed=tuple(levels(t)[:-1])) if "seed" in t.column_names else t for n, t in whole.items()}
    assert verdict(slug, primary, lacking).verdict == "inconclusive", "a seed is missing everywhere"


def test_exceptions_name_claims(slug: str) -> None:
    ids = {claim.id for claim in claims_of(slug)}
    for name in ("HOLDS_ON", "NULL_IS_REFUSED"):
        assert set(getattr(example(slug), name, {})) <= ids, name
    assert {claim for claim, _ in getattr(example(slug), "SPARED", {})} <= ids


def test_examples_have_the_seeds_that_they_say(slug: str) -> None:
    for name, table in tables(slug).items():
        if "seed" in table.column_names:
            assert levels(table) == list(range(example(slug).SEEDS)), name

"""Checks of the engine, each a function that raises AssertionError when the engine is wrong.

They run against the real engine in test_claims_simulations.py and test_claims_golden.py, and once more
against an engine that was broken on purpose in test_claims_mutations.py.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import lru_cache

import numpy as np
import pyarrow as pa
from scipy import stats

from restudy.claims import judge, judge_study

from .claims_material import GOOD, arms, claim, levels, study, table, verdict

NEAR_ZERO = 1e-9


def words(effect: float, sesoi: float, runs: int, seed: int, n: int = 5) -> Counter[str]:
    """Verdicts over simulated studies of one claim: effects normal with s.d. 1."""
    draws = np.random.default_rng(seed).normal(effect, 1.0, size=(runs, n))
    replicate = np.arange(n)
    c = claim(sesoi=sesoi)
    return Counter(judge(c, pa.table({"replicate": replicate, "value": row})).verdict for row in draws)


def null_is_not_reproduced() -> None:
    assert words(0.0, 1.0, 3000, 1)["reproduced"] / 3000 <= 0.03


def large_effect_is_reproduced() -> None:
    assert words(2.0, 1.0, 3000, 2)["reproduced"] / 3000 >= 0.90


def reversed_effect_is_not_reproduced() -> None:
    assert words(-1.0, 1.0, 3000, 3)["not reproduced"] / 3000 >= 0.95


def level_is_five_percent() -> None:
    runs = 20_000
    assert 0.045 <= words(0.0, NEAR_ZERO, runs, 4)["reproduced"] / runs <= 0.055


@lru_cache(maxsize=1)
def _four_nulls() -> np.ndarray:
    return np.random.default_rng(5).normal(0.0, 1.0, size=(2500, 4, 5))


def any_of_four(draws: np.ndarray) -> float:
    """Share of studies with four null claims of which at least one comes out reproduced."""
    claims = [claim(id=f"N{i}", statistic=f"s{i}", sesoi=NEAR_ZERO, primary=True) for i in range(4)]
    hits = 0
    for rows in draws:
        result = study({f"s{i}": rows[i] for i in range(4)}, claims)
        hits += any(v.verdict == "reproduced" for v in result.verdicts)
    return hits / len(draws)


def family_is_six_percent_at_most() -> None:
    assert any_of_four(_four_nulls()) <= 0.06


def extension_is_six_percent_at_most() -> None:
    runs = 4000
    draws = np.random.default_rng(6).normal(0.0, 1.0, size=(runs, 10))
    c = claim(sesoi=NEAR_ZERO, primary=True)
    seeds = np.arange(10)
    hits = 0
    for row in draws:
        tables = {"r": pa.table({"seed": seeds, "value": row})}
        result = judge_study([c], tables, STATISTICS, preset="laptop", seeds=5, extension=10, look=2)
        hits += result.verdicts[0].verdict == "reproduced"
    assert hits / runs <= 0.06, hits / runs


def _from_seeds(tables: dict[str, pa.Table]) -> pa.Table:
    return pa.table({"replicate": tables["r"]["seed"], "value": tables["r"]["value"]})


STATISTICS = {"effect": _from_seeds}


def agrees_with_scipy() -> None:
    """Paired, Welch and one-sample bounds and p values equal SciPy's to 1e-10, on random data."""
    rng = np.random.default_rng(7)
    for n in (5, 6, 9, 14):
        a, b = rng.normal(1, 2, n), rng.normal(0.5, 1, n)
        got = judge(claim(reference="old"), arms(a, b))
        want = stats.ttest_rel(a, b, alternative="greater")
        _close(got.p_value, want.pvalue)
        ends = stats.ttest_rel(a, b).confidence_interval(0.90)
        _close(got.ci_low, ends.low)
        _close(got.ci_high, ends.high)
        c = rng.normal(0, 3, n + 3)
        got = judge(claim(reference="old", paired=False), arms(a, c))
        want = stats.ttest_ind(a, c, equal_var=False, alternative="greater")
        _close(got.p_value, want.pvalue)
        ends = stats.ttest_ind(a, c, equal_var=False).confidence_interval(0.90)
        _close(got.ci_low, ends.low)
        _close(got.ci_high, ends.high)


def holm_agrees_with_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(10)
    for n in (1, 2, 4, 7):
        p = rng.uniform(0, 0.2, n)
        got = sys.modules["restudy.claims.holm"].adjust(list(p))
        for mine, theirs in zip(got, multipletests(p, method="holm")[1], strict=True):
            _close(mine, theirs)


def _close(got: float | None, want: float) -> None:
    assert got is not None and abs(got - want) <= 1e-10, (got, want)


def pairing_counts() -> None:
    """A small constant gain over a reference that varies much between seeds."""
    old = np.array([0.0, 10.0, 20.0, 30.0, 40.0])
    assert judge(claim(reference="old", sesoi=0.5), arms(old + GOOD, old)).verdict == "reproduced"


def nan_is_not_dropped() -> None:
    v = verdict([*GOOD, np.nan])
    assert (v.verdict, v.reason, v.n, v.n_failed) == ("inconclusive", "1 of 6 failed", 6, 1)


def missing_seed_is_a_failed_one() -> None:
    v = study({"effect": table(GOOD, replicate=[0, 1, 2, 4, 5])}, [claim()], seeds=6).verdicts[0]
    assert (v.verdict, v.reason) == ("inconclusive", "1 of 6 failed")


def four_seeds_decide_nothing() -> None:
    v = verdict(GOOD[:4])
    assert (v.verdict, v.reason) == ("inconclusive", "n < 5")


def identical_replicates_are_an_error() -> None:
    v = verdict([1.0] * 5)
    assert v.verdict == "error" and "seed" in v.reason


def negligible_comes_before_partially() -> None:
    v = verdict(np.array(GOOD) / 10, sesoi=0.5)
    assert (v.verdict, v.reason) == ("not reproduced", "negligible")


def too_small_an_estimate_is_partial() -> None:
    v = verdict([0.3, 0.9, 0.1, 0.5, 0.2], sesoi=0.5)
    assert (v.verdict, v.reason) == ("partially", "magnitude")


def wide_interval_is_inconclusive() -> None:
    v = verdict([3.0, -2.0, 2.5, -1.0, 3.0])
    assert (v.verdict, v.reason) == ("inconclusive", "width") and v.seeds_needed > 5


def margin_decides_equivalence() -> None:
    values = [0.05, -0.02, 0.01, 0.03, -0.04]
    assert verdict(values, "no_difference", margin=0.2).verdict == "reproduced"
    assert verdict(values, "no_difference", margin=0.02).verdict == "inconclusive"
    shifted = verdict(np.array(values) + 0.5, "no_difference", margin=0.2)
    assert (shifted.verdict, shifted.reason) == ("not reproduced", "contradicted")


def margin_decides_non_inferiority() -> None:
    values = np.array([-0.05, -0.03, -0.04, -0.06, -0.02])
    assert verdict(values, "non_inferiority", margin=0.1).verdict == "reproduced"
    assert verdict(values, "non_inferiority", margin=0.01).verdict == "not reproduced"


def threshold_has_a_side() -> None:
    values = np.array(GOOD) - 1.0 + 0.1  # mean .1, s.d. .158
    below = verdict(values, "threshold", bound=0.5, side="below")
    above = verdict(values, "threshold", bound=0.5, side="above")
    assert (below.verdict, above.verdict) == ("reproduced", "not reproduced")


def failed_gate_stops_the_claim() -> None:
    gate = [{"statistic": "accuracy", "op": ">=", "value": 0.8}]
    c = claim(gate=gate, primary=True)
    v = study({"effect": GOOD, "accuracy": [0.7] * 5}, [c]).verdicts[0]
    assert (v.verdict, v.reason) == ("inconclusive", "gate") and "failed" in v.gate
    assert v.p_holm == 1.0
    assert study({"effect": GOOD, "accuracy": [0.9] * 5}, [c]).verdicts[0].verdict == "reproduced"


def control_that_shows_the_effect_stops_the_claim() -> None:
    v = judge(claim(control="untrained"), table(GOOD), table(GOOD))
    assert (v.verdict, v.reason, v.control_verdict) == ("inconclusive", "control", "reproduced")


def undecided_control_caps_the_claim() -> None:
    v = judge(claim(control="untrained"), table(GOOD), table([3.0, -2.0, 2.5, -1.0, 3.0]))
    assert (v.verdict, v.reason) == ("partially", "control undecided")


def all_pairs_must_hold() -> None:
    rng = np.random.default_rng(8)
    noise = rng.normal(0, 0.1, size=(5, 3))
    names = ("a", "b", "c")
    c = claim("ordering", order=["a", "b", "c"])
    assert judge(c, levels(noise + [2.0, 1.0, 0.0], names)).verdict == "reproduced"
    assert judge(c, levels(noise + [2.0, 1.0, 1.0], names)).verdict == "not reproduced"


def holm_is_applied_to_the_primary_family() -> None:
    """p = .03 alone holds; beside three nulls it does not."""
    weak = [0.1, 1.9, 0.6, 1.4, 0.55]  # p = .015
    claims = [claim(id=f"P{i}", statistic=f"s{i}", primary=True) for i in range(4)]
    nulls = {f"s{i}": [0.5, -0.6, 0.4, -0.5, 0.3 + i / 10] for i in (1, 2, 3)}
    result = study({"s0": weak, **nulls}, claims)
    assert (result["P0"].verdict, result["P0"].reason) == ("partially", "family-wise error")
    assert study({"s0": weak}, claims[:1])["P0"].verdict == "reproduced"


def equivalence_agrees_with_statsmodels() -> None:
    """TOST against statsmodels' ``ttost_paired`` to 1e-10, on random data."""
    from statsmodels.stats.weightstats import ttost_paired

    rng = np.random.default_rng(9)
    for n in (5, 8, 13):
        for shift in (-1.0, 0.0, 1.0):
            a, b = rng.normal(0, 1, n), rng.normal(shift, 1, n)
            got = judge(claim("no_difference", margin=0.8, reference="old"), arms(a, b))
            _close(got.p_value, float(np.asarray(ttost_paired(a, b, -0.8, 0.8)[0])))

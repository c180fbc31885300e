"""Golden cases: what must come out of hand-made replicates, and what must be refused."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from restudy.claims import judge, judge_study
from restudy.errors import ClaimError

from . import engine_checks as checks
from .claims_material import GOOD, arms, claim, levels, study, table, verdict

CHECKS = [
    checks.agrees_with_scipy,
    checks.equivalence_agrees_with_statsmodels,
    checks.holm_agrees_with_statsmodels,
    checks.pairing_counts,
    checks.nan_is_not_dropped,
    checks.missing_seed_is_a_failed_one,
    checks.four_seeds_decide_nothing,
    checks.identical_replicates_are_an_error,
    checks.negligible_comes_before_partially,
    checks.too_small_an_estimate_is_partial,
    checks.wide_interval_is_inconclusive,
    checks.margin_decides_equivalence,
    checks.margin_decides_non_inferiority,
    checks.threshold_has_a_side,
    checks.failed_gate_stops_the_claim,
    checks.control_that_shows_the_effect_stops_the_claim,
    checks.undecided_control_caps_the_claim,
    checks.all_pairs_must_hold,
    checks.holm_is_applied_to_the_primary_family,
]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_check(check) -> None:
    check()


def test_clear_effect_is_reproduced() -> None:
    v = verdict(GOOD)
    assert (v.verdict, v.reason, v.n, v.prob_superiority) == ("reproduced", "", 5, 1.0)
    assert v.leave_one_out == "5 reproduced" and v.p_sign_flip == 1 / 32 and v.flags == ()


def test_reversed_effect_is_contradicted() -> None:
    v = verdict(-np.array(GOOD))
    assert (v.verdict, v.reason) == ("not reproduced", "contradicted")


def test_three_seeds_print_their_bounds_and_decide_nothing() -> None:
    v = verdict(GOOD[:3])
    assert (v.verdict, v.reason) == ("inconclusive", "n < 5") and v.ci_low is not None and v.seeds_needed == 5


def test_one_seed_has_no_bounds() -> None:
    v = verdict(GOOD[:1])
    assert (v.verdict, v.estimate, v.ci_low, v.p_value) == ("inconclusive", 0.9, None, None)


def test_all_seeds_failed() -> None:
    v = verdict([np.nan] * 5)
    assert (v.verdict, v.reason, v.estimate) == ("inconclusive", "5 of 5 failed", None)


def test_effect_on_the_edge_is_large_enough() -> None:
    values = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert verdict(values, sesoi=0.3).verdict == "reproduced"
    assert (verdict(values, sesoi=0.301).verdict, verdict(values, sesoi=0.301).reason) == ("partially", "magnitude")


def test_fragile_where_leaving_one_out_changes_the_verdict() -> None:
    v = verdict([0.2, 0.4, 0.3, 0.5, 2.5], sesoi=0.1)
    assert "fragile" in v.flags


def test_nan_as_makes_failing_an_outcome() -> None:
    v = verdict([0.9, 1.1, 1.0, 1.2, np.nan], nan_as=0.8)
    assert (v.verdict, v.n_failed) == ("reproduced", 0)


def test_control_not_given_caps() -> None:
    v = judge(claim(control="untrained"), table(GOOD))
    assert v.verdict == "partially" and "control not judged" in v.flags


def test_control_that_fails_the_claim_passes() -> None:
    v = judge(claim(control="untrained"), table(GOOD), table(np.array(GOOD) - 1.0))
    assert (v.verdict, v.control_verdict) == ("reproduced", "not reproduced")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (pa.table({"replicate": [0, 1]}), ["value", "column"]),
        (pa.table({"value": [0.0, 1.0]}), ["replicate", "column"]),
        (table([1.0, 2.0], replicate=[3, 3]), ["replicate", "3", "twice"]),
        (table([]), ["empty"]),
        (table([1.0, np.inf]), ["value", "infinite"]),
        (pa.table({"replicate": [0, None], "value": [0.0, 1.0]}), ["replicate", "null"]),
        (pa.table({"replicate": [0, 1], "value": ["a", "b"]}), ["value", "number"]),
        ([1.0, 2.0], ["pyarrow", "list"]),
    ],
)
def test_bad_tables_are_refused_in_one_line(bad, words) -> None:
    with pytest.raises(ClaimError) as caught:
        judge(claim(), bad)
    message = str(caught.value)
    assert "\n" not in message and "claim X1" in message and ";" in message
    assert all(word in message for word in words), message


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"kind": "direction", "statistic": "f"}, ["sesoi"]),
        ({"kind": "direction", "sesoi": 1.0}, ["statistic"]),
        ({"kind": "no_difference", "statistic": "f", "margin": 0}, ["margin", "0"]),
        ({"kind": "no_difference", "statistic": "f", "margin": -1}, ["margin", "-1"]),
        ({"kind": "guess", "statistic": "f"}, ["kind", "guess", "direction"]),
        ({"kind": "direction", "statistic": "f", "sesoi": 1.0, "sesio": 2}, ["sesio", "unknown", "sesoi"]),
        ({"kind": "direction", "statistic": "f", "sesoi": float("inf")}, ["sesoi", "inf"]),
        ({"kind": "direction", "statistic": "f", "sesoi": True}, ["sesoi", "True"]),
        ({"kind": "direction", "statistic": "f", "sesoi": 1.0, "margin": 1.0}, ["margin", "direction"]),
        ({"kind": "threshold", "statistic": "f", "bound": 1.0}, ["side"]),
        ({"kind": "direction", "statistic": "f", "sesoi": 1.0, "unit": "item", "primary": True}, ["primary", "item"]),
        ({"kind": "direction", "statistic": "f", "sesoi": 1.0, "scale": "fisher_z"}, ["sesoi", "fisher_z"]),
        ({"kind": "threshold", "statistic": "f", "bound": 2, "side": "above", "scale": "logit"}, ["bound", "logit"]),
        ({"kind": "parts"}, ["parts"]),
        ({"kind": "value", "statistic": "f", "margin": 1, "paper": {"value": 3, "source": "recalled"}}, ["recalled"]),
        ({"kind": "value", "statistic": "f", "margin": 1, "presets": ["laptop"],
          "paper": {"value": 3, "source": "read"}}, ["presets", "scale_free"]),
    ],
)  # fmt: skip
def test_bad_claims_are_refused_in_one_line(fields, words) -> None:
    with pytest.raises(ClaimError) as caught:
        judge({"id": "X1", **fields}, table(GOOD))
    message = str(caught.value)
    assert "\n" not in message and "claim X1" in message
    assert all(word in message for word in words), message


def test_a_failing_statistic_is_an_error_and_the_others_go_on() -> None:
    def broken(tables):
        return tables["training"]

    claims = [claim(id="A", statistic="broken"), claim(id="B", statistic="nothing"), claim(id="C", statistic="fine")]
    result = judge_study(claims, {}, {"broken": broken, "fine": lambda t: table(GOOD)}, preset="laptop")
    assert [v.verdict for v in result.verdicts] == ["error", "error", "reproduced"]
    assert "KeyError" in result["A"].reason and "nothing" in result["B"].reason


# --- the other kinds ---------------------------------------------------------------------------------------


def test_ordering_without_order_takes_each_group_as_a_difference() -> None:
    rng = np.random.default_rng(0)
    good = levels(rng.normal(1, 0.1, (5, 2)), ["a-b", "b-c"])
    assert judge(claim("ordering"), good).verdict == "reproduced"
    bad = levels(rng.normal(1, 0.1, (5, 2)) * [1, -1], ["a-b", "b-c"])
    v = judge(claim("ordering"), bad)
    assert (v.verdict, v.reason) == ("not reproduced", "contradicted")


def test_ordering_p_is_the_largest() -> None:
    rng = np.random.default_rng(1)
    pairs = rng.normal(0.7, 0.5, (6, 3))
    v = judge(claim("ordering"), levels(pairs, ["p", "q", "r"]))
    single = [verdict(pairs[:, k]).p_value for k in range(3)]
    assert v.p_value == pytest.approx(max(single), abs=1e-15)


def test_trend_is_the_change_over_the_range() -> None:
    rng = np.random.default_rng(2)
    base = np.array([0.0, 0.4, 0.7, 1.2])
    rising = levels(base + rng.normal(0, 0.05, (5, 4)), [1.0, 10.0, 100.0, 1000.0], "x")
    v = judge(claim("trend", x_scale="log"), rising)
    assert v.verdict == "reproduced" and v.estimate == pytest.approx(1.2, abs=0.1)
    linear = judge(claim("trend", x_scale="log", shape="linear"), rising)
    assert linear.estimate == pytest.approx(1.2, abs=0.1)
    assert judge(claim("trend"), rising.take(np.arange(20)[::-1])).estimate == v.estimate


def test_trend_with_a_reversed_step_is_partial() -> None:
    rng = np.random.default_rng(3)
    bumpy = levels(np.array([0.0, 1.0, 0.5, 1.5]) + rng.normal(0, 0.03, (5, 4)), [1, 2, 3, 4], "x")
    v = judge(claim("trend"), bumpy)
    assert v.verdict == "partially" and "2 -> 3" in v.reason


def test_exact_compares_the_largest_deviation() -> None:
    v = verdict([0.0, 1e-9, -2e-9], "exact", tolerance=1e-8)
    assert (v.verdict, v.estimate, v.p_value) == ("reproduced", 2e-9, None)
    assert verdict([0.0, -2e-7], "exact", tolerance=1e-8).verdict == "not reproduced"
    assert verdict([0.0], "exact", tolerance=0).verdict == "reproduced"
    assert verdict([0.0, np.nan], "exact", tolerance=0).verdict == "inconclusive"


def test_qualitative_is_not_testable() -> None:
    assert verdict(GOOD, "qualitative").verdict == "not testable"


def test_value_counts_the_papers_own_draw() -> None:
    values = np.array([10.0, 10.2, 9.9, 10.1, 9.8])
    paper = {"value": 10.0, "source": "read"}
    v = verdict(values, "value", margin=0.5, paper=paper)
    half = 2.131846786 * values.std(ddof=1) * np.sqrt(1 + 1 / 5)
    assert v.verdict == "reproduced" and v.ci_high == pytest.approx(half, abs=1e-8) and v.paper_value == 10.0
    tight = verdict(values, "value", margin=0.5, paper={**paper, "sd": 0.1, "n": 5})
    assert tight.ci_high < v.ci_high
    assert verdict(values + 2, "value", margin=0.5, paper=paper).verdict == "not reproduced"
    assert verdict(values, "value", margin=0.2, paper=paper).seeds_needed is None  # one draw is never narrow


# --- scales ------------------------------------------------------------------------------------------------


def test_threshold_on_a_scale_is_reported_in_the_metrics_unit() -> None:
    values = np.array([0.05, -0.1, 0.02, 0.08, -0.03])
    v = verdict(values, "threshold", bound=0.15, side="below", scale="fisher_z")
    plain = verdict(np.arctanh(values), "threshold", bound=float(np.arctanh(0.15)), side="below")
    assert v.verdict == "reproduced" and v.p_value == pytest.approx(plain.p_value, abs=1e-12)
    assert v.estimate == pytest.approx(np.tanh(plain.estimate)) and v.ci_high == pytest.approx(np.tanh(plain.ci_high))
    assert v.ci_low < v.estimate < v.ci_high < 0.15


def test_sizes_are_read_at_the_neutral_point() -> None:
    auc = np.array([0.70, 0.74, 0.68, 0.72, 0.71])
    v = verdict(auc, scale="logit", sesoi=0.15)
    assert v.verdict == "reproduced" and v.estimate == pytest.approx(0.21, abs=0.01)
    ratio = verdict(np.array([1.6, 1.9, 1.7, 1.8, 2.0]), scale="log", sesoi=0.5)
    assert ratio.verdict == "reproduced" and ratio.estimate == pytest.approx(0.79, abs=0.02)


def test_a_difference_has_no_fisher_z() -> None:
    with pytest.raises(ClaimError, match="difference has no fisher_z"):
        judge(claim(scale="fisher_z", reference="retrain"), table(np.array(GOOD) / 2))


def test_two_arms_are_transformed_before_they_are_subtracted() -> None:
    new, old = np.array([0.8, 0.85, 0.82, 0.79, 0.84]), np.array([0.3, 0.35, 0.28, 0.33, 0.36])
    v = judge(claim(scale="fisher_z", reference="old", sesoi=0.3), arms(new, old))
    plain = verdict(np.arctanh(new) - np.arctanh(old), sesoi=float(np.arctanh(0.3)))
    assert v.p_value == pytest.approx(plain.p_value, abs=1e-14) and v.verdict == plain.verdict == "reproduced"


def test_values_outside_the_scale_are_refused() -> None:
    with pytest.raises(ClaimError, match="logit takes values inside"):
        verdict([0.5, 0.7, 0.9, 1.0, 0.8], scale="logit", sesoi=0.1)


# --- clusters, parts, presets --------------------------------------------------------------------------------


def test_cluster_means_are_the_replicates() -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(1, 0.2, (5, 4))
    items = table(values.reshape(-1), cluster=np.repeat(list("abcde"), 4))
    v = judge(claim(unit="item"), items)
    assert v.n == 5 and v.p_value == pytest.approx(verdict(values.mean(axis=1)).p_value, abs=1e-12)


def two_parts(**fields):
    parts = [
        {"name": "low", "kind": "threshold", "statistic": "a", "bound": 0.5, "side": "below"},
        {"name": "up", "kind": "direction", "statistic": "b", "sesoi": 0.5},
    ]
    return claim("parts", statistic=None, parts=parts, **fields)


WIDE = [3.0, -2.0, 2.5, -1.0, 3.0]
SMALL = list(np.array(GOOD) / 10)


@pytest.mark.parametrize(
    ("a", "b", "word", "reason"),
    [
        (SMALL, GOOD, "reproduced", ""),
        (SMALL, WIDE, "partially", "low reproduced; up inconclusive"),
        (SMALL, SMALL, "partially", "up not reproduced"),
        (SMALL, list(-np.array(GOOD)), "not reproduced", "contradicted: up"),
        (WIDE, WIDE, "inconclusive", "width"),
        (GOOD, WIDE, "not reproduced", "contradicted: low"),
        ([*SMALL[:4], np.nan], GOOD, "inconclusive", "1 of 5 failed"),
        ([0.1] * 5, GOOD, "error", "identical"),
    ],
)
def test_parts(a, b, word, reason) -> None:
    result = study({"a": a, "b": b}, [two_parts(primary=True)])
    v = result.verdicts[0]
    assert v.verdict == word and reason in v.reason, v
    assert [p.part for p in result.parts] == ["low", "up"]
    single = judge(two_parts(primary=True), {"low": table(a), "up": table(b)})
    assert single.verdict == word


def test_parts_from_one_table() -> None:
    t = pa.table({"part": ["low"] * 5 + ["up"] * 5, "replicate": [*range(5)] * 2, "value": [*SMALL, *GOOD]})
    assert judge(two_parts(), t).verdict == "reproduced"
    with pytest.raises(ClaimError, match="part"):
        judge(two_parts(), table(GOOD))


def test_smoke_judges_exact_claims_only() -> None:
    claims = [
        claim(id="A", presets=["smoke", "laptop"], primary=True),
        claim("exact", id="B", statistic="zero", tolerance=0, presets=["smoke"]),
        claim("exact", id="C", statistic="zero", tolerance=0, presets=["paper"]),
    ]
    result = study({"effect": GOOD, "zero": [0.0]}, claims, preset="smoke")
    assert [v.verdict for v in result.verdicts] == ["not testable", "reproduced", "not testable"]
    assert result.paper is None


def test_a_derived_preset_is_judged_like_its_parent() -> None:
    result = study({"effect": GOOD}, [claim(primary=True)], preset="mine", judged_as="laptop")
    assert result.preset == "mine" and result.paper.verdict == "reproduced"


def test_the_family_is_fixed_and_stopped_claims_enter_with_one() -> None:
    claims = [
        claim(id="A", statistic="a", primary=True),
        claim(id="B", statistic="b", primary=True),
        claim(id="C", statistic="a"),
        claim("exact", id="D", statistic="z", tolerance=0, primary=True),
    ]
    result = study({"a": GOOD, "b": [*GOOD[:4], np.nan], "z": [0.0]}, claims)
    assert result["B"].p_holm == 1.0 and result["C"].p_holm is None and result["D"].p_holm is None
    assert result["A"].p_holm == pytest.approx(2 * result["A"].p_value)
    assert result.paper.text == "partially: 1 of 2 reproduced, 1 inconclusive"
    assert 0 < result.false_reproduced == pytest.approx(0.10)


def test_what_was_decided_at_the_first_look_stays() -> None:
    late = [-9.0] * 4 + [-9.5]
    tables = {
        "decided": pa.table({"seed": range(10), "value": GOOD + late}),
        "open": pa.table({"seed": range(10), "value": [2.0, -1.2, 2.5, -0.5, 1.5, 1.0, 1.1, 1.2, 0.9, 1.3]}),
    }
    functions = {
        name: lambda t, name=name: pa.table({"replicate": t[name]["seed"], "value": t[name]["value"]})
        for name in tables
    }
    claims = [claim(id=name, statistic=name, primary=True) for name in tables]
    options = {"preset": "laptop", "seeds": 5, "extension": 10}
    first = judge_study(claims, {k: t.slice(0, 5) for k, t in tables.items()}, functions, **options)
    second = judge_study(claims, tables, functions, look=2, **options)
    assert first["decided"].verdict == "reproduced" and first["open"].reason == "width"
    assert second["decided"] == first["decided"] and first["open"].alpha == 0.03
    assert (second["open"].look, second["open"].n) == (2, 10)


def test_many_draws_are_judged_in_bounded_memory() -> None:
    values = np.random.default_rng(5).normal(1.0, 1.0, 10_000)
    v = judge(claim(unit="draw", sesoi=0.5), table(values))
    assert v.verdict == "reproduced" and v.p_sign_flip < 0.001 and v.leave_one_out == "2 reproduced"

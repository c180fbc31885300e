"""An engine broken in one place, on purpose, must fail a check. Each row: what is broken, how, which check."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from . import engine_checks as checks


def module(name: str) -> Any:
    return importlib.import_module(f"restudy.claims.{name}")


effects, evidence, ttest, rules = (module(name) for name in ("effects", "evidence", "ttest", "rules"))
true_two_arms, true_weigh, true_question = effects._two_arms, evidence.weigh, effects.question


def swapped() -> list[Any]:
    order = [*rules.RULES]
    i, j = order.index(rules.not_reproduced), order.index(rules.partially)
    order[i], order[j] = order[j], order[i]
    return order


def unpaired(table: Any, s: Any, where: str) -> Any:
    return true_two_arms(table, s.model_copy(update={"paired": False}), where)


def lower_bound_ignored(question: Any, estimate: float, low: float, high: float, lacking: str = "") -> Any:
    return true_weigh(question, estimate, math.inf if question.form == "above" else low, high, lacking)


def upper_bound_ignored(question: Any, estimate: float, low: float, high: float, lacking: str = "") -> Any:
    return true_weigh(question, estimate, low, math.inf if question.form == "above" else high, lacking)


def margin_ignored(s: Any) -> Any:
    q = true_question(s)
    return effects.Question(q.form, low=-math.inf, high=math.inf) if q.form == "within" else q


def sesoi_ignored(s: Any) -> Any:
    q = true_question(s)
    return effects.Question(q.form, target=0.0, low=q.low, high=q.high, settle=q.settle)


Mutation = tuple[str, str, str, Any, Callable[[], None]]
MUTATIONS: list[Mutation] = [
    ("wrong tail", "ttest", "survival", lambda t, df: special.stdtr(df, t), checks.agrees_with_scipy),
    ("wrong tail", "ttest", "survival", lambda t, df: special.stdtr(df, t), checks.large_effect_is_reproduced),
    ("two tails for one", "ttest", "survival", lambda t, df: 2 * special.stdtr(df, -np.abs(t)),
     checks.level_is_five_percent),
    ("wrong degrees of freedom", "ttest", "degrees_of_freedom", lambda n: n, checks.level_is_five_percent),
    ("z for t", "ttest", "survival", lambda t, df: special.ndtr(-np.asarray(t)), checks.agrees_with_scipy),
    ("z for t in the bounds", "ttest", "quantile", lambda level, df: special.ndtri(level) + 0 * np.asarray(df),
     checks.agrees_with_scipy),
    ("s.d. for standard error", "ttest", "standard_error", lambda sd, n: sd, checks.level_is_five_percent),
    ("lower bound ignored", "evidence", "weigh", lower_bound_ignored, checks.wide_interval_is_inconclusive),
    ("upper bound ignored", "evidence", "weigh", upper_bound_ignored, checks.reversed_effect_is_not_reproduced),
    ("dropped NaN", "assess", "count_failed", lambda sample: 0, checks.nan_is_not_dropped),
    ("missing seeds not noticed", "assess", "complete", lambda table, planned: table,
     checks.missing_seed_is_a_failed_one),
    ("Holm left out", "holm", "adjust", lambda p: list(p), checks.family_is_six_percent_at_most),
    ("Holm left out", "holm", "adjust", lambda p: list(p), checks.holm_is_applied_to_the_primary_family),
    ("Bonferroni for Holm", "holm", "adjust", lambda p: [min(1.0, len(p) * one) for one in p],
     checks.holm_agrees_with_statsmodels),
    ("margin ignored", "effects", "question", margin_ignored, checks.margin_decides_equivalence),
    ("SESOI ignored", "effects", "question", sesoi_ignored, checks.negligible_comes_before_partially),
    ("estimate not compared with S", "evidence", "reaches", lambda estimate, target: True,
     checks.too_small_an_estimate_is_partial),
    ("gate ignored", "gates", "passes", lambda mean, gate: True, checks.failed_gate_stops_the_claim),
    ("control ignored", "single", "control_verdict", lambda *_: "not reproduced",
     checks.control_that_shows_the_effect_stops_the_claim),
    ("undecided control passes", "rules", "control_open", lambda a: False, checks.undecided_control_caps_the_claim),
    ("order of rules swapped", "rules", "RULES", swapped(), checks.negligible_comes_before_partially),
    ("paired taken as unpaired", "effects", "_two_arms", unpaired, checks.pairing_counts),
    ("pairs mixed up", "effects", "pair", lambda a, b: a - np.roll(b, 1, axis=0), checks.pairing_counts),
    ("n cap off", "assess", "too_few", lambda n: False, checks.four_seeds_decide_nothing),
    ("identical replicates pass", "evidence", "identical", lambda sample: False,
     checks.identical_replicates_are_an_error),
    ("one-sided equivalence", "ttest", "p_within", lambda f, low, high: ttest.p_above(f, low),
     checks.equivalence_agrees_with_statsmodels),
    ("strongest pair for the weakest", "evidence", "weakest",
     lambda f, alpha: (f.mean.max(-1), ttest.lower(f, alpha).max(-1), ttest.upper(f, alpha).max(-1)),
     checks.all_pairs_must_hold),
    ("second look at 95%", "extension", "alpha_of", lambda extension: 0.05, checks.extension_is_six_percent_at_most),
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "name", "broken", "check"),
    [row[1:] for row in MUTATIONS],
    ids=[f"{row[0]}-{row[4].__name__}" for row in MUTATIONS],
)
def test_a_broken_engine_is_caught(monkeypatch, target: str, name: str, broken: Any, check: Any) -> None:
    monkeypatch.setattr(module(target), name, broken)
    with np.errstate(all="ignore"), pytest.raises((AssertionError, TypeError)) as caught:
        check()
    assert caught.type is AssertionError


def test_there_are_twelve_at_least() -> None:
    assert len({row[0] for row in MUTATIONS}) >= 12

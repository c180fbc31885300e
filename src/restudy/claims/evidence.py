"""From effects to evidence: estimates, bounds and p values of a statement, and what they show."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from . import ttest
from .effects import Question, Sample

Array = npt.NDArray[np.float64]

_ROUNDING = 1e-12
"""Relative slack of ``estimate >= S``: a mean of decimals that equals S must not fail by one rounding."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the bounds show, each at confidence 1 - alpha.

    ``absent``: the smallest effect of interest is excluded; ``opposed``: even the opposite is shown;
    ``present``: the effect exceeds 0 (equivalence: lies inside the margin); ``large``: it reaches S as
    estimated; ``lacking``: what else is missing for the full claim.
    """

    absent: bool
    opposed: bool
    present: bool
    large: bool
    lacking: str = ""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Estimate, bounds and spread on the test scale; ``p`` for the claim, ``p_against`` for its opposite."""

    estimate: float
    lower: float
    upper: float
    p: float
    p_against: float
    sd: float


def reaches(estimate: float, target: float) -> bool:
    """``estimate >= S``, but for rounding."""
    return estimate >= target - _ROUNDING * abs(target)


def weigh(question: Question, estimate: float, low: float, high: float, lacking: str = "") -> Evidence:
    """The evidence in an estimate and its two one-sided bounds, on the test scale."""
    if question.form == "within":
        inside = low > question.low and high < question.high
        outside = low > question.high or high < question.low
        return Evidence(absent=outside, opposed=outside, present=inside, large=inside)
    return Evidence(
        absent=high < question.target,
        opposed=high < 0.0,
        present=low > 0.0,
        large=reaches(estimate, question.target) and not lacking,
        lacking=lacking,
    )


def fitted(question: Question, effects: Array) -> ttest.Fit:
    """The fit of a paired or one-sample statement; a ``value`` claim carries the paper's uncertainty."""
    if question.form == "within" and (question.one_draw or question.paper_sd is not None):
        return ttest.fit_to_paper(effects, question.paper_sd, question.paper_n)
    return ttest.fit(effects)


def weakest(fit: ttest.Fit, alpha: float) -> tuple[Any, Any, Any]:
    """Estimate and bounds over the last axis (adjacent pairs of an ordering; else one column).

    All pairs must hold, so each is the smallest over the pairs. A claim of K pairs is refuted by one of
    them, so the upper bounds share alpha (Bonferroni); the lower bounds do not (intersection-union test).
    """
    pairs = np.shape(fit.mean)[-1]
    low, high = ttest.lower(fit, alpha), ttest.upper(fit, alpha / pairs)
    return fit.mean.min(axis=-1), low.min(axis=-1), high.min(axis=-1)


def numbers(question: Question, fit: ttest.Fit, alpha: float) -> Numbers:
    """Estimate, bounds and p values of a fit with one column per pair."""
    mean, low, high = weakest(fit, alpha)
    if question.form == "within":
        p, against = ttest.p_within(fit, question.low, question.high), ttest.p_outside(fit, question.low, question.high)
    else:
        p, against = ttest.p_above(fit), ttest.p_below(fit)
    pairs = np.shape(fit.mean)[-1]
    return Numbers(
        float(mean), float(low), float(high), float(np.max(p)), min(1.0, float(np.min(against)) * pairs),
        float(np.max(fit.sd)),
    )  # fmt: skip


def fit_sample(question: Question, sample: Sample) -> ttest.Fit:
    """The fit of a sample's finite replicates, one column per pair."""
    if sample.arms is not None:
        two = ttest.fit_two(*sample.arms)
        return ttest.Fit(np.array([two.mean]), np.array([two.sd]), np.array([two.se]), np.array([two.df]), two.n)
    return fitted(question, sample.finite)


def reversed_step(sample: Sample, alpha: float) -> str:
    """The name of a step of a trend that clearly runs the other way, or "" (alpha is shared by the steps)."""
    if sample.steps is None or sample.steps.shape[1] < 2:
        return ""
    finite = sample.steps[~np.isnan(sample.steps).any(axis=1)]
    if len(finite) < 2:
        return ""
    high = ttest.upper(ttest.fit(finite), alpha / finite.shape[1])
    at = int(np.argmin(high))
    return f"step {sample.names[at]} is reversed" if high[at] < 0 else ""


def identical(sample: Sample) -> bool:
    """True when all finite replicates agree to the last bits, so that no spread can be estimated."""
    slack = 8 * np.finfo(np.float64).eps * sample.magnitude
    if sample.arms is not None:
        return all(len(arm) > 1 and float(np.ptp(arm)) <= slack for arm in sample.arms)
    finite = sample.finite
    return len(finite) > 1 and bool((np.ptp(finite, axis=0) <= slack).any())


def exact(question: Question, sample: Sample) -> tuple[float, Evidence]:
    """The largest absolute deviation of an ``exact`` statement, and whether the tolerance holds."""
    finite = sample.finite
    worst = float(np.abs(finite).max()) if len(finite) else math.nan
    holds = worst <= question.target
    return worst, Evidence(absent=not holds, opposed=not holds, present=holds, large=holds)

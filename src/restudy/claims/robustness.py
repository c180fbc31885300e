"""What stands beside every verdict: sign-flip p value, leave-one-out verdicts, probability of superiority."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import numpy.typing as npt

from . import evidence, rules, ttest
from .effects import Question, Sample

Array = npt.NDArray[np.float64]

EXACT_UP_TO = 16
"""Largest number of replicates whose 2^n sign patterns are all counted."""
RANDOM_FLIPS = 20_000
LEAVE_OUT_ALL_UP_TO = 64
SIGN_FLIP_LEVEL = 0.05
"""Level of the sign-flip test: five replicates reach no p value below 1/32."""


def sign_flip_p(effects: Array) -> float:
    """One-sided sign-flip p value of "the effects are symmetric about 0" for ``effects`` of shape (n,).

    All 2^n patterns for n <= 16, else 20,000 drawn with a fixed seed (fewer above n = 2000; the observed one
    counts).
    """
    n = len(effects)
    observed = float(effects.sum())
    slack = 1e-12 * float(np.abs(effects).sum())
    if n <= EXACT_UP_TO:
        sums = np.zeros(1)
        for value in effects:
            sums = np.concatenate((sums + value, sums - value))
        return float(np.mean(sums >= observed - slack))
    flips = min(RANDOM_FLIPS, max(1000, 40_000_000 // n))
    rng, hits = np.random.default_rng(0), 0
    for block in np.array_split(np.arange(flips), max(1, flips * n // 2_000_000)):
        signs = rng.integers(0, 2, size=(len(block), n), dtype=np.int8) * 2 - 1
        hits += int((signs @ effects >= observed - slack).sum())
    return (hits + 1) / (flips + 1)


def sign_flip(question: Question, sample: Sample) -> float:
    """The sign-flip p value of a statement; NaN where flipping signs means nothing.

    Orderings take the largest over their pairs, equivalence the larger of the two sides. Unpaired arms and
    comparisons that carry the paper's own uncertainty have none.
    """
    if sample.arms is not None or question.one_draw or question.paper_sd is not None:
        return math.nan
    finite = sample.finite
    if question.form == "within":
        e = finite[:, 0]
        return max(sign_flip_p(e - question.low), sign_flip_p(question.high - e))
    return max(sign_flip_p(finite[:, k]) for k in range(finite.shape[1]))


def leave_one_out(question: Question, sample: Sample, alpha: float) -> Counter[str]:
    """How often each verdict comes out when one replicate is left out (rules 3 to 6, one claim alone).

    With more than 64 replicates only the smallest and the largest effect are left out.
    """
    if sample.arms is not None:
        return _leave_one_out_of_arms(question, sample.arms, alpha)
    finite = sample.finite
    n = len(finite)
    if n < 3:
        return Counter()
    order = np.argsort(finite[:, 0], kind="stable")
    out = np.arange(n) if n <= LEAVE_OUT_ALL_UP_TO else order[[0, -1]]
    keep = np.array([np.delete(np.arange(n), i) for i in out])
    fit = evidence.fitted(question, finite[keep.T])
    estimate, low, high = evidence.weakest(fit, alpha)
    return Counter(
        rules.verdict_alone(evidence.weigh(question, float(m), float(lo), float(hi)))
        for m, lo, hi in zip(estimate, low, high, strict=True)
    )


def _leave_one_out_of_arms(question: Question, arms: tuple[Array, Array], alpha: float) -> Counter[str]:
    found: Counter[str] = Counter()
    for side in (0, 1):
        for i in range(len(arms[side]) if len(arms[side]) >= 3 and len(arms[1 - side]) >= 2 else 0):
            kept = [arms[0], arms[1]]
            kept[side] = np.delete(arms[side], i)
            fit = ttest.fit_two(kept[0], kept[1])
            low, high = float(ttest.lower(fit, alpha)), float(ttest.upper(fit, alpha))
            found[rules.verdict_alone(evidence.weigh(question, float(fit.mean), low, high))] += 1
    return found


def prob_superiority(question: Question, sample: Sample) -> float:
    """Share of differences above 0 (ties half); smallest over the pairs of an ordering.

    For a threshold: share of replicates beyond the bound. Unpaired arms: share over all cross pairs.
    """
    if sample.arms is not None:
        differences = np.subtract.outer(sample.arms[0], sample.arms[1]).reshape(-1, 1) - question.centre
    else:
        differences = sample.finite - question.centre
    if not len(differences):
        return math.nan
    share = (differences > 0).mean(axis=0) + 0.5 * (differences == 0).mean(axis=0)
    return float(share.min())

"""Exact means and variances by enumeration, and the number of categories to sum. numpy only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restudy.errors import ConfigError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Mean (P,) and total variance (summed over the P coordinates) of an estimator, and the mass outside C."""

    mean: Array
    variance: float
    outside: float


def top_k(q: Array, k: int) -> NDArray[np.int64]:
    """The k most probable categories; ties go to the lower index."""
    return np.argsort(-q, kind="stable")[:k].astype(np.int64)


def optimal_k(q: Array, evaluations: int) -> int:
    """argmin over 0 <= k < N of q(outside C_k) / (N - k), the bound on the variance (Liu et al. 2019, section 3).

    k = N is left out (nothing would be left to draw with, and the bound divides by zero); among equals the smallest.

    Args:
        q: probabilities (K,).
        evaluations: N, the evaluations of f that may be spent; at least 1.
    """
    if evaluations < 1:
        raise ConfigError(f"evaluations is {evaluations}", where="optimal_k", remedy="at least 1")
    ordered = np.sort(q)[::-1]
    outside = np.concatenate([[1.0], 1.0 - np.cumsum(ordered)])
    candidates = np.arange(min(evaluations, len(q) + 1))
    bound = np.maximum(outside[candidates], 0.0) / (evaluations - candidates)
    return int(np.flatnonzero(bound <= bound.min() * (1 + 1e-12))[0])


def rao_blackwell_moments(q: Array, g: Array, chosen: Sequence[int] | NDArray[np.int64], draws: int = 1) -> Moments:
    """Moments of sum over `chosen` of q g + q(outside) * mean of `draws` values g(v), by enumeration.

    Args:
        q: probabilities (K,).
        g: values of the one-draw estimator (K, P).
        chosen: the summed categories; none gives the plain average of draws from q.
        draws: independent draws from the rest.
    """
    outside = np.ones(len(q), dtype=bool)
    outside[np.asarray(chosen, dtype=np.int64)] = False
    mass = float(q[outside].sum())
    summed = q[~outside] @ g[~outside]
    if mass == 0.0:
        return Moments(summed, 0.0, 0.0)
    rest = q[outside] / mass
    centre = rest @ g[outside]
    spread = float(rest @ ((g[outside] - centre) ** 2).sum(1))
    return Moments(summed + mass * centre, mass**2 * spread / draws, mass)


def second_sample_moments(q: Array, f: Array, score: Array, chosen: NDArray[np.int64], *, fresh: bool) -> Moments:
    """Moments with an independent second draw as baseline: (f(z) - f(z')) score(z), f without a gradient of its own.

    `fresh`: a second draw for every summed category and one for the drawn one, as the paper's released code has it;
    then variances add. Otherwise one second draw serves all.

    Args:
        q: probabilities (K,). f: values (K,). score: d log q (K, P).
        chosen: the summed categories.
        fresh: see above.
    """
    spread = float(q @ (f - q @ f) ** 2)
    plain = rao_blackwell_moments(q, f[:, None] * score, chosen)
    if not fresh:
        every = [rao_blackwell_moments(q, (f - b)[:, None] * score, chosen) for b in f]
        means = np.stack([m.mean for m in every])
        within = float(q @ np.array([m.variance for m in every]))
        return Moments(q @ means, within + float(q @ ((means - q @ means) ** 2).sum(1)), plain.outside)
    summed = float(((q[chosen] ** 2) * (score[chosen] ** 2).sum(1)).sum()) * spread
    outside = np.ones(len(q), dtype=bool)
    outside[chosen] = False
    rest = q * outside / max(plain.outside, np.finfo(float).tiny)
    pairs = (f[:, None] - f[None, :])[:, :, None] * score[:, None, :]
    weight = rest[:, None] * q[None, :]
    centre = np.einsum("zb,zbp->p", weight, pairs)
    drawn = float(np.einsum("zb,zbp->", weight, (pairs - centre) ** 2)) * plain.outside**2
    return Moments(plain.mean, summed + drawn, plain.outside)


def fourth_moment(q: Array, g: Array, chosen: Sequence[int] | NDArray[np.int64]) -> float:
    """Fourth central moment of the estimator with one draw and P = 1: the error of an empirical variance needs it.

    Args:
        q: probabilities (K,). g: values (K, 1). chosen: the summed categories.
    """
    outside = np.ones(len(q), dtype=bool)
    outside[np.asarray(chosen, dtype=np.int64)] = False
    mass = float(q[outside].sum())
    if mass == 0.0:
        return 0.0
    rest, values = q[outside] / mass, g[outside, 0]
    return float(mass**4 * (rest @ (values - rest @ values) ** 4))

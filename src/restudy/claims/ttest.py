"""Student's t: estimates, one-sided bounds and p values. Distributions come from SciPy.

Everything accepts scalars or arrays for ``mean``, ``se`` and ``df`` (they broadcast), so that one verdict,
its leave-one-out copies and a simulation of many studies run the same code.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fit:
    """A mean with its standard error and degrees of freedom; ``sd`` is that of one replicate."""

    mean: Any
    sd: Any
    se: Any
    df: Any
    n: int


def quantile(level: float, df: Any) -> Any:
    """The ``level`` quantile of Student's t with ``df`` degrees of freedom."""
    from scipy import special

    return special.stdtrit(df, level)


def survival(t: Any, df: Any) -> Any:
    """P(T > t) for Student's t with ``df`` degrees of freedom."""
    from scipy import special

    return special.stdtr(df, -np.asarray(t))


def standard_error(sd: Any, n: int) -> Any:
    """Standard error of the mean of ``n`` independent replicates."""
    return sd / math.sqrt(n)


def degrees_of_freedom(n: int) -> int:
    """Degrees of freedom of a mean of ``n`` replicates."""
    return n - 1


def fit(effects: Array) -> Fit:
    """Mean over the first axis of ``effects`` (n, ...), all finite, n >= 1 (n = 1: the error is NaN)."""
    n = effects.shape[0]
    ordered = np.sort(effects, axis=0)
    mean = ordered.sum(axis=0) / n
    if n < 2:
        nan = np.full_like(mean, np.nan)
        return Fit(mean, nan, nan, nan, n)
    sd = np.sqrt(np.square(ordered - mean).sum(axis=0) / (n - 1))
    return Fit(mean, sd, standard_error(sd, n), degrees_of_freedom(n), n)


def fit_two(arm: Array, reference: Array) -> Fit:
    """Mean of ``arm`` minus mean of ``reference`` for arms that share no replicates: Welch's test.

    Degrees of freedom after Satterthwaite; ``sd`` is that of one difference, ``n`` the smaller arm's size.
    """
    a, b = fit(arm), fit(reference)
    va, vb = a.se**2, b.se**2
    with np.errstate(invalid="ignore", divide="ignore"):
        df = (va + vb) ** 2 / (va**2 / a.df + vb**2 / b.df)
    return Fit(a.mean - b.mean, np.sqrt(a.sd**2 + b.sd**2), np.sqrt(va + vb), df, min(a.n, b.n))


def fit_to_paper(effects: Array, paper_sd: float | None, paper_n: int | None) -> Fit:
    """Mean of ``effects`` (ours minus the paper's value), with the paper's own uncertainty.

    Without a printed s.d. (or n) the paper's value is one draw from our distribution: se = s sqrt(1 + 1/n).
    With both, the two variances add and the degrees of freedom are Satterthwaite's.
    """
    ours = fit(effects)
    if paper_sd is None or paper_n is None or paper_n < 2:
        return Fit(ours.mean, ours.sd, ours.sd * math.sqrt(1 + 1 / ours.n), ours.df, ours.n)
    va, vb = ours.se**2, paper_sd**2 / paper_n
    df = (va + vb) ** 2 / (va**2 / ours.df + vb**2 / (paper_n - 1))
    return Fit(ours.mean, ours.sd, np.sqrt(va + vb), df, ours.n)


def lower(f: Fit, alpha: float) -> Any:
    """One-sided lower bound at confidence 1 - alpha."""
    return f.mean - quantile(1 - alpha, f.df) * f.se


def upper(f: Fit, alpha: float) -> Any:
    """One-sided upper bound at confidence 1 - alpha."""
    return f.mean + quantile(1 - alpha, f.df) * f.se


def p_above(f: Fit, null: Any = 0.0) -> Any:
    """One-sided p value of "the mean is at most ``null``": small when the effect lies above it."""
    return survival((f.mean - null) / f.se, f.df)


def p_below(f: Fit, null: Any = 0.0) -> Any:
    """One-sided p value of "the mean is at least ``null``": small when the effect lies below it."""
    return survival((null - f.mean) / f.se, f.df)


def p_within(f: Fit, low: float, high: float) -> Any:
    """TOST (Schuirmann 1987): the larger of the two one-sided p values against ``low`` and ``high``."""
    return np.maximum(p_above(f, low), p_below(f, high))


def p_outside(f: Fit, low: float, high: float) -> Any:
    """p value of "the mean lies inside [low, high]": small when it lies clearly outside."""
    return np.minimum(np.minimum(p_below(f, low), p_above(f, high)), 1.0)

"""The curve S(B) = S_min (1 + B_crit / B), fitted in log space, and slopes of log S. numpy and pyarrow only.

The form is that of McCandlish et al. 2018 (An empirical model of large-batch training, equation 2.11): one-for-one
scaling far below B_crit, a plateau of S_min steps far above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from restudy.errors import ConfigError
from restudy.methods.sweeps.measurements import fewest_steps

Array = npt.NDArray[np.float64]
REACH = 1e4
"""B_crit is looked for within this factor of the smallest and the largest batch size."""


@dataclass(frozen=True)
class Scaling:
    """A fitted curve: `s_min` steps of the plateau, `b_crit` examples where it costs twice that."""

    s_min: float
    b_crit: float

    def steps(self, batch_size: float) -> float:
        """S(B)."""
        return self.s_min * (1 + self.b_crit / batch_size)


@dataclass(frozen=True)
class Interval:
    """A fit with the ends of its percentile interval over resampled trials."""

    fit: Scaling
    b_crit: tuple[float, float]
    s_min: tuple[float, float]
    draws: int


def fit_scaling(batch_sizes: Sequence[float] | Array, steps: Sequence[float] | Array) -> Scaling:
    """Fit the curve by least squares of log S; batch sizes whose steps are NaN are left out.

    For a given B_crit the best log S_min is a mean, so one unknown is left; it is found on a grid of 200 values
    between the smallest batch size over 10^4 and the largest times 10^4, and refined by golden sections. A curve
    without a plateau ends near the upper limit, one without a slope near the lower. NaN with fewer than three points.

    Raises:
        ConfigError: lengths that differ, batch sizes or steps that are not positive.
    """
    sizes, counts = np.asarray(batch_sizes, dtype=np.float64), np.asarray(steps, dtype=np.float64)
    if sizes.shape != counts.shape or sizes.ndim != 1:
        raise ConfigError(f"{sizes.shape} batch sizes and {counts.shape} steps", remedy="give one for each")
    known = ~np.isnan(counts)
    sizes, counts = sizes[known], counts[known]
    if (sizes <= 0).any() or (counts <= 0).any():
        raise ConfigError("batch sizes and steps must be above 0", where="fit_scaling")
    if len(sizes) < 3:
        return Scaling(math.nan, math.nan)
    logs = np.log(counts)

    def excess(place: float) -> Array:
        found: Array = logs - np.log1p(math.exp(place) / sizes)
        return found

    grid = np.linspace(math.log(sizes.min() / REACH), math.log(sizes.max() * REACH), 200)
    at = int(np.argmin([excess(x).var() for x in grid]))
    low, high = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if excess(left).var() < excess(right).var() else (left, high)
    place = (low + high) / 2
    return Scaling(float(np.exp(excess(place).mean())), math.exp(place))


def bootstrap_scaling(trials: pa.Table, *, draws: int = 200, seed: int = 0, level: float = 0.9) -> Interval:
    """Fit the best complete trials, and resample the trials of every batch size with replacement.

    Args:
        trials: as `first_steps` returns it. draws: resamples. level: share of the interval, percentiles.

    The interval shows how far the fit rests on which trials were drawn. It is one of a minimum, so it tends to lie
    above the fit in S_min; verdicts rest on repeated sweeps instead.
    """
    best = fewest_steps(trials)
    sizes = best["batch_size"].to_numpy()
    whole = fit_scaling(sizes.astype(np.float64), best["steps"].to_numpy())
    batch, status = trials["batch_size"].to_numpy(), np.array(trials["status"].to_pylist())
    reached = np.where((status == "complete"), trials["steps"].to_numpy(), np.nan)
    pools = [np.where(np.isnan(reached[batch == b]), np.inf, reached[batch == b]) for b in sizes]
    generator, found = np.random.default_rng(seed), []
    for _ in range(draws):
        drawn = np.array([pool[generator.integers(len(pool), size=len(pool))].min() for pool in pools])
        fitted = fit_scaling(sizes.astype(np.float64), np.where(np.isinf(drawn), np.nan, drawn))
        if not math.isnan(fitted.b_crit):
            found.append((fitted.b_crit, fitted.s_min))
    if not found:
        return Interval(whole, (math.nan, math.nan), (math.nan, math.nan), 0)
    ends = np.quantile(np.array(found), [(1 - level) / 2, (1 + level) / 2], axis=0)
    b, s = ((float(ends[0, i]), float(ends[1, i])) for i in range(2))
    return Interval(whole, b, s, len(found))


def log_slope(batch_sizes: Sequence[float] | Array, steps: Sequence[float] | Array) -> float:
    """Slope of log S on log B by least squares: -1 is perfect scaling, 0 a plateau; NaN if a value is NaN."""
    x, y = np.log(np.asarray(batch_sizes, dtype=np.float64)), np.log(np.asarray(steps, dtype=np.float64))
    if len(x) < 2 or np.isnan(y).any():
        return math.nan
    x = x - x.mean()
    return float(x @ y / (x @ x))


def local_slopes(batch_sizes: Sequence[float] | Array, steps: Sequence[float] | Array) -> Array:
    """Slopes of log S between neighbouring batch sizes, float64 (n - 1,), in increasing order of batch size."""
    order = np.argsort(np.asarray(batch_sizes))
    x, y = (np.log(np.asarray(v, dtype=np.float64)[order]) for v in (batch_sizes, steps))
    found: Array = np.diff(y) / np.diff(x)
    return found

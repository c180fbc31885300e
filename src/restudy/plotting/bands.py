"""Average long tables over replicates, with 95% t intervals. No torch, no matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy import stats

from restudy.tables import levels, ordered, where

Array = npt.NDArray[np.float64]
Sample = Mapping[Any, float] | Iterable[float]
"""One number per replicate, or a mapping from replicates to such numbers (as `by_seed` returns)."""
OVERFLOW = 1e300  # tables hold this or more where a run overflowed: nothing that can be averaged or drawn


class Band(NamedTuple):
    """Means and half-widths of 95% t intervals along x: three arrays (n,). `band._replace(x=...)` moves it."""

    x: Array
    mean: Array
    half: Array

    @classmethod
    def of(cls, x: Iterable[float], samples: Iterable[Sample]) -> Band:
        """Build a band from one sample of replicates at every x."""
        return cls(np.array(list(x), dtype=float), *intervals(samples))


def interval(sample: Sample) -> tuple[float, float]:
    """Mean over replicates and half-width of its 95% t interval.

    The half-width is 0 for a single replicate; both are NaN where there is none or where one is NaN.
    """
    values = np.array(list(sample.values() if isinstance(sample, Mapping) else sample), dtype=float)
    n = len(values)
    if n == 0 or np.isnan(values).any():
        return float("nan"), float("nan")
    half = _quantile(n - 1) * values.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
    return float(values.mean()), float(half)


def intervals(samples: Iterable[Sample]) -> tuple[Array, Array]:
    """Means and half-widths of several samples, each (samples,); see `interval`."""
    found = np.array([interval(sample) for sample in samples], dtype=float).reshape(-1, 2)
    return found[:, 0], found[:, 1]


@cache
def _quantile(degrees: int) -> float:
    return float(stats.t.ppf(0.975, degrees))


def plus_minus(sample: Sample, digits: int = 3) -> str:
    """Write mean and half-width as `1.234 ± 0.056`; the mean alone for one replicate, a dash for none."""
    values = list(sample.values() if isinstance(sample, Mapping) else sample)
    if not values:
        return "-"
    mean, half = interval(values)
    return f"{mean:.{digits}f} ± {half:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"


def stacked(table: pa.Table, x: str, /, value: str = "value", **columns: object) -> tuple[Array, Array]:
    """Arrange the chosen rows by seed and x.

    Args:
        x, value: names of columns.
        columns: what `where` filters by.

    Returns:
        The distinct x in rising order (n,), and the values (seeds, n), seeds in rising order. Several rows of one
        seed and x are averaged. NaN where a seed lacks an x, or where its value is missing or `OVERFLOW`.
    """
    _, places, values = _stacked(where(table, **columns), x, value)
    return places, values


def _stacked(rows: pa.Table, x: str, value: str) -> tuple[Array, Array, Array]:
    """Seeds (s,), x (n,) and values (s, n)."""
    numbers = np.asarray(rows[value].to_numpy(zero_copy_only=False), dtype=float)
    numbers = np.where(np.abs(numbers) < OVERFLOW, numbers, np.nan)
    seeds, row = np.unique(rows["seed"].to_numpy(), return_inverse=True)
    places, column = np.unique(rows[x].to_numpy(), return_inverse=True)
    found = np.full((len(seeds), len(places)), np.nan)
    order = np.lexsort((column, row))  # stable: rows of one seed and x keep their order
    cells, starts = np.unique((row * len(places) + column)[order], return_index=True)
    if len(cells) == len(numbers):
        found.flat[cells] = numbers[order]
    else:
        found.flat[cells] = [group.mean() for group in np.split(numbers[order], starts[1:])]
    return seeds, places.astype(float), found


def over_seeds(
    table: pa.Table, x: str, /, value: str = "value", minus: Mapping[str, object] | None = None, **columns: object
) -> Band:
    """Average the chosen rows over seeds at every x, with 95% t intervals.

    Args:
        x, value: names of columns.
        minus: columns that choose the rows to subtract, seed by seed and x by x; those it does not name are chosen
            as in `columns`.
        columns: what `where` filters by.

    Returns:
        NaN at an x where one of the seeds has no value: a mean over fewer seeds would jump there.
    """
    seeds, places, values = _stacked(where(table, **columns), x, value)
    if minus is not None:
        other_seeds, other_places, others = _stacked(where(table, **{**columns, **minus}), x, value)
        matched = np.full_like(values, np.nan)
        _, rows, other_rows = np.intersect1d(seeds, other_seeds, return_indices=True)
        _, at, other_at = np.intersect1d(places, other_places, return_indices=True)
        matched[np.ix_(rows, at)] = others[np.ix_(other_rows, other_at)]
        values = values - matched
    return Band.of(places, values.T)


def each_line(
    table: pa.Table, key: str, x: str, /, value: str = "value", **columns: object
) -> Iterator[tuple[Any, Array, Array]]:
    """Yield each value of the column `key` among the chosen rows, with its x in rising order and its values."""
    rows = where(table, **columns)
    for level in levels(rows, key):
        yield (level, *ordered(rows, x, value, **{key: level}))

"""Names and looks of the arms, and means with their t intervals over seeds. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import stats

from restudy.plotting.style import series
from restudy.studies.batch_norm.tidy import Array, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARM_NAMES = {
    "std": "plain",
    "bn": "batch norm",
    "noisy": "noisy batch norm",
    "std_noise": "plain with noise",
    "l1": "l1 norm",
    "l2": "l2 norm",
    "linf": "l-infinity norm",
}
LOOKS = series(list(ARM_NAMES))
FINITE = 1e300


def runs_of(table: pa.Table) -> list[str]:
    """The runs of a table, by arm in the order of `ARM_NAMES`, then by learning rate."""
    order = list(ARM_NAMES)
    return sorted(set(table["run"].to_pylist()), key=lambda r: (order.index(arm_of(r)), float(rate_of(r))))


def arm_of(run: str) -> str:
    """The arm of a run."""
    return run.partition("-")[0]


def rate_of(run: str) -> str:
    """The learning rate of a run, as written."""
    return run.partition("-")[2]


def stacked(table: pa.Table, column: str = "value") -> tuple[Array, Array]:
    """Steps (S,) and a column by seed and step (seeds, S); NaN where a seed lacks a step, or is not finite."""
    steps = sorted(set(table["step"].to_pylist()))
    seeds = sorted(set(table["seed"].to_pylist()))
    found = np.full((len(seeds), len(steps)), np.nan)
    places: Mapping[Any, int] = {step: place for place, step in enumerate(steps)}
    names = ("seed", "step", column)
    for seed, step, value in zip(*(table[n].to_pylist() for n in names), strict=True):
        if value is not None and abs(value) < FINITE:
            found[seeds.index(seed), places[step]] = value
    return np.array(steps, dtype=float), found


def mean_and_band(values: Array) -> tuple[Array, Array]:
    """Mean over seeds (rows) and half of its 95% t interval, 0 for a single seed."""
    n = values.shape[0]
    mean = values.mean(axis=0)
    if n < 2:
        return mean, np.zeros_like(mean)
    return mean, stats.t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)


def curve(axis: Axes, table: pa.Table, run: str, column: str = "value", *, label: str | None = None) -> None:
    """Draw a run's mean over seeds with its band."""
    steps, values = stacked(where(table, run=run), column)
    if not len(steps):
        return
    mean, half = mean_and_band(values)
    look = LOOKS[arm_of(run)]
    every = max(1, len(steps) // 8)
    axis.plot(steps, mean, label=label or ARM_NAMES[arm_of(run)], markevery=every, **look)
    axis.fill_between(steps, mean - half, mean + half, alpha=0.15, color=look["color"], linewidth=0)

"""The study's figures of steps against batch size, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.methods.sweeps import bootstrap_scaling, fit_scaling
from restudy.plotting.style import figure, style
from restudy.studies.batch_size.drawing import (
    LOOKS,
    NAMES,
    curves,
    first_steps_table,
    geometric_mean,
    log_axes,
    perfect_scaling,
    styled,
    workloads_of,
)
from restudy.studies.batch_size.rate_figures import learning_rates, search_box
from restudy.studies.batch_size.side_figures import budgets_figure, example_cost, noise_figure
from restudy.studies.batch_size.tidy import HALF, MOMENTUM
from restudy.studies.batch_size.trials import outcomes
from restudy.tables import levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "budgets_figure",
    "data_size",
    "example_cost",
    "learning_rates",
    "models",
    "noise_figure",
    "optimizers",
    "search_box",
    "steps_by_workload",
]
Tables = Mapping[str, pa.Table]
DRAWS = 100


def steps_by_workload(tables: Tables) -> Figure:
    """One panel per workload: S(B) of every replicate, the geometric mean, two further goals, perfect scaling."""
    names = workloads_of(tables)
    columns = min(2 if len(names) < 5 else 3, len(names))
    rows = -(-len(names) // columns)
    with style():
        drawn, axes = figure(2.3 * rows, rows=rows, columns=columns)
        for axis, name in zip(axes.flat, names, strict=False):
            for metric, alpha in (("steps_easier", 0.35), ("steps_harder", 0.35), ("steps", 1.0)):
                sizes, steps = curves(tables, name, metric)
                axis.plot(sizes, geometric_mean(steps), **styled(name, alpha=alpha, marker=""))
            for own in steps:
                axis.plot(sizes, own, linestyle="", color=LOOKS[name]["color"], marker=".", alpha=0.6)
            sizes, tested = curves(tables, name, "steps_test")
            axis.plot(sizes, geometric_mean(tested), color="0.3", linewidth=0.8, linestyle=":")
            perfect_scaling(axis, sizes, geometric_mean(steps)[0])
            axis.set_title(NAMES[name])
        log_axes(axes.flat[: len(names)], xlabel="batch size", ylabel="steps to the goal")
        for axis in axes.flat[len(names) :]:
            axis.set_axis_off()
    return drawn


def optimizers(tables: Tables) -> Figure:
    """S(B) with fitted curves, and B_crit of every replicate with its interval over resampled trials."""
    names = [n for n in workloads_of(tables) if n.startswith("fashion-mlp64-")]
    with style():
        drawn, axes = figure(2.9, columns=2, width_ratios=[1.5, 1])
        left, right = axes[0]
        for name in names:
            _fitted(left, tables, name)
        log_axes([left], xlabel="batch size", ylabel="steps to the goal")
        left.legend()
        for place, name in enumerate(names):
            for i, seed in enumerate(levels(tables["trials"])):
                found = bootstrap_scaling(first_steps_table(outcomes(tables, name, seed)), draws=DRAWS, seed=seed)
                x = place + 0.12 * (i - 2)
                right.plot([x, x], found.b_crit, color=LOOKS[name]["color"], linewidth=0.8)
                right.plot(x, found.fit.b_crit, color=LOOKS[name]["color"], marker=LOOKS[name]["marker"])
        right.set_xticks(range(len(names)), [NAMES[n].rpartition(", ")[2] for n in names])
        right.set(yscale="log", ylabel="critical batch size")
    return drawn


def _fitted(axis: Axes, tables: Tables, name: str) -> None:
    """Geometric mean over replicates, and the curve fitted to it."""
    sizes, steps = curves(tables, name)
    mean = geometric_mean(steps)
    axis.plot(sizes, mean, **styled(name, linestyle="", label=NAMES[name]))
    fit = fit_scaling(sizes.astype(np.float64), mean)
    if np.isfinite(fit.b_crit):
        dense = np.geomspace(sizes[0], sizes[-1], 100)
        axis.plot(dense, [fit.steps(b) for b in dense], **styled(name, marker=""))
        perfect_scaling(axis, sizes, fit.s_min * fit.b_crit / sizes[0])


def models(tables: Tables) -> Figure:
    """S(B) over S at the smallest batch for every workload."""
    with style():
        drawn, axes = figure(3.2)
        axis = axes[0, 0]
        for name in workloads_of(tables):
            sizes, steps = curves(tables, name)
            axis.plot(sizes, geometric_mean(steps / steps[:, :1]), label=NAMES[name], **LOOKS[name])
            perfect_scaling(axis, sizes, 1.0)
        log_axes([axis], xlabel="batch size", ylabel="steps over those at the smallest batch")
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawn


def data_size(tables: Tables) -> Figure:
    """S(B) with all and with half of the training images."""
    names = [n for n in (MOMENTUM, HALF) if n in workloads_of(tables)]
    with style():
        drawn, axes = figure(3.0)
        for name in names:
            _fitted(axes[0, 0], tables, name)
        log_axes([axes[0, 0]], xlabel="batch size", ylabel="steps to the goal")
        if names:
            axes[0, 0].legend()
    return drawn

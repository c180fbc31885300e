"""Figures of one sweep, from its tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.methods.sweeps.fit import Interval
from restudy.methods.sweeps.measurements import (
    COMPLETE,
    INFEASIBLE,
    Better,
    apply_example_budget,
    apply_step_budget,
    best_errors,
)
from restudy.methods.sweeps.validity import OUTER
from restudy.plotting.style import COLOURS, MARKERS, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from restudy.methods.sweeps.search import Range

GUIDE: dict[str, Any] = {"color": "0.4", "linestyle": "--", "linewidth": 0.8}


def steps_figure(curve: pa.Table, trials: pa.Table, fit: Interval) -> Figure:
    """Steps to the goal against the batch size: all complete trials, the best, the fit, perfect scaling."""
    sizes, steps = curve["batch_size"].to_numpy(), curve["steps"].to_numpy()
    complete = pc.equal(trials["status"], COMPLETE).to_numpy(zero_copy_only=False)
    with style():
        drawn, axes = figure(3.2)
        axis = axes[0, 0]
        all_sizes, all_steps = trials["batch_size"].to_numpy()[complete], trials["steps"].to_numpy()[complete]
        axis.plot(all_sizes, all_steps, linestyle="", marker=".", color="0.6", label="trials that reach it")
        axis.plot(sizes, steps, color=COLOURS[0], marker=MARKERS[0], label="the fastest")
        known = ~np.isnan(steps)
        if known.any():
            first = int(np.flatnonzero(known)[0])
            axis.plot(sizes, steps[first] * sizes[first] / sizes, label="perfect scaling", **GUIDE)
        if np.isfinite(fit.fit.b_crit):
            dense = np.geomspace(sizes[0], sizes[-1], 100)
            label = f"fit, critical batch {fit.fit.b_crit:.3g}"
            axis.plot(dense, [fit.fit.steps(b) for b in dense], color=COLOURS[1], linewidth=1, label=label)
        _log(axis, "steps to the goal")
        axis.legend()
    return drawn


def rates_figure(curve: pa.Table) -> Figure:
    """Best effective learning rate, learning rate and 1 - momentum, with the linear and the square-root rule."""
    sizes = curve["batch_size"].to_numpy()
    with style():
        drawn, axes = figure(2.6, columns=3)
        for axis, column in zip(axes[0], ("effective_learning_rate", "learning_rate", "momentum"), strict=True):
            values = curve[column].to_numpy()
            values = 1 - values if column == "momentum" else values
            axis.plot(sizes, values, color=COLOURS[0], marker=MARKERS[0])
            known = np.flatnonzero(~np.isnan(values))
            if column != "momentum" and len(known):
                start = known[0]
                for exponent, dash in ((1.0, "--"), (0.5, ":")):
                    guide = values[start] * (sizes / sizes[start]) ** exponent
                    axis.plot(sizes, guide, **{**GUIDE, "linestyle": dash})
            _log(axis, "1 - momentum" if column == "momentum" else column.replace("_", " "))
    return drawn


def box_figure(trials: pa.Table, box: Mapping[str, Range]) -> Figure:
    """The searched box, one panel per batch size: colour is steps over the best, crosses diverged."""
    sizes = sorted(set(trials["batch_size"].to_pylist()))
    columns = min(3, len(sizes))
    rows = -(-len(sizes) // columns)
    with style():
        drawn, axes = figure(2.2 * rows, rows=rows, columns=columns, sharex=True, sharey=True)
        for axis, size in zip(axes.flat, sizes, strict=False):
            _panel(axis, trials.filter(pc.equal(trials["batch_size"], size)), box)
            axis.set_title(f"B = {size}")
        for axis in axes.flat[len(sizes) :]:
            axis.set_axis_off()
        for axis in axes[-1]:
            axis.set_xlabel("effective learning rate")
        for axis in axes[:, 0]:
            axis.set_ylabel("1 - momentum" if "one_minus_momentum" in box else "")
    return drawn


def _panel(axis: Axes, trials: pa.Table, box: Mapping[str, Range]) -> None:
    rates, steps = trials["effective_learning_rate"].to_numpy(), trials["steps"].to_numpy()
    rest, status = 1 - trials["momentum"].to_numpy(), np.array(trials["status"].to_pylist())
    reached = (status == COMPLETE) & ~np.isnan(steps)
    lost = status == INFEASIBLE
    empty = ~reached & ~lost
    axis.plot(rates[lost], rest[lost], linestyle="", marker="x", color="0.5")
    axis.plot(rates[empty], rest[empty], linestyle="", marker="o", markerfacecolor="none", color="0.5")
    if reached.any():
        ratio = steps[reached] / max(float(steps[reached].min()), 1.0)
        axis.scatter(rates[reached], rest[reached], c=ratio, s=14, cmap="viridis", norm="log", vmin=1, vmax=16)
    ends = box["effective_learning_rate"]
    width = (ends.high / ends.low) ** OUTER
    for low, high in ((ends.low, ends.low * width), (ends.high / width, ends.high)):
        axis.axvspan(low, high, color="0.5", alpha=0.2, linewidth=0)
    axis.set(xscale="log", yscale="log", xlim=(ends.low, ends.high))
    if "one_minus_momentum" in box:
        axis.set_ylim(box["one_minus_momentum"].low, box["one_minus_momentum"].high)


def budgets_figure(measurements: pa.Table, trials: pa.Table, better: Better) -> Figure:
    """Best value against the batch size with the whole budget, the same steps and the same examples."""
    limits = dict(zip(trials["batch_size"].to_pylist(), trials["step_budget"].to_pylist(), strict=True))
    steps, examples = min(limits.values()), min(b * s for b, s in limits.items())
    parts: dict[str, Any] = {
        "whole budget": measurements,
        f"{steps:,} steps": apply_step_budget(measurements, steps),
        f"{examples:,} examples": apply_example_budget(measurements, examples),
    }
    with style():
        drawn, axes = figure(2.8)
        for (label, rows), colour, marker in zip(parts.items(), COLOURS, MARKERS, strict=False):
            best = best_errors(rows, metric="value", better=better)
            x, y = best["batch_size"].to_numpy(), best["value"].to_numpy()
            axes[0, 0].plot(x, y, color=colour, marker=marker, label=label)
        axes[0, 0].set_xscale("log", base=2)
        axes[0, 0].set(xlabel="batch size", ylabel="best value")
        axes[0, 0].legend()
    return drawn


def _log(axis: Axes, label: str) -> None:
    """Log scales; the height stays linear where nothing above 0 was drawn, as when no trial reached the goal."""
    axis.set_xscale("log", base=2)
    axis.set(xlabel="batch size", ylabel=label)
    if any((np.asarray(line.get_ydata(), float) > 0).any() for line in axis.lines):
        axis.set_yscale("log")

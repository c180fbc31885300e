"""Figures of learning rates: the best at every batch size, the rules, and the searched box. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restudy.methods.sweeps import COMPLETE, INFEASIBLE
from restudy.methods.sweeps.validity import OUTER
from restudy.plotting.style import COLOURS, figure, style
from restudy.studies.batch_size.drawing import GUIDE, NAMES, geometric_mean, styled, workloads_of
from restudy.studies.batch_size.tidy import MOMENTUM, SGD
from restudy.studies.batch_size.trials import (
    best_trials,
    budgets,
    capped_steps,
    column,
    ends_of,
    expected_log_least,
    outcomes,
)
from restudy.tables import Tables, levels, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KINDS = {"linear": "linear rule", "square_root": "square-root rule", "frozen": "frozen rates", "rerun": "best again"}


def learning_rates(tables: Tables) -> Figure:
    """Best rates against the batch size with both rules as guides, and steps by rule over tuned steps."""
    names = [n for n in (SGD, MOMENTUM) if n in workloads_of(tables)]
    with style():
        drawn, axes = figure(4.8, rows=2, columns=2)
        panels = (
            ("effective_learning_rate", "effective learning rate"),
            ("learning_rate", "learning rate"),
            ("momentum", "1 - momentum"),
        )
        for axis, (rate, label) in zip(axes.flat, panels, strict=False):
            for name in names if rate != "momentum" else names[1:]:
                _best_rates(axis, tables, name, rate)
            axis.set_xscale("log", base=2)
            axis.set(yscale="log", ylabel=label, xlabel="batch size")
        axes[0, 0].legend()
        _rule_steps(axes[1, 1], tables)
    return drawn


def _best_rates(axis: Axes, tables: Tables, name: str, rate: str) -> None:
    sizes = list(budgets(tables, name))
    found = []
    for seed in levels(tables["trials"]):
        best = best_trials(tables, name, seed)
        own = [best.get(b, {}).get(rate, np.nan) for b in sizes]
        found.append([1 - v for v in own] if rate == "momentum" else own)
    values, x = np.array(found), np.array(sizes)
    for one in values:
        axis.plot(x, one, linestyle="", marker=".", color=styled(name)["color"], alpha=0.5)
    mean = geometric_mean(values)
    axis.plot(x, mean, label=NAMES[name], **styled(name, marker=""))
    if rate != "momentum":
        for exponent in (0.5, 1.0):
            axis.plot(x, mean[0] * (x / x[0]) ** exponent, **{**GUIDE, "linestyle": ":" if exponent < 1 else "--"})


def _rule_steps(axis: Axes, tables: Tables) -> None:
    """Steps of each kind of follow-up over the expected least of as many random trials of the search, by batch size."""
    if MOMENTUM not in workloads_of(tables):
        axis.set_axis_off()
        return
    limits = budgets(tables, MOMENTUM)
    for (kind, label), colour in zip(KINDS.items(), COLOURS, strict=False):
        ratios = []
        for seed in levels(tables["trials"]):
            searched, own = (outcomes(tables, MOMENTUM, seed, kind=k) for k in ("search", kind))
            ratios.append([_ratio(where(searched, batch_size=b), where(own, batch_size=b), limits[b]) for b in limits])
        axis.plot(list(limits), geometric_mean(np.array(ratios)), color=colour, marker=".", label=label)
    axis.axhline(1, **GUIDE)
    axis.set_xscale("log", base=2)
    axis.set(yscale="log", xlabel="batch size", ylabel="steps over tuned steps")
    axis.legend()


def _ratio(searched: Any, own: Any, limit: int) -> float:
    if not own.num_rows:
        return float("nan")
    tuned = expected_log_least(capped_steps(searched, limit), own.num_rows)
    return float(capped_steps(own, limit).min() / np.exp(tuned))


def search_box(tables: Tables) -> Figure:
    """Scatter of effective learning rate and 1 - m, one panel per batch size, all replicates."""
    name = MOMENTUM if MOMENTUM in workloads_of(tables) else workloads_of(tables)[0]
    sizes = list(budgets(tables, name))
    columns = min(3, len(sizes))
    rows = -(-len(sizes) // columns)
    box = [ends_of(tables, name, m) for m in ("effective_learning_rate", "one_minus_momentum")]
    with style():
        drawn, axes = figure(2.1 * rows, rows=rows, columns=columns, sharex=True, sharey=True)
        shown: Any = None
        for axis, size in zip(axes.flat, sizes, strict=False):
            for seed in levels(tables["trials"]):
                shown = _scatter(axis, where(outcomes(tables, name, seed), batch_size=size)) or shown
            for ends, span in zip(box, (axis.axvspan, axis.axhspan), strict=True):
                width = (ends[1] / ends[0]) ** OUTER
                for low, high in ((ends[0], ends[0] * width), (ends[1] / width, ends[1])):
                    span(low, high, color="0.5", alpha=0.2, linewidth=0)
            axis.set(xscale="log", yscale="log", xlim=box[0], ylim=box[1], title=f"B = {size}")
        for axis in axes.flat[len(sizes) :]:
            axis.set_axis_off()
        for axis in axes[-1]:
            axis.set_xlabel("effective learning rate")
        for axis in axes[:, 0]:
            axis.set_ylabel("1 - momentum")
        if shown is not None:
            drawn.colorbar(shown, ax=axes.ravel().tolist(), label="steps over the best", shrink=0.8)
    return drawn


def _scatter(axis: Axes, trials: Any) -> Any:
    rate, rest, steps = (column(trials, n) for n in ("effective_learning_rate", "momentum", "steps"))
    rest = 1 - rest
    status = np.array(trials["status"].to_pylist())
    reached = (status == COMPLETE) & ~np.isnan(steps)
    never = (status == COMPLETE) & np.isnan(steps)
    lost = status == INFEASIBLE
    axis.plot(rate[lost], rest[lost], linestyle="", marker="x", color="0.5", markersize=3)
    axis.plot(rate[never], rest[never], linestyle="", marker="o", markersize=3, markerfacecolor="none", color="0.5")
    if not reached.any():
        return None
    ratio = np.log2(steps[reached] / steps[reached].min())
    return axis.scatter(rate[reached], rest[reached], c=2**ratio, s=10, cmap="viridis", norm="log", vmin=1, vmax=16)

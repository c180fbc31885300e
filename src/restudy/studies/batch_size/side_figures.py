"""Figures beside the curves: error under budgets, noise scale, cost of an example. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from restudy.methods.sweeps import fit_scaling, noise_scale
from restudy.plotting.style import COLOURS, MARKERS, figure, style
from restudy.studies.batch_size.drawing import GUIDE, LOOKS, NAMES, curves, workloads_of
from restudy.studies.batch_size.tidy import SGD
from restudy.studies.batch_size.trials import budgets, errors_under, shared_budgets
from restudy.tables import Tables, levels, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def budgets_figure(tables: Tables) -> Figure:
    """Best validation error against the batch size under three budgets, plain SGD."""
    name = SGD if SGD in workloads_of(tables) else workloads_of(tables)[0]
    steps, examples = shared_budgets(tables, name)
    labels = {"none": "whole budget", "steps": f"{steps:,} steps", "epochs": f"{examples:,} examples"}
    with style():
        drawn, axes = figure(3.0)
        axis = axes[0, 0]
        for (budget, label), colour, marker in zip(labels.items(), COLOURS, MARKERS, strict=False):
            found = [errors_under(tables, name, budget, seed) for seed in levels(tables["trials"])]
            sizes = list(budgets(tables, name))
            values = np.array([[one.get(b, np.nan) for b in sizes] for one in found])
            axis.errorbar(sizes, values.mean(0), _half(values), color=colour, marker=marker, capsize=2, label=label)
        axis.set_xscale("log", base=2)
        axis.set(xlabel="batch size", ylabel="best validation error")
        axis.legend()
    return drawn


def _half(values: Any) -> Any:
    """Half of the 95% t interval over the first axis; 0 for one value."""
    n = len(values)
    if n < 2:
        return np.zeros(values.shape[1])
    return stats.t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / np.sqrt(n)


def noise_figure(tables: Tables) -> Figure:
    """The simple noise scale along training, and its average against B_crit."""
    names = workloads_of(tables)
    with style():
        drawn, axes = figure(2.9, columns=2)
        left, right = axes[0]
        ends = [np.inf, 0.0]
        for name in names:
            simple = []
            for seed in levels(tables["trials"]):
                rows = where(tables["noise"], workload=name, seed=seed)
                small, big = (where(rows, metric=m).sort_by("step") for m in ("small_norm", "big_norm"))
                if not small.num_rows:
                    continue
                pair = small["value"].to_numpy(), big["value"].to_numpy()
                sizes = {n: rows[n][0].as_py() for n in ("small_batch", "big_batch")}
                each = [noise_scale([a], [b], **sizes).simple for a, b in zip(*pair, strict=True)]
                share = small["step"].to_numpy() / small["step"].to_numpy()[-1]
                left.plot(share, each, color=LOOKS[name]["color"], linewidth=0.7, alpha=0.7)
                known = np.isfinite(pair[0]) & np.isfinite(pair[1])
                value = noise_scale(pair[0][known], pair[1][known], **sizes).simple if known.any() else np.nan
                simple.append((seed, value))
            batches, steps = curves(tables, name)
            own = dict(zip(levels(tables["trials"]), steps, strict=True))
            simple = [pair for pair in simple if not np.isnan(own[pair[0]]).any()]
            bends = [fit_scaling(batches.astype(np.float64), own[seed]).b_crit for seed, _ in simple]
            values = [value for _, value in simple]
            look = {**LOOKS[name], "linestyle": ""}
            right.plot(bends, values, label=NAMES[name], alpha=0.8, **look)
            finite = [v for v in bends if np.isfinite(v)]
            ends = [min([ends[0], *finite]), max([ends[1], *finite])]
        if np.isfinite(ends[0]):
            x = np.array([ends[0] / 2, ends[1] * 2])
            right.plot(x, x, **GUIDE)
            right.fill_between(x, x / 10, x * 10, color="0.5", alpha=0.15, linewidth=0)
        left.set(yscale="log", xlabel="share of the steps to the goal", ylabel="simple noise scale")
        right.set(xscale="log", yscale="log", xlabel="critical batch size", ylabel="simple noise scale, average")
        right.legend(fontsize=7)
    return drawn


def example_cost(tables: Tables) -> Figure:
    """Microseconds of CPU time per example against the batch size."""
    rows = where(tables["timings"], metric="cpu_per_step")
    with style():
        drawn, axes = figure(2.6)
        axis = axes[0, 0]
        for seed in levels(rows):
            own = where(rows, seed=seed).sort_by("batch_size")
            cost = 1e6 * own["value"].to_numpy() / own["batch_size"].to_numpy()
            axis.plot(own["batch_size"].to_numpy(), cost, color=COLOURS[0], marker=".", linewidth=0.7)
        axis.set_xscale("log", base=2)
        axis.set(yscale="log", xlabel="batch size", ylabel="microseconds per example")
    return drawn

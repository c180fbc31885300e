"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.methods.sweeps import COMPLETE, INFEASIBLE, bootstrap_scaling, fit_scaling, noise_scale
from restudy.methods.sweeps.validity import OUTER
from restudy.plotting.parts import GUIDE, Names, intervals, outer_labels, panels
from restudy.plotting.style import COLOURS, MARKERS
from restudy.tables import Tables, levels, ordered, where

from .trials import (
    HALF,
    MOMENTUM,
    SGD,
    best_trials,
    budgets,
    capped_steps,
    column,
    curve,
    ends_of,
    errors_under,
    expected_log_least,
    outcomes,
    shared_budgets,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = Names(
    {
        "fashion-mlp64-sgd": "MLP 64, SGD",
        "fashion-mlp64-momentum": "MLP 64, momentum",
        "fashion-mlp64-nesterov": "MLP 64, Nesterov",
        "fashion-mlp32-momentum": "MLP 32, momentum",
        "fashion-mlp128x3-momentum": "MLP 3 x 128, momentum",
        "fashion_half-mlp64-momentum": "half of the data, momentum",
        "fashion-softmax-sgd": "softmax regression, SGD",
        "mnist5k-mlp64-sgd": "MNIST digits, MLP 64, SGD",
        "fashion-cnn-momentum": "CNN, momentum",
    }
)
FOLLOWED = {"linear": "linear rule", "square_root": "square-root rule", "frozen": "frozen rates", "rerun": "best again"}
DRAWS = 100


def workloads(tables: Tables) -> list[str]:
    """The workloads of a run in the order of `NAMES`."""
    return NAMES.present(tables["trials"], "workload")


def curves(tables: Tables, workload: str, metric: str = "steps") -> tuple[Any, Any]:
    """Batch sizes (n,) and steps (seeds, n), NaN where the goal was not reached."""
    found = [curve(tables, workload, seed, metric) for seed in levels(tables["trials"])]
    sizes = sorted({b for one in found for b in one})
    return np.array(sizes), np.array([[one.get(b, np.nan) for b in sizes] for one in found])


def geometric_mean(values: Any) -> Any:
    """Over the first axis, leaving out NaN; NaN where nothing is left."""
    logs, known = np.log(values), ~np.isnan(values)
    count = known.sum(0)
    return np.where(count > 0, np.exp(np.where(known, logs, 0).sum(0) / np.maximum(count, 1)), np.nan)


def perfect_scaling(axis: Axes, sizes: Any, first: float) -> None:
    """The dashed guide: steps halve when the batch doubles."""
    axis.plot(sizes, first * sizes[0] / sizes, **GUIDE)


def log_axes(axes: Iterable[Axes], **labels: str) -> None:
    """Both axes logarithmic, the batch size in powers of 2."""
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(**labels)


def first_steps_table(rows: pa.Table) -> pa.Table:
    """What `bootstrap_scaling` takes, from the rows of `outcomes`."""
    return rows.select(["batch_size", "trial_id", "status", "steps"])


def steps(tables: Tables) -> Figure:
    """One panel per workload: S(B) of every replicate, the geometric mean, two further goals, perfect scaling."""
    names = workloads(tables)
    columns = min(2 if len(names) < 5 else 3, len(names))
    rows = -(-len(names) // columns)
    with panels(2.3 * rows, rows=rows, columns=columns) as (drawn, axes):
        for axis, name in zip(axes.flat, names, strict=False):
            for metric, alpha in (("steps_easier", 0.35), ("steps_harder", 0.35), ("steps", 1.0)):
                sizes, steps = curves(tables, name, metric)
                axis.plot(sizes, geometric_mean(steps), **NAMES.styled(name, alpha=alpha, marker=""))
            for own in steps:
                axis.plot(sizes, own, linestyle="", color=NAMES.styles[name]["color"], marker=".", alpha=0.6)
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
    names = [n for n in workloads(tables) if n.startswith("fashion-mlp64-")]
    with panels(2.9, columns=2, width_ratios=[1.5, 1]) as (drawn, axes):
        left, right = axes[0]
        for name in names:
            _fitted(left, tables, name)
        log_axes([left], xlabel="batch size", ylabel="steps to the goal")
        left.legend()
        for place, name in enumerate(names):
            for i, seed in enumerate(levels(tables["trials"])):
                found = bootstrap_scaling(first_steps_table(outcomes(tables, name, seed)), draws=DRAWS, seed=seed)
                x = place + 0.12 * (i - 2)
                right.plot([x, x], found.b_crit, color=NAMES.styles[name]["color"], linewidth=0.8)
                right.plot(x, found.fit.b_crit, color=NAMES.styles[name]["color"], marker=NAMES.styles[name]["marker"])
        right.set_xticks(range(len(names)), [NAMES[n].rpartition(", ")[2] for n in names])
        right.set(yscale="log", ylabel="critical batch size")
    return drawn


def _fitted(axis: Axes, tables: Tables, name: str) -> None:
    """Geometric mean over replicates, and the curve fitted to it."""
    sizes, steps = curves(tables, name)
    mean = geometric_mean(steps)
    axis.plot(sizes, mean, **NAMES.styled(name, linestyle="", label=NAMES[name]))
    fit = fit_scaling(sizes.astype(np.float64), mean)
    if np.isfinite(fit.b_crit):
        dense = np.geomspace(sizes[0], sizes[-1], 100)
        axis.plot(dense, [fit.steps(b) for b in dense], **NAMES.styled(name, marker=""))
        perfect_scaling(axis, sizes, fit.s_min * fit.b_crit / sizes[0])


def models(tables: Tables) -> Figure:
    """S(B) over S at the smallest batch for every workload."""
    with panels(3.2) as (drawn, axes):
        axis = axes[0, 0]
        for name in workloads(tables):
            sizes, steps = curves(tables, name)
            axis.plot(sizes, geometric_mean(steps / steps[:, :1]), label=NAMES[name], **NAMES.styles[name])
            perfect_scaling(axis, sizes, 1.0)
        log_axes([axis], xlabel="batch size", ylabel="steps over those at the smallest batch")
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return drawn


def data_size(tables: Tables) -> Figure:
    """S(B) with all and with half of the training images."""
    names = [n for n in (MOMENTUM, HALF) if n in workloads(tables)]
    with panels(3.0) as (drawn, axes):
        for name in names:
            _fitted(axes[0, 0], tables, name)
        log_axes([axes[0, 0]], xlabel="batch size", ylabel="steps to the goal")
        if names:
            axes[0, 0].legend()
    return drawn


def rates(tables: Tables) -> Figure:
    """Best rates against the batch size with both rules as guides, and steps by rule over tuned steps."""
    names = [n for n in (SGD, MOMENTUM) if n in workloads(tables)]
    with panels(4.8, rows=2, columns=2) as (drawn, axes):
        shown = (
            ("effective_learning_rate", "effective learning rate"),
            ("learning_rate", "learning rate"),
            ("momentum", "1 - momentum"),
        )
        for axis, (rate, label) in zip(axes.flat, shown, strict=False):
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
        axis.plot(x, one, linestyle="", marker=".", color=NAMES.styles[name]["color"], alpha=0.5)
    mean = geometric_mean(values)
    axis.plot(x, mean, label=NAMES[name], **NAMES.styled(name, marker=""))
    if rate != "momentum":
        for exponent in (0.5, 1.0):
            axis.plot(x, mean[0] * (x / x[0]) ** exponent, **{**GUIDE, "linestyle": ":" if exponent < 1 else "--"})


def _rule_steps(axis: Axes, tables: Tables) -> None:
    """Steps of each kind of follow-up over the expected least of as many random trials of the search, by batch size."""
    if MOMENTUM not in workloads(tables):
        axis.set_axis_off()
        return
    limits = budgets(tables, MOMENTUM)
    for (kind, label), colour in zip(FOLLOWED.items(), COLOURS, strict=False):
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


def box(tables: Tables) -> Figure:
    """Scatter of effective learning rate and 1 - m, one panel per batch size, all replicates."""
    name = MOMENTUM if MOMENTUM in workloads(tables) else workloads(tables)[0]
    sizes = list(budgets(tables, name))
    columns = min(3, len(sizes))
    rows = -(-len(sizes) // columns)
    box = [ends_of(tables, name, m) for m in ("effective_learning_rate", "one_minus_momentum")]
    with panels(2.1 * rows, rows=rows, columns=columns, sharex=True, sharey=True) as (drawn, axes):
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
        outer_labels(axes, "effective learning rate", "1 - momentum")
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


def errors(tables: Tables) -> Figure:
    """Best validation error against the batch size under three budgets, plain SGD."""
    name = SGD if SGD in workloads(tables) else workloads(tables)[0]
    steps, examples = shared_budgets(tables, name)
    labels = {"none": "whole budget", "steps": f"{steps:,} steps", "epochs": f"{examples:,} examples"}
    with panels(3.0) as (drawn, axes):
        axis = axes[0, 0]
        for (budget, label), colour, marker in zip(labels.items(), COLOURS, MARKERS, strict=False):
            found = [errors_under(tables, name, budget, seed) for seed in levels(tables["trials"])]
            sizes = list(budgets(tables, name))
            values = np.array([[one.get(b, np.nan) for b in sizes] for one in found])
            axis.errorbar(sizes, *intervals(values.T), color=colour, marker=marker, capsize=2, label=label)
        axis.set_xscale("log", base=2)
        axis.set(xlabel="batch size", ylabel="best validation error")
        axis.legend()
    return drawn


def noise(tables: Tables) -> Figure:
    """The simple noise scale along training, and its average against B_crit."""
    names = workloads(tables)
    with panels(2.9, columns=2) as (drawn, axes):
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
                left.plot(share, each, color=NAMES.styles[name]["color"], linewidth=0.7, alpha=0.7)
                known = np.isfinite(pair[0]) & np.isfinite(pair[1])
                value = noise_scale(pair[0][known], pair[1][known], **sizes).simple if known.any() else np.nan
                simple.append((seed, value))
            batches, steps = curves(tables, name)
            own = dict(zip(levels(tables["trials"]), steps, strict=True))
            simple = [pair for pair in simple if not np.isnan(own[pair[0]]).any()]
            bends = [fit_scaling(batches.astype(np.float64), own[seed]).b_crit for seed, _ in simple]
            values = [value for _, value in simple]
            look = {**NAMES.styles[name], "linestyle": ""}
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


def cost(tables: Tables) -> Figure:
    """Microseconds of CPU time per example against the batch size."""
    rows = where(tables["timings"], metric="cpu_per_step")
    with panels(2.6) as (drawn, axes):
        axis = axes[0, 0]
        for seed in levels(rows):
            sizes, seconds = ordered(rows, "batch_size", seed=seed)
            axis.plot(sizes, 1e6 * seconds / sizes, color=COLOURS[0], marker=".", linewidth=0.7)
        axis.set_xscale("log", base=2)
        axis.set(yscale="log", xlabel="batch size", ylabel="microseconds per example")
    return drawn

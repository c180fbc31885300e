"""Draw the study's figures from its tables. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.parts import Names, band, legend_below, outer_labels, over_seeds, panels, stacked, ticks_at
from restudy.tables import Array, Tables, levels, where

from .statistics import BN, NOISY, RATE, STD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARMS = Names(
    std="plain",
    bn="batch norm",
    noisy="noisy batch norm",
    std_noise="plain with noise",
    l1="l1 norm",
    l2="l2 norm",
    linf="l-infinity norm",
)
PROBED = (STD, BN, NOISY)
SHIFT = {"shift_cosine": "cosine", "shift_l2": "distance"}
DRIFT = {"mean_change": "change of means\nin one step", "variance_change": "change of variances\nin one step"}
LANDSCAPE = ("loss", "gradient's change", "effective smoothness")
QUANTILES = (0.005, 0.995)
OVERLAP = 1.8
"""Height of a ridge over the distance to the next."""
TOLERANCES = {
    "theorem_error": ("theorem 4.1 with 1/m, relative deviation", 1e-10),
    "observation_gap": ("observation 4.3, relative deviation", 1e-10),
    "gradient_excess": ("gradient behind batch norm larger, by", 1e-12),
    "missing_part_error": ("missing part of the gradient, deviation", 1e-10),
    "weight_bound_error": ("largest weight gradient, deviation", 1e-10),
    "weight_bound_excess": ("largest weight gradient larger, by", 1e-12),
    "shift_without_lower_step": ("covariate shift without a lower step", 0.0),
    "printed_bound_holds": ("printed bound (1/sqrt(m)) holds, share of draws", 0.0),
}


def arm_of(run: str) -> str:
    """Return the arm of a run like `std-1e-7`."""
    return run.partition("-")[0]


def rate_of(run: str) -> str:
    """Return the learning rate of a run, as written."""
    return run.partition("-")[2]


def runs_of(table: pa.Table, rate: str, arms: Iterable[str] = ARMS) -> list[str]:
    """List a table's runs at a learning rate in the order of `arms`."""
    found = levels(table, "run")
    return [run for arm in arms if (run := f"{arm}-{rate}") in found]


def rates_of(table: pa.Table, arms: Sequence[str]) -> list[str]:
    """List the learning rates of some arms, smallest first."""
    return sorted({rate_of(run) for run in levels(where(table, arm=tuple(arms)), "run")}, key=float)


def layers_of(table: pa.Table, **columns: object) -> list[str]:
    """List the layers of the chosen rows, lowest first: their names differ by a number."""
    return sorted(levels(where(table, **columns), "layer"), key=lambda name: (len(name), name))


def curve(axis: Axes, table: pa.Table, run: str, value: str = "value", **columns: Any) -> None:
    """Draw a run's mean over seeds by step with its 95% t band."""
    found, arm = over_seeds(table, "step", value, run=run, **columns), arm_of(run)
    band(axis, found, ARMS.styles[arm], ARMS[arm], alpha=0.15, markevery=max(1, len(found.x) // 8))


def accuracy(tables: Tables) -> Figure:
    """Draw train accuracy by step, one panel per learning rate, and test accuracy of the probed runs."""
    curves, arms = tables["curves"], ("std", "bn", "noisy", "std_noise")
    rates = rates_of(curves, arms)
    with panels(2.8, columns=len(rates), sharey=True) as (drawn, axes):
        for axis, rate in zip(axes[0], rates, strict=True):
            for run in runs_of(curves, rate, arms):
                curve(axis, curves, run, "accuracy")
                test = over_seeds(tables["probes"], "step", run=run, metric="test_accuracy")
                if len(test.x):
                    colour = ARMS.styles[arm_of(run)]["color"]
                    axis.plot(test.x, test.mean, linestyle="none", marker=".", color=colour, alpha=0.6)
            axis.set(title=f"learning rate {rate}", xlabel="step", ylim=(0, 1))
        axes[0, 0].set_ylabel("accuracy")
        legend_below(drawn, axes[0, rates.index(RATE) if RATE in rates else 0], 4)
    return drawn


def ridges(tables: Tables) -> Figure:
    """Draw densities of one unit of the first seed by checkpoint, early on top, by layer (rows) and arm (columns)."""
    table = where(tables["activations"], place="input", unit=0)
    table = where(table, seed=levels(table)[0])
    layers = layers_of(table)
    with panels(1.9 * len(layers) + 0.4, len(layers), len(PROBED)) as (drawn, axes):
        for row, layer in zip(axes, layers, strict=True):
            for axis, run in zip(row, PROBED, strict=True):
                rows = where(table, layer=layer, run=run).sort_by("step").to_pylist()
                _ridge(axis, rows, ARMS.styles[arm_of(run)]["color"])
            row[0].set_ylabel(f"{layer}\nstep")
        for axis, run in zip(axes[0], PROBED, strict=True):
            axis.set_title(ARMS[arm_of(run)])
        axes[-1, 1].set_xlabel("activation before the ReLU")
    return drawn


def _ridge(axis: Axes, rows: list[dict[str, Any]], colour: str) -> None:
    """Stack densities, each from its histogram; the axis spans what all of them hold but their outermost tails."""
    rows = [row for row in rows if sum(row["counts"])]
    if not rows:
        return
    ends, densities = [], []
    for row in rows:
        counts = np.array(row["counts"]) / sum(row["counts"])
        edges = np.linspace(row["low"], row["high"], len(counts) + 1)
        share = np.concatenate([[0.0], np.cumsum(row["counts"])]) / sum(row["counts"])
        ends.append(np.interp(QUANTILES, share, edges))
        densities.append((edges, counts / max(edges[1] - edges[0], 1e-12)))
    top = float(np.median([density.max() for _, density in densities]))
    for place, (edges, density) in enumerate(densities):
        height = OVERLAP * np.minimum(density / top, 1.6) * 0.8 - place
        area = {"step": "post", "color": colour, "alpha": 0.55, "linewidth": 0, "zorder": place}
        axis.fill_between(edges, -place, np.append(height, -place), **area)  # type: ignore[arg-type]
        axis.stairs(height, edges, baseline=-place, color="white", linewidth=0.5, zorder=place + 0.5)
    places = range(0, len(rows), max(1, len(rows) // 5))
    axis.set_yticks([-place for place in places], [str(rows[place]["step"]) for place in places])
    low, high = float(np.min(ends)), float(np.max(ends))
    axis.set(xlim=(low, high) if high > low else (low - 1, low + 1))
    axis.grid(False)


def drift(tables: Tables) -> Figure:
    """Draw the change of means and variances in one step on a fixed batch by layer, in units of the layer's spread."""
    table = where(tables["drift"], place="input")
    with panels(4.2, 2, len(layers_of(table, metric="mean_change")), sharex=True, sharey="row") as (drawn, axes):
        _by_layer(axes, table, DRIFT, PROBED)
        legend_below(drawn, axes[0, 0], 3)
    return drawn


def shift(tables: Tables) -> Figure:
    """Draw cosine and distance of the convolutional nets' gradients by step, one column per layer."""
    table = tables["probes"]
    with panels(4.2, 2, len(layers_of(table, metric="shift_cosine")), sharex=True, sharey="row") as (drawn, axes):
        _by_layer(axes, table, SHIFT, runs_of(table, RATE))
        legend_below(drawn, axes[0, 0], 3)
    return drawn


def deep_shift(tables: Tables) -> Figure:
    """Draw the same for the deep linear network, two rows for each learning rate."""
    table, arms = tables["deep_probes"], ("std", "bn")
    rates, layers = rates_of(table, arms), layers_of(table, arm=arms, metric="shift_cosine")
    with panels(3.4 * len(rates), 2 * len(rates), len(layers), sharex=True, sharey="row") as (drawn, axes):
        for place, rate in enumerate(rates):
            _by_layer(axes[2 * place : 2 * place + 2], table, SHIFT, runs_of(table, rate, arms))
            axes[2 * place, 0].set_title(f"{layers[0]}, learning rate {rate}")
        legend_below(drawn, axes[0, 0], 2)
    return drawn


def _by_layer(axes: Array, table: pa.Table, metrics: Mapping[str, str], runs: Iterable[str]) -> None:
    """Draw metrics (rows) by layer (columns): cosines between -1 and 1, the others logarithmic."""
    layers = layers_of(table, metric=next(iter(metrics)))
    for row, (metric, name) in zip(axes, metrics.items(), strict=True):
        for axis, layer in zip(row, layers, strict=True):
            for run in runs:
                curve(axis, table, run, metric=metric, layer=layer)
            if metric == "shift_cosine":
                axis.set_ylim(-1.1, 1.1)
            else:
                axis.set_yscale("log")
        row[0].set_ylabel(name)
    for axis, layer in zip(axes[0], layers, strict=True):
        axis.set_title(layer)
    outer_labels(axes, x="step")


def landscape(tables: Tables) -> Figure:
    """Draw loss range, largest gradient change and effective smoothness by step, convolutional nets."""
    with panels(2.7, columns=3) as (drawn, axes):
        _landscape(axes[0], tables["landscape"], tables["probes"], (STD, BN))
        for axis, title in zip(axes[0], LANDSCAPE, strict=True):
            axis.set(title=title, xlabel="step")
        legend_below(drawn, axes[0, 2], 2)
    return drawn


def deep_landscape(tables: Tables) -> Figure:
    """Draw the same for the deep linear network, one row per learning rate, logarithmic."""
    table, arms = tables["deep_landscape"], ("std", "bn")
    rates = rates_of(table, arms)
    with panels(2.3 * len(rates) + 0.4, len(rates), 3, sharex=True) as (drawn, axes):
        for row, rate in zip(axes, rates, strict=True):
            _landscape(row, table, tables["deep_probes"], [f"{arm}-{rate}" for arm in arms])
            for axis in row:
                axis.set_yscale("log")
            row[0].set_ylabel(f"learning rate {rate}")
        for axis, title in zip(axes[0], LANDSCAPE, strict=True):
            axis.set_title(title)
        outer_labels(axes, x="step")
        legend_below(drawn, axes[0, 2], 2)
    return drawn


def _landscape(axes: Array, table: pa.Table, probes: pa.Table, runs: Iterable[str]) -> None:
    """Draw medians over seeds: lowest and highest loss and gradient change over the step lengths, and smoothness."""
    for run in runs:
        look, lengths = ARMS.styles[arm_of(run)], levels(where(table, run=run), "length")
        for axis, column in zip(axes, ("loss", "gradient_change"), strict=False):
            each = [stacked(table, "step", column, run=run, length=length) for length in lengths]
            if not each:
                continue
            steps, values = each[0][0], np.stack([values for _, values in each])
            low, high = np.median(values.min(axis=0), axis=0), np.median(values.max(axis=0), axis=0)
            axis.fill_between(steps, low, high, alpha=0.3, color=look["color"], linewidth=0)
            axis.plot(steps, high, **look)
            axis.plot(steps, low, color=look["color"], linewidth=0.8)
        steps, smoothness = stacked(probes, "step", run=run, metric="effective_smoothness")
        if len(steps):
            axes[2].plot(steps, np.median(smoothness, axis=0), label=ARMS[arm_of(run)], **look)
    axes[2].set_yscale("log")


def lengths(tables: Tables) -> Figure:
    """Draw the gradient's change over its norm against the step length, at the first probe after 50 steps and the last.

    Medians over seeds.
    """
    table, probes = tables["landscape"], tables["probes"]
    steps = levels(table, "step")
    shown = {"early": next((s for s in steps if s >= 50), steps[-1]), "late": steps[-1]}
    with panels(2.7, columns=2, sharey=True) as (drawn, axes):
        for axis, (name, step) in zip(axes[0], shown.items(), strict=True):
            for run in runs_of(table, RATE):
                x, change = stacked(table, "length", "gradient_change", run=run, step=step)
                _, norm = stacked(probes, "step", run=run, step=step, metric="gradient_norm")
                arm = arm_of(run)
                axis.plot(x, np.median(change / norm, axis=0), label=ARMS[arm], **ARMS.styles[arm])
            axis.set(title=f"{name}: step {step}", xlabel="step length over the learning rate", xscale="log")
            axis.set_yscale("log")
            ticks_at(axis, [0.5, 1, 2, 4])
        axes[0, 0].set_ylabel("change of the gradient\nover its norm at the weights")
        axes[0, 0].legend()
    return drawn


def lp(tables: Tables) -> Figure:
    """Draw train accuracy of the l_p arms beside plain and batch norm, and the deep linear network's loss at 1e-6."""
    curves, deep = tables["curves"], tables["deep_curves"]
    with panels(2.8, columns=2) as (drawn, axes):
        left, right = axes[0]
        for run in runs_of(curves, RATE, [arm for arm in ARMS if arm not in ("noisy", "std_noise")]):
            curve(left, curves, run, "accuracy")
        for run in runs_of(deep, "1e-6"):
            curve(right, deep, run, "loss")
        left.set(xlabel="step", ylabel="train accuracy", title="convolutional nets", ylim=(0, 1))
        right.set(xlabel="step", ylabel="loss, summed", title="deep linear network, 1e-6", yscale="log")
        left.legend(loc="lower right")
    return drawn


def identities(tables: Tables) -> Figure:
    """Write the exact statements with their largest deviation over the draws."""
    cells = []
    for check, (name, allowed) in TOLERANCES.items():
        values = where(tables["identities"], check=check)["value"].to_numpy()
        largest = values.mean() if check.startswith("printed") else values.max()
        cells.append([name, str(len(values)), f"{largest:.1e}", f"{allowed:.0e}" if allowed else "0"])
    titles, widths = ["statement", "draws", "largest", "allowed"], [0.58, 0.12, 0.15, 0.15]
    with panels(2.6) as (drawn, axes):
        axes[0, 0].axis("off")
        shown = axes[0, 0].table(cells, colLabels=titles, loc="center", colWidths=widths, cellLoc="left")
        shown.auto_set_font_size(False)
        shown.set_fontsize(8)
        shown.scale(1, 1.35)
    return drawn

"""Distributions of activations over time: ridges from stored histograms, and the drift of moments. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restudy.plotting.style import figure, style
from restudy.studies.batch_norm.drawing import ARM_NAMES, LOOKS, arm_of, curve, runs_of
from restudy.studies.batch_norm.tidy import BN, NOISY, STD, Tables, layers_of, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARMS = (STD, BN, NOISY)
QUANTILES = (0.005, 0.995)
OVERLAP = 1.8


def ridges(tables: Tables) -> Figure:
    """Densities of one unit of seed 0 by checkpoint, early on top, before the non-linearity; layers by arms."""
    table = where(tables["activations"], place="input", unit=0)
    table = where(table, seed=min(table["seed"].to_pylist()))
    layers = sorted(set(table["layer"].to_pylist()), key=lambda n: int(n.removeprefix("conv")))
    with style():
        drawn, axes = figure(1.9 * len(layers) + 0.4, rows=len(layers), columns=len(ARMS))
        for row, layer in enumerate(layers):
            for column, run in enumerate(ARMS):
                found = where(table, layer=layer, run=run).sort_by("step").to_pylist()
                _ridge(axes[row, column], found, LOOKS[arm_of(run)]["color"])
                axes[row, column].set_title(f"{ARM_NAMES[arm_of(run)]}" if row == 0 else "")
            axes[row, 0].set_ylabel(f"{layer}\nstep")
        axes[-1, 1].set_xlabel("activation before the ReLU")
    return drawn


def _ridge(axis: Axes, rows: list[dict[str, Any]], colour: str) -> None:
    """Stacked densities, each from its histogram; the axis spans what all of them hold but their outermost tails."""
    rows = [row for row in rows if sum(row["counts"])]
    if not rows:
        return
    edges = [np.linspace(row["low"], row["high"], len(row["counts"]) + 1) for row in rows]
    lows, highs = zip(*(_between(row["counts"], e) for row, e in zip(rows, edges, strict=True)), strict=True)
    low, high = min(lows), max(highs)
    density = [
        np.array(row["counts"]) / sum(row["counts"]) / max(e[1] - e[0], 1e-12)
        for row, e in zip(rows, edges, strict=True)
    ]
    top = float(np.median([d.max() for d in density]))
    for place, (e, d) in enumerate(zip(edges, density, strict=True)):
        base = -float(place)
        height = base + OVERLAP * np.minimum(d / top, 1.6) * 0.8
        axis.fill_between(e, base, np.append(height, base), step="post", color=colour, alpha=0.55, linewidth=0,
                          zorder=place)  # fmt: skip
        axis.stairs(height, e, baseline=base, color="white", linewidth=0.5, zorder=place + 0.5)
    every = max(1, len(rows) // 5)
    axis.set_yticks(
        [-p for p in range(0, len(rows), every)], [str(rows[p]["step"]) for p in range(0, len(rows), every)]
    )
    axis.set(xlim=(low, high) if high > low else (low - 1, low + 1))
    axis.grid(False)


def _between(counts: list[int], edges: Any) -> tuple[float, float]:
    """The values between which all but the outermost half per cent on each side lie."""
    share = np.concatenate([[0.0], np.cumsum(counts)]) / sum(counts)
    low, high = np.interp(QUANTILES, share, edges)
    return float(low), float(high)


def drift_curves(tables: Tables) -> Figure:
    """Change of means and variances in one step on a fixed batch by layer, in units of the layer's spread."""
    table = where(tables["drift"], place="input")
    layers = layers_of(table, "mean_change")
    names = {"mean_change": "change of means", "variance_change": "change of variances"}
    with style():
        drawn, axes = figure(4.2, rows=2, columns=len(layers), sharey="row", sharex=True)
        for row, (metric, name) in enumerate(names.items()):
            for axis, layer in zip(axes[row], layers, strict=True):
                chosen = where(table, metric=metric, layer=layer)
                for run in runs_of(chosen):
                    if run in ARMS:
                        curve(axis, chosen, run)
                axis.set_yscale("log")
                axis.set_title(layer if row == 0 else "")
            axes[row, 0].set_ylabel(f"{name}\nin one step")
        for axis in axes[-1]:
            axis.set_xlabel("step")
        drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn

"""Covariate shift and the landscape along the gradient, redrawn from tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.batch_norm.drawing import ARM_NAMES, LOOKS, arm_of, curve, rate_of, runs_of, stacked
from restudy.studies.batch_norm.tidy import BN, RATE, STD, Array, Tables, layers_of, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHIFT = {"shift_cosine": "cosine", "shift_l2": "distance"}
TITLES = ("loss", "gradient's change", "effective smoothness")


def shift_curves(tables: Tables) -> Figure:
    """Cosine and distance of the convolutional nets' gradients by step, one column per layer."""
    table = tables["probes"]
    with style():
        layers = layers_of(table, "shift_cosine")
        drawn, axes = figure(4.2, rows=2, columns=len(layers), sharex=True, sharey="row")
        _shift_rows(axes, table, layers, RATE)
        drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn


def deep_shift_curves(tables: Tables) -> Figure:
    """The same for the deep linear network, two rows for each learning rate."""
    table = where(tables["deep_probes"], arm=("std", "bn"))
    rates = sorted({rate_of(run) for run in runs_of(table)}, key=float)
    with style():
        layers = layers_of(table, "shift_cosine")
        drawn, axes = figure(3.4 * len(rates), rows=2 * len(rates), columns=len(layers), sharex=True, sharey="row")
        for place, rate in enumerate(rates):
            _shift_rows(axes[2 * place : 2 * place + 2], table, layers, rate)
            axes[2 * place, 0].set_title(f"{layers[0]}, learning rate {rate}")
        drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawn


def _shift_rows(axes: np.ndarray, table: pa.Table, layers: list[str], rate: str) -> None:
    for row, (metric, name) in enumerate(SHIFT.items()):
        for axis, layer in zip(axes[row], layers, strict=True):
            chosen = where(table, metric=metric, layer=layer)
            for run in runs_of(chosen):
                if rate_of(run) == rate:
                    curve(axis, chosen, run)
            axis.set_title(layer if row == 0 else "")
            if metric == "shift_cosine":
                axis.set_ylim(-1.1, 1.1)
            else:
                axis.set_yscale("log")
                axis.set_xlabel("step")
        axes[row, 0].set_ylabel(name)


def bands(tables: Tables) -> Figure:
    """Loss range, largest gradient change and effective smoothness by step, convolutional nets."""
    with style():
        drawn, axes = figure(2.7, columns=3)
        _landscape(axes[0], tables["landscape"], tables["probes"], (STD, BN))
        for axis, title in zip(axes[0], TITLES, strict=True):
            axis.set(title=title, xlabel="step")
        drawn.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawn


def deep_bands(tables: Tables) -> Figure:
    """The same for the deep linear network, one row per learning rate, logarithmic."""
    table = where(tables["deep_landscape"], arm=("std", "bn"))
    rates = sorted({rate_of(run) for run in runs_of(table)}, key=float)
    with style():
        drawn, axes = figure(2.3 * len(rates) + 0.4, rows=len(rates), columns=3, sharex=True)
        for row, rate in enumerate(rates):
            _landscape(axes[row], table, tables["deep_probes"], (f"std-{rate}", f"bn-{rate}"))
            for axis, title in zip(axes[row], TITLES, strict=True):
                axis.set(title=title if row == 0 else "", yscale="log")
            axes[row, 0].set_ylabel(f"learning rate {rate}")
        for axis in axes[-1]:
            axis.set_xlabel("step")
        drawn.legend(*axes[0, 2].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return drawn


def _landscape(axes: np.ndarray, table: pa.Table, probes: pa.Table, runs: tuple[str, ...]) -> None:
    for run in runs:
        look, mine = LOOKS[arm_of(run)], where(table, run=run)
        for axis, column in zip(axes, ("loss", "gradient_change"), strict=False):
            steps, low, high = _range(mine, column)
            axis.fill_between(steps, low, high, alpha=0.3, color=look["color"], linewidth=0)
            axis.plot(steps, high, **look)
            axis.plot(steps, low, color=look["color"], linewidth=0.8)
        steps, values = stacked(where(probes, run=run, metric="effective_smoothness"))
        if len(steps):
            axes[2].plot(steps, np.median(values, axis=0), label=ARM_NAMES[arm_of(run)], **look)
    axes[2].set_yscale("log")


def _range(table: pa.Table, column: str) -> tuple[Array, Array, Array]:
    """Steps, and the median over seeds of the lowest and highest value over the step lengths."""
    lengths = sorted(set(table["length"].to_pylist()))
    each = [stacked(where(table, length=length), column) for length in lengths]
    if not each:
        return np.array([]), np.array([]), np.array([])
    values = np.stack([v for _, v in each])
    return each[0][0], np.median(values.min(axis=0), axis=0), np.median(values.max(axis=0), axis=0)


def change_by_length(tables: Tables) -> Figure:
    """The gradient's change over its norm against the step length, at the first probe after 50 steps and the last."""
    table = tables["landscape"]
    steps = sorted(set(table["step"].to_pylist()))
    shown = {"early": next((s for s in steps if s >= 50), steps[-1]), "late": steps[-1]}
    with style():
        drawn, axes = figure(2.7, columns=2, sharey=True)
        for axis, (name, step) in zip(axes[0], shown.items(), strict=True):
            for run in runs_of(table):
                if rate_of(run) == RATE:
                    start = where(tables["probes"], run=run, step=step, metric="gradient_norm")
                    _by_length(axis, where(table, run=run, step=step), start, run)
            axis.set(title=f"{name}: step {step}", xlabel="step length over the learning rate", xscale="log",
                     yscale="log")  # fmt: skip
            axis.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
            axis.minorticks_off()
        axes[0, 0].set_ylabel("change of the gradient\nover its norm at the weights")
        axes[0, 0].legend()
    return drawn


def _by_length(axis: Axes, table: pa.Table, start: pa.Table, run: str) -> None:
    sizes = dict(zip(start["seed"].to_pylist(), start["value"].to_pylist(), strict=True))
    lengths = sorted(set(table["length"].to_pylist()))
    middle = []
    for length in lengths:
        rows = where(table, length=length).to_pylist()
        middle.append(float(np.median([row["gradient_change"] / sizes[row["seed"]] for row in rows])))
    axis.plot(lengths, middle, label=ARM_NAMES[arm_of(run)], **LOOKS[arm_of(run)])

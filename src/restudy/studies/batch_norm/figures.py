"""Accuracy curves and the table of identities, redrawn from tables. No torch.

Activations stand in `activation_figures`, landscapes and covariate shift in `landscape_figures`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from restudy.plotting.style import figure, style
from restudy.studies.batch_norm.drawing import LOOKS, arm_of, curve, rate_of, runs_of, stacked
from restudy.studies.batch_norm.tidy import RATE, Tables, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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


def accuracy_curves(tables: Tables) -> Figure:
    """Train accuracy by step, one panel per learning rate, and test accuracy of the probed runs."""
    curves, probes = tables["curves"], tables["probes"]
    runs = [run for run in runs_of(curves) if arm_of(run) in ("std", "bn", "noisy", "std_noise")]
    rates = sorted({rate_of(run) for run in runs}, key=float)
    with style():
        drawn, axes = figure(2.8, columns=len(rates), sharey=True)
        for axis, rate in zip(axes[0], rates, strict=True):
            for run in (r for r in runs if rate_of(r) == rate):
                curve(axis, curves, run, "accuracy")
                steps, test = stacked(where(probes, run=run, metric="test_accuracy"))
                if len(steps):
                    look = LOOKS[arm_of(run)]
                    axis.plot(steps, test.mean(axis=0), linestyle="none", marker=".", color=look["color"], alpha=0.6)
            axis.set(title=f"learning rate {rate}", xlabel="step", ylim=(0, 1))
        axes[0, 0].set_ylabel("accuracy")
        main = axes[0, rates.index(RATE) if RATE in rates else 0]
        drawn.legend(*main.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return drawn


def lp_curves(tables: Tables) -> Figure:
    """Train accuracy of the l_p arms beside plain and batch norm, and the deep linear network's loss at 1e-6."""
    with style():
        drawn, axes = figure(2.8, columns=2)
        left, right = axes[0]
        for run in runs_of(tables["curves"]):
            if rate_of(run) == RATE and arm_of(run) not in ("noisy", "std_noise"):
                curve(left, tables["curves"], run, "accuracy")
        for run in runs_of(tables["deep_curves"]):
            if rate_of(run) == "1e-6":
                curve(right, tables["deep_curves"], run, "loss")
        left.set(xlabel="step", ylabel="train accuracy", title="convolutional nets", ylim=(0, 1))
        right.set(xlabel="step", ylabel="loss, summed", title="deep linear network, 1e-6", yscale="log")
        left.legend(loc="lower right")
    return drawn


def identity_table(tables: Tables) -> Figure:
    """The exact statements with their largest deviation over the draws."""
    table, cells = tables["identities"], []
    for check, (name, allowed) in TOLERANCES.items():
        values = where(table, check=check)["value"]
        largest = float(np.mean(values.to_numpy())) if check.startswith("printed") else float(pc.max(values).as_py())
        cells.append([name, str(len(values)), f"{largest:.1e}", f"{allowed:.0e}" if allowed else "0"])
    with style():
        drawn, axes = figure(2.6)
        axes[0, 0].axis("off")
        shown = axes[0, 0].table(cells, colLabels=["statement", "draws", "largest", "allowed"], loc="center",
                                 colWidths=[0.58, 0.12, 0.15, 0.15], cellLoc="left")  # fmt: skip
        shown.auto_set_font_size(False)
        shown.set_fontsize(8)
        shown.scale(1, 1.35)
    return drawn

"""Figures of the exact checks: gradients, memory, Euler's limit. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.neural_ode.drawing import LOOKS, METHODS
from restudy.studies.neural_ode.tidy import series, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]


def _values(rows: pa.Table, column: str) -> list[int]:
    return sorted(set(rows[column].to_pylist()))


def gradient_errors(tables: Tables) -> Figure:
    """Error against tolerance by method, and the gap of fixed-step methods."""
    rows = tables["gradients"]
    fixed = ("euler", "midpoint", "rk4")
    with style():
        drawn, axes = figure(2.9, columns=2, width_ratios=(2, 1))
        left, right = axes[0]
        for method, name in METHODS.items():
            for problem in _values(rows, "problem"):
                x, y = series(rows, "tolerance", "error", problem=problem, method=method)
                left.plot(x, y, label=name if problem == 0 else None, **{**LOOKS[method], "linewidth": 0.8})
        left.set(xscale="log", yscale="log", xlabel="tolerance", ylabel="relative error of the gradient")
        left.legend(fontsize=7)
        gaps = [where(rows, method=method)["error"].to_numpy() for method in fixed]
        for place, gap in enumerate(gaps):
            right.plot([place] * len(gap), gap, "o", color="#0072B2")
        right.set_xticks(range(3), ["Euler", "midpoint", "Runge-Kutta"], fontsize=7)
        right.set(yscale="log", ylabel="adjoint against discrete gradient", xlim=(-0.5, 2.5))
    return drawn


def memory_by_steps(tables: Tables) -> Figure:
    """Saved bytes against steps."""
    with style():
        drawn, axes = figure(2.6)
        for method in ("adjoint", "backprop"):
            x, y = series(tables["memory"], "steps", "bytes", method=method)
            axes[0, 0].plot(x, y, label=METHODS[method], **LOOKS[method])
        axes[0, 0].set(xscale="log", yscale="log", xlabel="steps of the solver", ylabel="saved bytes")
        axes[0, 0].legend()
    return drawn


def euler_limit(tables: Tables) -> Figure:
    """Distance of n Euler steps to the solution."""
    rows = tables["refinement"]
    with style():
        drawn, axes = figure(2.6)
        axis = axes[0, 0]
        for problem in _values(rows, "problem"):
            x, y = series(rows, "steps", "distance", problem=problem)
            axis.plot(x, y, "o-", label=f"field {problem}")
        guide = np.array([x[0], x[-1]])
        axis.plot(guide, 0.5 * y[0] * guide[0] / guide, "--", color="0.4", label="slope -1")
        axis.set(xscale="log", yscale="log", xlabel="Euler steps on [0, 1]", ylabel="relative distance")
        axis.legend(fontsize=7)
    return drawn

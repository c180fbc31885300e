"""The paper's figures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.plotting.style import figure, series, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def error_curves(tables: Mapping[str, pa.Table]) -> Figure:
    """Relative error against steps for both methods: mean and range over seeds."""
    curves = tables["curves"]
    with style():
        drawn, axes = figure(2.6)
        axis = axes[0, 0]
        for method, look in series(["plain", "momentum"]).items():
            mine = curves.filter(pc.equal(curves["method"], method)).sort_by("step")
            steps, inverse = np.unique(mine["step"].to_numpy(), return_inverse=True)
            errors = [mine["error"].to_numpy()[inverse == i] for i in range(len(steps))]
            axis.plot(steps + 1, [e.mean() for e in errors], label=method, markevery=6, **look)
            axis.fill_between(
                steps + 1, [e.min() for e in errors], [e.max() for e in errors], alpha=0.2, color=look["color"]
            )
        axis.set(xscale="log", yscale="log", xlabel="step", ylabel="error relative to the start")
        axis.set_ylim(bottom=1e-8)
        axis.legend()
    return drawn

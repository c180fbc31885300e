"""The paper's figures, redrawn from tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restudy.plotting.parts import Names, band, over_seeds, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from restudy.tables import Tables

METHODS = Names({"plain": "plain", "momentum": "momentum"})


def curves(tables: Tables) -> Figure:
    """Relative error against steps for both methods: mean over seeds with its 95% t interval."""
    with panels(2.6) as (drawn, axes):
        axis = axes[0, 0]
        for method, label in METHODS.items():
            curve = over_seeds(tables["curves"], "step", "error", method=method)
            band(axis, curve, METHODS.styles[method], label, markevery=6)
        axis.set(xscale="log", yscale="log", xlabel="step", ylabel="error relative to the start")
        axis.set_ylim(bottom=1e-8)
        axis.legend()
    return drawn

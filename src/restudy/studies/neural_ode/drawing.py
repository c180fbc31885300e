"""Names in figures, means over seeds with their t intervals, tables as figures. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import stats

from restudy.plotting.style import figure, series
from restudy.studies.neural_ode.tidy import where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NETS = {
    "odenet": "ODE-Net",
    "rknet": "RK-Net",
    "resnet6": "ResNet, 6 blocks",
    "tied6": "tied ResNet, 6 steps",
    "mlp": "one hidden layer",
    "plain6": "plain, 6 blocks",
    "plain12": "plain, 12 blocks",
    "resnet12": "ResNet, 12 blocks",
}
FLOWS = {"cnf": "continuous flow", "nf": "planar flow, same steps", "nf_long": "planar flow, same CPU time"}
FORECASTERS = {"latent_ode": "latent ODE", "rnn": "RNN", "rnn_gaps": "RNN, time gaps", "gru_gaps": "GRU, time gaps"}
METHODS = {
    "adjoint": "adjoint",
    "equations": "adjoint, written out",
    "seminorm": "adjoint, seminorm",
    "backprop": "backpropagation",
}
LOOKS = series([*NETS]) | series([*FLOWS]) | series([*FORECASTERS]) | series([*METHODS])


def present(rows: pa.Table, names: dict[str, str], column: str = "arm") -> list[str]:
    """The names of a table in the order of `names`."""
    there = set(rows[column].to_pylist())
    return [name for name in names if name in there]


def interval(values: Any) -> tuple[float, float]:
    """Mean, and half of its 95% t interval (0 for one value)."""
    values = np.asarray(values, float)
    n = len(values)
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
    return float(values.mean()), float(half)


def over_seeds(rows: pa.Table, x: str, **columns: object) -> tuple[Any, Any, Any]:
    """x, mean over seeds and half interval at every x, of the chosen rows."""
    chosen = where(rows, **columns)
    at, values = chosen[x].to_numpy(), chosen["value"].to_numpy()
    places = np.unique(at)
    found = [interval(values[at == place]) for place in places]
    return places, np.array([m for m, _ in found]), np.array([h for _, h in found])


def shown(values: Any, digits: int = 3) -> str:
    """Mean and half interval as text; a dash where there is nothing."""
    if not len(values):
        return "-"
    mean, half = interval(values)
    return f"{mean:.{digits}f} ± {half:.{digits}f}" if len(values) > 1 else f"{mean:.{digits}f}"


def table_figure(columns: list[str], rows: list[list[str]], first: float = 0.34) -> Figure:
    """A table as a figure: columns of equal width but the first."""
    drawn, axes = figure(0.3 + 0.26 * (len(rows) + 1))
    axis = axes[0, 0]
    axis.set_axis_off()
    rest = (1 - first) / (len(columns) - 1)
    made = axis.table(
        rows, colLabels=columns, colWidths=[first, *[rest] * (len(columns) - 1)], loc="center", cellLoc="right"
    )
    made.auto_set_font_size(False)
    made.set_fontsize(7.5)
    for (row, column), cell in made.get_celld().items():
        cell.set_linewidth(0)
        cell.visible_edges = "B" if row == 0 else ""
        if row == 0:
            cell.set_linewidth(0.8)
        if column == 0:
            cell.get_text().set_horizontalalignment("left")
    return drawn

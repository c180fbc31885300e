"""Share what the figures of many studies need. No torch; matplotlib is imported when something is drawn.

A figure is a function of tables: it chooses rows, averages them over seeds and draws bands:

    def training_curves(tables: Tables) -> Figure:
        with panels(2.9) as (drawn, axes):
            for net in NETS.present(tables["curves"], "net"):
                band(axes[0, 0], over_seeds(tables["curves"], "step", net=net), NETS.styles[net], NETS[net])
            legend_below(drawn, axes[0, 0], 4)
        return drawn
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from restudy.plotting.bands import (
    Array,
    Band,
    Sample,
    each_line,
    interval,
    intervals,
    over_seeds,
    plus_minus,
    stacked,
)
from restudy.plotting.images import bare, cell_texts, full_colour, heat_map, image_grid, picture, table_figure
from restudy.plotting.style import figure, series, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "GUIDE",
    "Band",
    "Names",
    "band",
    "bare",
    "beside",
    "cell_texts",
    "dots",
    "each_line",
    "full_colour",
    "heat_map",
    "image_grid",
    "interval",
    "intervals",
    "legend_below",
    "mean_mark",
    "outer_labels",
    "over_seeds",
    "panels",
    "picture",
    "plus_minus",
    "stacked",
    "table_figure",
    "ticks_at",
]
GUIDE: Final[dict[str, Any]] = {"color": "0.4", "linestyle": "--", "linewidth": 0.8}
"""The look of a reference line, as keyword arguments of `Axes.plot` and `Axes.axhline`."""


class Names(dict[str, str]):
    """Labels of a column's values, in the order in which figures show them; `names[value]` is a label."""

    @cached_property
    def styles(self) -> dict[str, dict[str, Any]]:
        """Colour, marker and dash of each value, as keyword arguments of `Axes.plot`; by place in the order."""
        return series(list(self))

    def styled(self, value: str, **changes: Any) -> dict[str, Any]:
        """Return a value's style with some of its arguments changed or added."""
        return {**self.styles[value], **changes}

    def present(self, table: pa.Table, column: str) -> list[str]:
        """List the values that occur in a column, in the order of the names; others are left out."""
        found = set(table[column].to_pylist())
        return [value for value in self if value in found]


@contextmanager
def panels(height: float, rows: int = 1, columns: int = 1, **options: Any) -> Iterator[tuple[Figure, Any]]:
    """Draw under the house style: yields a figure of column width and its array of axes (rows, columns).

    Args:
        height: inches.
        options: passed to `Figure.subplots`.
    """
    with style():
        yield figure(height, rows=rows, columns=columns, **options)


def band(
    axis: Axes, curve: Band, look: Mapping[str, Any], label: str | None = None, *, alpha: float = 0.12, **changes: Any
) -> None:
    """Draw the means of a band as a line and its intervals as a filled area; nothing for a band without points.

    Args:
        look: arguments of `Axes.plot`, `color` among them.
        alpha: of the area.
        changes: arguments of `Axes.plot` on top of the look.
    """
    if not len(curve.x):
        return
    look = {**look, **changes}
    axis.plot(curve.x, curve.mean, label=label, **look)
    low, high = curve.mean - curve.half, curve.mean + curve.half
    axis.fill_between(curve.x, low, high, alpha=alpha, color=look["color"], linewidth=0)


def dots(axis: Axes, place: float, sample: Sample, *, spread: float = 0.0, across: bool = False, **look: Any) -> None:
    """Draw the replicates' values as dots at one place of the x axis (`across`: of the y axis).

    Args:
        spread: largest distance of a dot from the place, so that equal values stay apart.
        look: arguments of `Axes.plot`; `color` is wanted, the marker is a dot unless given.
    """
    values = np.array(list(sample.values() if isinstance(sample, Mapping) else sample), dtype=float)
    apart = np.linspace(-spread, spread, len(values)) if len(values) > 1 else np.zeros(len(values))
    x, y = (values, place + apart) if across else (place + apart, values)
    axis.plot(x, y, **{"linestyle": "none", "marker": ".", **look})


def mean_mark(axis: Axes, place: float, sample: Sample, *, across: bool = False, **look: Any) -> None:
    """Draw the mean of a sample and its 95% t interval as an error bar at one place; see `dots` for `across`.

    Args:
        look: arguments of `Axes.errorbar`.
    """
    mean, half = interval(sample)
    if across:
        axis.errorbar(mean, place, xerr=half, **look)
    else:
        axis.errorbar(place, mean, yerr=half, **look)


def beside(count: int, width: float) -> Array:
    """Offsets (count,) that set bars or dots of this width side by side around a place."""
    return np.asarray((np.arange(count) - (count - 1) / 2) * width, dtype=np.float64)


def legend_below(drawn: Figure, axis: Axes, ncols: int, **options: Any) -> None:
    """Put the legend of one of the axes below the whole figure.

    Args:
        options: passed to `Figure.legend`.
    """
    drawn.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=ncols, **options)


def outer_labels(axes: Any, x: str | None = None, y: str | None = None) -> None:
    """Label the x axes of the lowest row and the y axes of the left column of an array of axes (rows, columns)."""
    for axis in axes[-1] if x is not None else ():
        axis.set_xlabel(x)
    for axis in axes[:, 0] if y is not None else ():
        axis.set_ylabel(y)


def ticks_at(axis: Axes, values: Sequence[float], labels: Sequence[str] | None = None) -> None:
    """Set the only ticks of the x axis, labelled with their values unless told otherwise."""
    axis.set_xticks(values, [str(value) for value in values] if labels is None else list(labels))
    axis.minorticks_off()

"""Grids of images, matrices of numbers, and tables as figures. No torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from restudy.plotting.style import COLUMN_WIDTH, figure, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

WHITE_POINT = 0.99  # share of pixels below full colour: one outlier must not flatten a map


def picture(record: Mapping[str, Any]) -> npt.NDArray[Any]:
    """Read a table's row as an image (height, width): `values` row by row, and `side` or `height` and `width`."""
    shape = (record["height"], record["width"]) if "height" in record else (record["side"], -1)
    return np.array(record["values"]).reshape(shape)


def full_colour(values: npt.NDArray[Any], share: float = WHITE_POINT) -> npt.NDArray[Any]:
    """Scale a map so that this share of its pixels lies within [-1, 1]; an all-zero map stays as it is."""
    top = np.quantile(np.abs(values), share) or np.abs(values).max()
    return values / top if top > 0 else values


def bare(axes: Any) -> None:
    """Hide spines, ticks and labels of all these axes (an array of axes, or one)."""
    for axis in np.ravel(axes):
        axis.set_axis_off()


@contextmanager
def image_grid(
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    left: float = 1.1,
    top: float = 0.34,
    label_size: float = 6.5,
    title_size: float = 6.0,
) -> Iterator[tuple[Figure, Any]]:
    """Draw a grid of square images under the house style, rows labelled on the left and columns on top.

    Args:
        left, top: room for the labels and for the titles, inches.
        label_size, title_size: points.

    Yields:
        The figure and its axes (rows, columns), without ticks and spines; draw with `imshow`.
    """
    from matplotlib.figure import Figure

    with style():
        side = (COLUMN_WIDTH - left) / max(len(columns), 1)
        height = side * len(rows) + top
        drawn = Figure(figsize=(COLUMN_WIDTH, height), layout="none")  # type: ignore[arg-type]
        axes = drawn.subplots(max(len(rows), 1), max(len(columns), 1), squeeze=False)
        drawn.subplots_adjust(left / COLUMN_WIDTH, 0.005, 0.995, 1 - top / height, 0.06, 0.06)
        for axis in axes.flat:
            axis.set_xticks([])
            axis.set_yticks([])
            axis.grid(False)
            for spine in axis.spines.values():
                spine.set_visible(False)
        for axis, label in zip(axes[:, 0], rows, strict=False):
            axis.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=label_size)
        for axis, title in zip(axes[0], columns, strict=False):
            axis.set_title(title, fontsize=title_size)
        yield drawn, axes


def heat_map(
    axis: Axes,
    values: npt.NDArray[Any],
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    *,
    fontsize: float | None = None,
    **image: Any,
) -> AxesImage:
    """Show a matrix (rows, columns) by colour, with names on the ticks; no names, no ticks.

    Args:
        fontsize: of the names, points.
        image: passed to `Axes.imshow`.

    Returns:
        The image, for a colour bar.
    """
    size: dict[str, Any] = {} if fontsize is None else {"fontsize": fontsize}
    shown = axis.imshow(values, aspect="auto", **image)
    axis.set_xticks(range(len(columns)), list(columns), **size)
    axis.set_yticks(range(len(rows)), list(rows), **size)
    axis.grid(False)
    return shown


def cell_texts(
    axis: Axes,
    values: npt.NDArray[Any],
    written: Callable[[float], str],
    colour: Callable[[float], str] = lambda value: "black",
    **text: Any,
) -> None:
    """Write each number of a matrix (rows, columns) into its cell of a heat map.

    Args:
        written, colour: give a number's text and colour.
        text: passed to `Axes.text`.
    """
    for (row, column), value in np.ndenumerate(values):
        axis.text(column, row, written(value), ha="center", va="center", color=colour(value), **text)


def table_figure(columns: Sequence[str], rows: Sequence[Sequence[str]], first: float = 0.34) -> Figure:
    """Draw a table as a figure under the house style: one rule below the titles, numbers to the right.

    Args:
        columns: titles.
        rows: cells, one sequence a row.
        first: share of the width that the first column takes; the others divide the rest evenly.
    """
    with style():
        drawn, axes = figure(0.3 + 0.26 * (len(rows) + 1))
        axis = axes[0, 0]
        axis.set_axis_off()
        widths = [first, *[(1 - first) / (len(columns) - 1)] * (len(columns) - 1)]
        made = axis.table(rows, colLabels=columns, colWidths=widths, loc="center", cellLoc="right")
        made.auto_set_font_size(False)
        made.set_fontsize(7.5)
        for (row, column), cell in made.get_celld().items():
            cell.set_linewidth(0.8 if row == 0 else 0)
            cell.visible_edges = "B" if row == 0 else ""
            if column == 0:
                cell.get_text().set_horizontalalignment("left")
    return drawn

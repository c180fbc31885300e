"""Fonts, colours and sizes: colour-blind safe (Okabe and Ito 2008), told apart in grey by marker and dash as well."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000", "#8C6BB1", "#7F7F7F")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 2)), (0, (2, 2)))
COLUMN_WIDTH = 6.5  # inches: the text width of a one-column paper

RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "figure.constrained_layout.use": True,
    "savefig.facecolor": "white",
}


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this context to get the common style."""
    import matplotlib as mpl

    with mpl.rc_context(RC):  # type: ignore[arg-type]
        yield


def series(names: list[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dash for each name, as keyword arguments of `Axes.plot`."""
    looks = zip(cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False)
    return {n: {"color": c, "marker": m, "linestyle": d} for n, (c, m, d) in zip(names, looks, strict=False)}


def figure(height: float, *, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure of column width, outside pyplot's global state: figure and array of axes (rows, columns).

    Args:
        height: in inches.
        options: passed to `Figure.subplots`.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
    return drawn, drawn.subplots(rows, columns, squeeze=False, **options)

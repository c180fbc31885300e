"""Grids of heatmaps and of perturbed images. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from restudy.plotting.style import COLUMN_WIDTH, style
from restudy.studies.relevance_evaluation.drawing import FILL_NAMES, METHOD_NAMES, PAIR_NAMES, present
from restudy.studies.relevance_evaluation.tidy import Tables, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = {"input": "input", **METHOD_NAMES}
WHITE_POINT = 0.99  # share of pixels below full colour: one outlier must not flatten a map
STRIP_FILLS = ("uniform", "black")


def heatmaps(tables: Tables) -> Figure:
    """First image of each data set (rows) and its maps (columns)."""
    table = where(tables["maps"], image=0)
    pairs = present(table["pair"].to_pylist(), PAIR_NAMES)
    rows = {PAIR_NAMES[p]: {r["method"]: r for r in where(table, pair=p).to_pylist()} for p in pairs}
    return _grid(rows, present(table["method"].to_pylist(), COLUMNS), COLUMNS)


def photo_maps(tables: Tables) -> Figure:
    """Scenes (rows) and their maps on EfficientNet-Lite0 (columns)."""
    table = tables["photo_maps"]
    names = list(dict.fromkeys(table["scene"].to_pylist()))
    rows = {n.rsplit("/", 1)[-1]: {r["method"]: r for r in where(table, scene=n).to_pylist()} for n in names}
    return _grid(rows, present(table["method"].to_pylist(), COLUMNS), COLUMNS)


def strips(tables: Tables) -> Figure:
    """Perturbed images: data set, fill and method by row, steps by column."""
    table = tables["strips"]
    pairs = present(table["pair"].to_pylist(), PAIR_NAMES)
    rows: dict[str, dict[str, Any]] = {}
    for pair in pairs:
        for fill in STRIP_FILLS:
            line = {}
            for method in ("sensitivity", "lrp_alpha_beta"):
                for record in where(table, pair=pair, fill=fill, method=method).to_pylist():
                    line[f"{method} {record['step']}"] = record
            if line:
                rows[f"{PAIR_NAMES[pair]},\n{FILL_NAMES[fill]}"] = line
    columns = list(next(iter(rows.values()), {}))
    short = {"sensitivity": "sensitivity", "lrp_alpha_beta": "LRP"}
    titles = {c: f"{short[c.split()[0]]}, {c.split()[1]}" for c in columns}
    return _grid(rows, columns, titles, image=True)


def _grid(
    rows: dict[str, dict[str, Any]], columns: list[str], titles: dict[str, str], *, image: bool = False
) -> Figure:
    from matplotlib.figure import Figure

    labels, top = 1.1, 0.34  # inches left of the grid and above it
    with style():
        side = (COLUMN_WIDTH - labels) / max(len(columns), 1)
        height = side * len(rows) + top
        drawn = Figure(figsize=(COLUMN_WIDTH, height), layout="none")  # type: ignore[arg-type]
        axes = drawn.subplots(max(len(rows), 1), max(len(columns), 1), squeeze=False)
        drawn.subplots_adjust(labels / COLUMN_WIDTH, 0.005, 0.995, 1 - top / height, 0.06, 0.06)
        for axis in axes.flat:
            axis.set_xticks([])
            axis.set_yticks([])
            axis.grid(False)
            for spine in axis.spines.values():
                spine.set_visible(False)
        for row, (name, records) in enumerate(rows.items()):
            label = name.replace("garments on ", "garments on\n")
            axes[row, 0].set_ylabel(label, rotation=0, ha="right", va="center", fontsize=6.5)
            for column, key in enumerate(columns):
                if key in records:
                    _show(axes[row, column], records[key], picture=image or key == "input")
                if row == 0:
                    axes[row, column].set_title(titles[key].replace(", ", ",\n").replace(" x ", "\nx "), fontsize=5.5)
    return drawn


def _show(axis: Any, record: dict[str, Any], *, picture: bool) -> None:
    values = np.array(record["values"]).reshape(record["height"], record["width"])
    if picture:
        axis.imshow(values, cmap="gray", vmin=values.min() if values.min() < 0 else 0, vmax=1)
        return
    top = np.quantile(np.abs(values), WHITE_POINT) or np.abs(values).max()
    axis.imshow(values / top if top > 0 else values, cmap="RdBu_r", vmin=-1, vmax=1)

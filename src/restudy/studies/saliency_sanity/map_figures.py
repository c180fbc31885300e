"""Grids of maps: methods by states of the net, one image. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import COLUMN_WIDTH, style
from restudy.studies.saliency_sanity.drawing import METHOD_NAMES
from restudy.studies.saliency_sanity.tidy import CNN, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
ROWS = {**METHOD_NAMES, "edges": "edges (Sobel)", "noise": "noise"}
State = tuple[str, int]
LABELS, TITLES = 1.15, 0.25  # inches left of the grid and above it
WHITE_POINT = 0.99  # share of pixels below full colour: one outlier must not flatten a map


def signed_maps(tables: Tables) -> Figure:
    """Signed maps of the first example image on every net, full colour at the 99th percentile of each."""
    return _grid(where(tables["maps"], image=0, pair=CNN), absolute=False)


def absolute_maps(tables: Tables) -> Figure:
    """The same maps without their signs."""
    return _grid(where(tables["maps"], image=0, pair=CNN), absolute=True)


def photo_maps(tables: Tables) -> Figure:
    """Absolute maps of the first example photo through the cascade on Lite0."""
    table = tables["photo_maps"]
    return _grid(where(table, photo=table["photo"][0].as_py()), absolute=True)


def _grid(table: pa.Table, *, absolute: bool) -> Figure:
    from matplotlib.figure import Figure

    rows = table.to_pylist()
    maps = {(r["method"], (r["state"], r["depth"])): r for r in rows}
    methods = [m for m in ROWS if any(key[0] == m for key in maps)]
    states = _states(rows)
    with style():
        side = (COLUMN_WIDTH - LABELS) / (len(states) + 1)
        height = side * len(methods) + TITLES
        drawn = Figure(figsize=(COLUMN_WIDTH, height), layout="none")  # type: ignore[arg-type]
        axes = drawn.subplots(len(methods), len(states) + 1, squeeze=False)
        drawn.subplots_adjust(LABELS / COLUMN_WIDTH, 0.005, 0.995, 1 - TITLES / height, 0.06, 0.06)
        for row, method in enumerate(methods):
            for column, state in enumerate([("input", 0), *states]):
                axis = axes[row, column]
                axis.set_xticks([])
                axis.set_yticks([])
                axis.grid(False)
                for spine in axis.spines.values():
                    spine.set_visible(False)
                key = ("input", ("trained", 0)) if column == 0 else (method, state)
                if key in maps and (column or row == 0):
                    _show(axis, maps[key], absolute=absolute, image=column == 0)
                if row == 0:
                    axis.set_title("input" if column == 0 else states[state], fontsize=6)
            axes[row, 0].set_ylabel(ROWS[method], rotation=0, ha="right", va="center", fontsize=6.5)
    return drawn


def _states(rows: list[dict[str, Any]]) -> dict[State, str]:
    """The columns: trained, the cascade from the top, retrained, permuted labels; with their titles."""
    layers = {r["depth"]: r["layer"] for r in rows if r["state"] == "top_down"}
    present = {r["state"] for r in rows}
    found: dict[State, str] = {("trained", 0): "trained"}
    found |= {("top_down", d): ("+ " if d > 1 else "") + layers[d] for d in sorted(layers)}
    others = {"seed_retrain": "retrained", "permuted_labels": "permuted"}
    return found | {(state, 0): title for state, title in others.items() if state in present}


def _show(axis: Any, record: dict[str, Any], *, absolute: bool, image: bool) -> None:
    values = np.array(record["values"]).reshape(record["height"], record["width"])
    if image:
        axis.imshow(values, cmap="gray_r")
        return
    top = np.quantile(np.abs(values), WHITE_POINT) or np.abs(values).max()
    scaled = values / top if top > 0 else values
    if absolute:
        axis.imshow(np.abs(scaled), cmap="Greys", vmin=0, vmax=1)
    else:
        axis.imshow(scaled, cmap="RdBu_r", vmin=-1, vmax=1)
    if top == 0:
        axis.text(0.5, 0.5, "all zero", transform=axis.transAxes, ha="center", va="center", fontsize=5)

"""Grids of pictures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, style
from restudy.studies.counterfactual_infill.drawing import INFILLERS, METHODS
from restudy.studies.counterfactual_infill.tidy import where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
SHOWN = (
    ("scene", ""),
    *(("sdr", name) for name in ("mean", "blur", "noise", "vae", "gan")),
    *(("ssr", "vae"), ("bbmp", "blur"), ("bbmp", "vae"), ("joint", "mean"), ("gradient", ""), ("occlusion", "mean")),
)


def map_grid(tables: Tables) -> Figure:
    """Rows are scenes; columns the scene and its maps."""
    table = tables["pictures"]
    images = sorted(set(table["image"].to_pylist()))
    with style():
        drawn, axes = figure(0.62 * len(images) + 0.4, rows=len(images), columns=len(SHOWN))
        for axis in axes.flat:
            axis.set_axis_off()
        for row, image in enumerate(images):
            for axis, (method, infiller) in zip(axes[row], SHOWN, strict=True):
                found = where(table, image=image, row=method, column=infiller).to_pylist()
                if not found:
                    continue
                scene = method == "scene"
                limits = {"vmin": 0, "vmax": 1} if scene or method in ("sdr", "ssr", "bbmp", "joint") else {"vmin": 0}
                axis.imshow(_picture(found[0]), cmap="gray" if scene else "magma", **limits)
                if row == 0:
                    title = "scene" if scene else METHODS[method].replace("FIDO ", "")
                    axis.set_title("\n".join([title, INFILLERS.get(infiller, "")]), fontsize=6)
    return drawn


def fill_grid(tables: Tables) -> Figure:
    """For each scene two rows, a hole anywhere and the object's square; columns are in-fillers."""
    table = tables["samples"]
    images = sorted(set(table["image"].to_pylist()))
    columns = ["scene", "hole", *INFILLERS]
    holes = ("anywhere", "object")
    with style():
        drawn, axes = figure(0.6 * 2 * len(images) + 0.3, rows=2 * len(images), columns=len(columns))
        for axis in axes.flat:
            axis.set_axis_off()
        for row, (image, hole) in enumerate((i, h) for i in images for h in holes):
            for axis, column in zip(axes[row], columns, strict=True):
                place = {"scene": ("scene", "hidden"), "hole": (hole, "hidden")}.get(column, (hole, column))
                found = where(table, image=image, row=place[0], column=place[1]).to_pylist()
                if found:
                    axis.imshow(_picture(found[0]), cmap="gray", vmin=0, vmax=1)
                if row == 0:
                    axis.set_title(INFILLERS.get(column, column), fontsize=6)
    return drawn


def _picture(row: dict[str, Any]) -> Any:
    return np.array(row["values"]).reshape(row["side"], -1)

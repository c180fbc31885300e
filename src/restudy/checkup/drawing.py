"""Figures of a check, from its tables. No torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.plotting.style import COLUMN_WIDTH, figure, series, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = 4
GREY: dict[str, dict[str, Any]] = {
    "edges": {"color": "0.5", "marker": "", "linestyle": "-"},
    "noise": {"color": "0.75", "marker": "", "linestyle": "--"},
}
WHITE_POINT = 0.99  # share of pixels below full colour: one outlier must not flatten a map


def maps_figure(maps: pa.Table) -> Figure:
    """The first images (rows) and their heatmaps (columns): red for, blue against."""
    from matplotlib.figure import Figure

    rows = maps.to_pylist()
    methods = list(dict.fromkeys(row["method"] for row in rows))
    images = list(dict.fromkeys(row["image"] for row in rows))[:SHOWN]
    with style():
        side = COLUMN_WIDTH / len(methods)
        height = side * len(images) + 0.4
        drawn = Figure(figsize=(COLUMN_WIDTH, height), layout="none")  # type: ignore[arg-type]
        axes = drawn.subplots(len(images), len(methods), squeeze=False)
        drawn.subplots_adjust(0.005, 0.005, 0.995, 1 - 0.4 / height, 0.05, 0.05)
        for axis in axes.flat:
            axis.set_axis_off()
        for row in rows:
            if row["image"] in images:
                axis = axes[images.index(row["image"]), methods.index(row["method"])]
                _show(axis, row)
        for axis, method in zip(axes[0], methods, strict=True):
            axis.set_title(method.replace("_", "\n"), fontsize=5.5)
    return drawn


def _show(axis: Any, row: dict[str, Any]) -> None:
    values = np.array(row["values"]).reshape(row["height"], row["width"])
    if row["method"] == "input":
        axis.imshow(values, cmap="gray")
        return
    top = np.quantile(np.abs(values), WHITE_POINT) or np.abs(values).max()
    axis.imshow(values / top if top > 0 else values, cmap="RdBu_r", vmin=-1, vmax=1)


def cascade_figure(randomization: pa.Table) -> Figure:
    """Rank correlation with the trained model's maps against the layers drawn anew, both orders."""
    orders = list(dict.fromkeys(randomization["order"].to_pylist()))
    looks = _looks(list(dict.fromkeys(randomization["method"].to_pylist())))
    titles = {"top_down": "from the logits down", "bottom_up": "from the input up"}
    with style():
        drawn, axes = figure(3.0, columns=max(len(orders), 1), sharey=True)
        for axis, order in zip(axes[0], orders, strict=False):
            rows = _where(randomization, order=order, metric="spearman")
            for method, look in looks.items():
                mine = _where(rows, method=method)
                at = sorted(set(mine["depth"].to_pylist()))
                mean = [_mean(_where(mine, depth=depth)["value"].to_numpy()) for depth in at]
                axis.plot([0, *at], [1.0, *mean], label=method, **look)
            axis.set(title=titles.get(order, order), xlabel="layers drawn anew")
        axes[0, 0].set_ylabel("rank correlation")
        drawn.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    return drawn


def areas_figure(perturbation: pa.Table) -> Figure:
    """AOPC minus that of the random order by fill, mean over images with its standard error."""
    methods = [m for m in dict.fromkeys(perturbation["method"].to_pylist()) if m != "random"]
    fills = list(dict.fromkeys(perturbation["fill"].to_pylist()))
    looks, width = _looks(methods), 0.85 / max(len(methods), 1)
    with style():
        drawn, axes = figure(3.0)
        axis = axes[0, 0]
        for number, method in enumerate(methods):
            found = []
            for fill in fills:
                first, second = (
                    _where(perturbation, fill=fill, method=m).sort_by("image")["value"].to_numpy()
                    for m in (method, "random")
                )
                gap = first - second
                found.append((gap.mean(), gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else 0.0))
            at = np.arange(len(fills)) + (number - (len(methods) - 1) / 2) * width
            means, errors = zip(*found, strict=True)
            axis.bar(at, means, width, yerr=errors, color=looks[method]["color"], label=method,
                     error_kw={"elinewidth": 0.7})  # fmt: skip
        axis.axhline(0, color="0.3", linewidth=0.7)
        axis.set_xticks(range(len(fills)), fills)
        axis.set_ylabel("AOPC - random, logits")
        drawn.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=7)
    return drawn


def _looks(methods: list[str]) -> dict[str, dict[str, Any]]:
    """Colour, marker and dash of each method; grey for the maps that know no model."""
    found = series([method for method in methods if method not in GREY])
    return {method: found.get(method) or GREY[method] for method in methods}


def _where(table: pa.Table, **columns: object) -> pa.Table:
    for name, value in columns.items():
        table = table.filter(pc.equal(table[name], value))
    return table


def _mean(values: Any) -> float:
    fine = values[~np.isnan(values)]
    return float(fine.mean()) if len(fine) else float("nan")

"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.plotting.parts import (
    Band,
    Names,
    band,
    beside,
    dots,
    each_line,
    full_colour,
    heat_map,
    image_grid,
    interval,
    intervals,
    legend_below,
    mean_mark,
    outer_labels,
    panels,
    picture,
)
from restudy.plotting.style import COLOURS
from restudy.tables import Tables, levels, where

from .statistics import LRP, REGION, SENSITIVITY, SHARE, area_gap, scene_gap, settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = Names(
    {
        "sensitivity": "sensitivity",
        "sensitivity_linf": "sensitivity, max",
        "deconvolution": "deconvolution",
        "deconvolution_linf": "deconvolution, max",
        "deconvolution_no_switches": "deconv., no switches",
        "lrp_alpha_beta": "LRP, alpha 2 beta 1",
        "lrp_epsilon": "LRP, epsilon",
        "gradient_x_input": "gradient x input",
        "guided_backprop": "guided backprop",
        "integrated_gradients": "integrated gradients",
        "edges": "edges",
        "noise": "noise",
    }
)
PAIRS = Names({"fashion_mnist": "Fashion-MNIST", "mnist5k": "MNIST digits", "garments": "garments on photographs"})
FILLS = Names({"uniform": "uniform noise", "mean": "mean", "blur": "blur", "dataset": "other images", "black": "black"})
COLUMNS = Names({"input": "input", **METHODS})
CURVED = ("sensitivity", "deconvolution", "lrp_alpha_beta", "random")
SHORT = {"fashion_mnist": "Fashion", "mnist5k": "digits", "garments": "on photographs"}
CHANCE = {"color": "0.45", "linewidth": 1.2}


def curves(tables: Tables) -> Figure:
    """Change of the logit by step, both orders, three fills by data set."""
    table = where(tables["curves"], score="logit", region=REGION, fill=("uniform", "mean", "black"))
    pairs, fills = PAIRS.present(table, "pair"), FILLS.present(table, "fill")
    with panels(1.7 * len(pairs) + 0.4, len(pairs), len(fills), sharex=True) as (drawn, axes):
        for row, pair in enumerate(pairs):
            for axis, fill in zip(axes[row], fills, strict=True):
                for method in CURVED:
                    for order in ("morf", "lerf", "random"):
                        _curve(axis, where(table, pair=pair, fill=fill, method=method, order=order), method, order)
                axis.axvline(round(SHARE * (28 // REGION) ** 2), color="0.6", linestyle=":", linewidth=0.8)
                axis.set_title(f"{PAIRS[pair]}, {FILLS[fill]}", fontsize=7)
        outer_labels(axes, "regions replaced", "change of the logit")
        legend_below(drawn, axes[0, 0], 4)
    return drawn


def _curve(axis: Axes, rows: pa.Table, method: str, order: str) -> None:
    if not rows.num_rows:
        return
    values = np.array(rows["values"].to_pylist())
    look = CHANCE if method == "random" else {"color": METHODS.styles[method]["color"]}
    label = "random order" if method == "random" else METHODS[method]
    dash, said = ("--", None) if order == "lerf" else ("-", label)
    band(axis, Band.of(range(values.shape[1]), values.T), look, said, linestyle=dash)


def areas(tables: Tables) -> Figure:
    """AOPC relative to the random order by fill, one panel a data set."""
    table = where(tables["aopc"], score="logit", region=REGION, share=SHARE)

    def values(pair: str, method: str, fill: str) -> Mapping[Any, float]:
        return area_gap(pair, method, "random", fill).values(tables)

    return _bars(table, {PAIRS[pair]: partial(values, pair) for pair in PAIRS.present(table, "pair")})


def photo_areas(tables: Tables) -> Figure:
    """The same for EfficientNet-Lite0: scenes, and plain crops below."""
    table = where(tables["photo_aopc"], score="logit", share=SHARE)

    def values(kind: str, method: str, fill: str) -> Mapping[Any, float]:
        return scene_gap(method, "random", fill, kind).values(tables)

    kinds = {"scenes with an animal": "scene", "crops of photographs": "crop"}
    return _bars(table, {title: partial(values, kind) for title, kind in kinds.items()})


def _bars(table: pa.Table, shown: Mapping[str, Callable[[str, str], Mapping[Any, float]]]) -> Figure:
    methods, fills = METHODS.present(table, "method"), FILLS.present(table, "fill")
    width = 0.85 / len(methods)
    with panels(1.6 * len(shown) + 0.6, len(shown), sharex=True) as (drawn, axes):
        for axis, (title, values) in zip(axes[:, 0], shown.items(), strict=True):
            for method, apart in zip(methods, beside(len(methods), width), strict=True):
                means, halves = intervals(values(method, fill) for fill in fills)
                look = {"color": METHODS.styles[method]["color"], "label": METHODS[method]}
                look |= {"alpha": 0.5 if method in ("edges", "noise") else 1.0}
                axis.bar(np.arange(len(fills)) + apart, means, width, yerr=halves, error_kw={"elinewidth": 0.7}, **look)
            axis.axhline(0, color="0.3", linewidth=0.7)
            axis.set_title(title)
            axis.set_ylabel("AOPC - random")
        axes[-1, 0].set_xticks(range(len(fills)), [FILLS[fill] for fill in fills])
        legend_below(drawn, axes[0, 0], 4)
    return drawn


def complexity(tables: Tables) -> Figure:
    """Bytes, entropy and total variation by method."""
    metrics = {"png_bytes": "bytes", "entropy": "entropy, bits", "total_variation": "total variation"}
    return _by_method(tables["measures"], [(metric, "", title) for metric, title in metrics.items()])


def reactions(tables: Tables) -> Figure:
    """Jumps, likeness within a class, stability of ranks by method."""
    shown = [("jump", "", "largest jump"), ("likeness_same_class", "signed", "likeness within a class")]
    table = tables["measures"].filter(pc.not_equal(tables["measures"]["method"], "noise"))
    return _by_method(table, [*shown, ("rank_stability", "", "stability of ranks")])


def _by_method(table: pa.Table, shown: Sequence[tuple[str, str, str]]) -> Figure:
    methods, pairs = METHODS.present(table, "method"), PAIRS.present(table, "pair")
    markers = dict(zip(PAIRS, ("o", "s", "^"), strict=True))
    with panels(2.9, 1, len(shown), sharey=True) as (drawn, axes):
        for axis, (metric, condition, title) in zip(axes[0], shown, strict=True):
            rows = where(table, metric=metric, condition=condition)
            for at, method in enumerate(methods):
                colour = METHODS.styles[method]["color"]
                for pair, apart in zip(pairs, beside(len(pairs), 0.22), strict=True):
                    values = where(rows, method=method, pair=pair)["value"].to_pylist()
                    if values:
                        look = {"color": colour, "marker": markers[pair], "markersize": 4, "linewidth": 1}
                        mean_mark(axis, at + apart, values, across=True, **look)
                        dots(axis, at + apart, values, across=True, color=colour, markersize=2, alpha=0.6)
            axis.set_title(title)
        axes[0, 0].set_yticks(range(len(methods)), [METHODS[method] for method in methods])
        axes[0, 0].invert_yaxis()
        for pair in pairs:
            axes[0, -1].plot([], [], linestyle="", marker=markers[pair], color="0.3", label=PAIRS[pair])
        legend_below(drawn, axes[0, -1], 3)
    return drawn


def fills(tables: Tables) -> Figure:
    """AOPC of LRP minus that of its rivals: settings by rival, share of the logit."""
    found = _differences(tables)
    columns = list(dict.fromkeys((pair, other) for pair, other, *_ in found))
    rows = list(dict.fromkeys(tuple(rest) for _, _, *rest in found))
    grid = np.full((len(rows), len(columns)), np.nan)
    with panels(0.26 * len(rows) + 1.1) as (drawn, axes):
        axis = axes[0, 0]
        for (pair, other, *rest), values in found.items():
            mean, half = interval(values)
            at = rows.index(tuple(rest)), columns.index((pair, other))
            grid[at] = mean
            text = f"{mean:+.2f}" + ("" if abs(mean) > half else " ~")
            axis.text(at[1], at[0], text, ha="center", va="center", fontsize=7)
        top = float(np.nanmax(np.abs(grid))) or 1.0
        labels = [f"{FILLS[fill]}, {region} px, {share:.0%}" for fill, region, share in rows]
        heat_map(axis, grid, labels, fontsize=7, cmap="RdBu_r", vmin=-top, vmax=top, alpha=0.75)
        names = {"sensitivity": "sensitivity", "deconvolution": "deconv."}
        axis.set_xticks(range(len(columns)), [f"{SHORT[p]}\n- {names[o]}" for p, o in columns], fontsize=6)
    return drawn


def _differences(tables: Tables) -> Mapping[tuple[Any, ...], list[float]]:
    table = where(tables["aopc"], score="logit")
    starts: dict[Any, list[float]] = {}
    for row in table.select(["pair", "seed", "start"]).to_pylist():
        starts.setdefault((row["pair"], row["seed"]), []).append(row["start"])
    return {
        (pair, *rest): [value / float(np.mean(starts[pair, seed])) for seed, value in values.items()]
        for (pair, *rest, _), values in settings({"aopc": table}, black=True).items()
    }


def epsilon(tables: Tables) -> Figure:
    """Loss of relevance and largest relevance against epsilon."""
    table = tables["epsilons"]
    smallest = min((e for e in levels(table, "epsilon") if e > 0), default=1e-9)
    shown = {"gap": "lost share of the logit", "largest": "largest relevance / logit"}
    with panels(2.6, 1, 2) as (drawn, axes):
        for axis, (metric, label) in zip(axes[0], shown.items(), strict=True):
            rows = where(table, metric=metric)
            values = levels(rows, "epsilon")
            at = [e if e > 0 else smallest / 100 for e in values]
            for _, _, line in [*each_line(rows, "image", "epsilon", seed=0)][:8]:
                axis.plot(at, np.maximum(line, 1e-17), color="0.75", linewidth=0.6)
            middle = [np.median(where(rows, epsilon=e)["value"].to_numpy()) for e in values]
            axis.plot(at, np.maximum(middle, 1e-17), color=COLOURS[0], marker="o")
            axis.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=label)
    return drawn


def heatmaps(tables: Tables) -> Figure:
    """First image of each data set (rows) and its maps (columns)."""
    table = where(tables["maps"], image=0)
    return _maps(table, {PAIRS[pair]: where(table, pair=pair) for pair in PAIRS.present(table, "pair")})


def maps(tables: Tables) -> Figure:
    """Scenes (rows) and their maps on EfficientNet-Lite0 (columns)."""
    table = tables["photo_maps"]
    names = dict.fromkeys(table["scene"].to_pylist())
    return _maps(table, {name.rsplit("/", 1)[-1]: where(table, scene=name) for name in names})


def _maps(table: pa.Table, rows: Mapping[str, pa.Table]) -> Figure:
    columns = {key: COLUMNS[key] for key in COLUMNS.present(table, "method")}
    return _grid({name: {r["method"]: r for r in found.to_pylist()} for name, found in rows.items()}, columns)


def strips(tables: Tables) -> Figure:
    """Perturbed images: data set, fill and method by row, steps by column."""
    table = tables["strips"]
    rows: dict[str, dict[str, Any]] = {}
    for pair in PAIRS.present(table, "pair"):
        for fill in ("uniform", "black"):
            line = {}
            for method, name in ((SENSITIVITY, "sensitivity"), (LRP, "LRP")):
                for record in where(table, pair=pair, fill=fill, method=method).to_pylist():
                    line[f"{name}, {record['step']}"] = record
            if line:
                rows[f"{PAIRS[pair]},\n{FILLS[fill]}"] = line
    return _grid(rows, {key: key for key in next(iter(rows.values()), {})}, image=True)


def _grid(rows: Mapping[str, Mapping[str, Any]], columns: Mapping[str, str], *, image: bool = False) -> Figure:
    labels = [name.replace("garments on ", "garments on\n") for name in rows]
    titles = [title.replace(", ", ",\n").replace(" x ", "\nx ") for title in columns.values()]
    with image_grid(labels, titles, title_size=5.5) as (drawn, axes):
        for row, records in enumerate(rows.values()):
            for axis, key in zip(axes[row], columns, strict=True):
                if key not in records:
                    continue
                values = picture(records[key])
                if image or key == "input":
                    axis.imshow(values, cmap="gray", vmin=values.min() if values.min() < 0 else 0, vmax=1)
                else:
                    axis.imshow(full_colour(values), cmap="RdBu_r", vmin=-1, vmax=1)
    return drawn

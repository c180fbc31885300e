"""The study's figures from its tables: curves, bars, matrices. No torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.plotting.style import figure, style
from restudy.studies.relevance_evaluation.areas import REGION, SHARE, area, settings
from restudy.studies.relevance_evaluation.drawing import (
    FILL_NAMES,
    LOOKS,
    METHOD_NAMES,
    PAIR_NAMES,
    mean_and_half,
    present,
)
from restudy.studies.relevance_evaluation.photo_statistics import areas
from restudy.studies.relevance_evaluation.tidy import Tables, minus, where

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CURVED = ("sensitivity", "deconvolution", "lrp_alpha_beta", "random")
CURVE_FILLS = ("uniform", "mean", "black")
SHORT = {"fashion_mnist": "Fashion", "mnist5k": "digits", "garments": "on photographs"}
GREY = {"color": "0.45", "linewidth": 1.2}


def perturbation_curves(tables: Tables) -> Figure:
    """Change of the logit by step, both orders, three fills by data set."""
    table = where(tables["curves"], score="logit", region=REGION)
    pairs, fills = _pairs(table), [f for f in present(table["fill"].to_pylist(), FILL_NAMES) if f in CURVE_FILLS]
    with style():
        drawn, axes = figure(1.7 * len(pairs) + 0.4, rows=len(pairs), columns=len(fills), sharex=True)
        for row, pair in enumerate(pairs):
            for column, fill in enumerate(fills):
                axis, rows = axes[row, column], where(table, pair=pair, fill=fill)
                for method in CURVED:
                    for order in ("morf", "lerf", "random"):
                        _curve(axis, where(rows, method=method, order=order), method, order)
                axis.axvline(round(SHARE * (28 // REGION) ** 2), color="0.6", linestyle=":", linewidth=0.8)
                axis.set_title(f"{PAIR_NAMES[pair]}, {FILL_NAMES[fill]}", fontsize=7)
            axes[row, 0].set_ylabel("change of the logit")
        for axis in axes[-1]:
            axis.set_xlabel("regions replaced")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=4)
    return drawn


def _curve(axis: Any, rows: pa.Table, method: str, order: str) -> None:
    if not rows.num_rows:
        return
    values = np.array(rows["values"].to_pylist())
    pairs = [mean_and_half(column) for column in values.T]
    mean, half = (np.array(each) for each in zip(*pairs, strict=True))
    look = GREY if method == "random" else {"color": LOOKS[method]["color"]}
    label = "random order" if method == "random" else METHOD_NAMES[method]
    axis.plot(mean, linestyle="--" if order == "lerf" else "-", label=None if order == "lerf" else label, **look)
    axis.fill_between(range(len(mean)), mean - half, mean + half, color=look["color"], alpha=0.12, linewidth=0)


def area_bars(tables: Tables) -> Figure:
    """AOPC relative to the random order by fill, one panel a data set."""
    table = where(tables["aopc"], score="logit", region=REGION, share=SHARE)
    pairs = _pairs(table)

    def value(pair: str, method: str, fill: str) -> tuple[float, float]:
        found = minus(area(tables, pair, method, fill), area(tables, pair, "random", fill, "random"))
        return mean_and_half(found.values())

    return _bars(table, [(PAIR_NAMES[p], partial(value, p)) for p in pairs])


def photo_bars(tables: Tables) -> Figure:
    """The same for EfficientNet-Lite0: scenes, and plain crops below."""
    table = where(tables["photo_aopc"], score="logit", share=SHARE)

    def value(kind: str, method: str, fill: str) -> tuple[float, float]:
        first, second = areas(tables, method, fill, kind), areas(tables, "random", fill, kind)
        return mean_and_half(first[name] - second[name] for name in first)

    kinds = {"scene": "scenes with an animal", "crop": "crops of photographs"}
    return _bars(table, [(title, partial(value, kind)) for kind, title in kinds.items()])


def _bars(table: pa.Table, panels: Sequence[tuple[str, Callable[[str, str], tuple[float, float]]]]) -> Figure:
    methods = present(table["method"].to_pylist(), METHOD_NAMES)
    fills = present(table["fill"].to_pylist(), FILL_NAMES)
    width = 0.85 / len(methods)
    with style():
        drawn, axes = figure(1.6 * len(panels) + 0.6, rows=len(panels), sharex=True)
        for axis, (title, value) in zip(axes[:, 0], panels, strict=True):
            for number, method in enumerate(methods):
                found = [value(method, fill) for fill in fills]
                at = np.arange(len(fills)) + (number - (len(methods) - 1) / 2) * width
                means, halves = zip(*found, strict=True)
                axis.bar(at, means, width, yerr=halves, color=LOOKS[method]["color"], label=METHOD_NAMES[method],
                         error_kw={"elinewidth": 0.7}, alpha=0.5 if method in ("edges", "noise") else 1.0)  # fmt: skip
            axis.axhline(0, color="0.3", linewidth=0.7)
            axis.set_title(title)
            axis.set_ylabel("AOPC - random")
        axes[-1, 0].set_xticks(range(len(fills)), [FILL_NAMES[fill] for fill in fills])
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=4)
    return drawn


def complexity(tables: Tables) -> Figure:
    """Bytes, entropy and total variation by method."""
    metrics = {"png_bytes": "bytes", "entropy": "entropy, bits", "total_variation": "total variation"}
    return _dots(tables["measures"], [(metric, "", title) for metric, title in metrics.items()])


def reactions(tables: Tables) -> Figure:
    """Jumps, likeness within a class, stability of ranks by method."""
    panels = [("jump", "", "largest jump"), ("likeness_same_class", "signed", "likeness within a class")]
    table = tables["measures"]
    table = table.filter(pc.not_equal(table["method"], "noise"))
    return _dots(table, [*panels, ("rank_stability", "", "stability of ranks")])


def _dots(table: pa.Table, panels: Sequence[tuple[str, str, str]]) -> Figure:
    methods, pairs = present(table["method"].to_pylist(), METHOD_NAMES), _pairs(table)
    markers = dict(zip(PAIR_NAMES, ("o", "s", "^"), strict=True))
    with style():
        drawn, axes = figure(2.9, columns=len(panels), sharey=True)
        for axis, (metric, condition, title) in zip(axes[0], panels, strict=True):
            for at, method in enumerate(methods):
                for shift, pair in enumerate(pairs):
                    chosen = {"metric": metric, "condition": condition, "method": method, "pair": pair}
                    values = where(table, **chosen)["value"].to_pylist()
                    if not values:
                        continue
                    place = at + 0.22 * (shift - (len(pairs) - 1) / 2)
                    mean, half = mean_and_half(values)
                    colour = LOOKS[method]["color"]
                    axis.errorbar(mean, place, xerr=half, color=colour, marker=markers[pair], markersize=4, linewidth=1)
                    axis.plot(values, [place] * len(values), ".", color=colour, markersize=2, alpha=0.6)
            axis.set_title(title)
        axes[0, 0].set_yticks(range(len(methods)), [METHOD_NAMES[method] for method in methods])
        axes[0, 0].invert_yaxis()
        for pair in pairs:
            axes[0, -1].plot([], [], linestyle="", marker=markers[pair], color="0.3", label=PAIR_NAMES[pair])
        drawn.legend(*axes[0, -1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return drawn


def fill_matrix(tables: Tables) -> Figure:
    """AOPC of LRP minus that of its rivals: settings by rival, share of the logit."""
    found = _differences(tables)
    columns = list(dict.fromkeys((pair, other) for pair, other, *_ in found))
    rows = list(dict.fromkeys(tuple(rest) for _, _, *rest in found))
    with style():
        drawn, axes = figure(0.26 * len(rows) + 1.1)
        axis = axes[0, 0]
        grid = np.full((len(rows), len(columns)), np.nan)
        for (pair, other, *rest), values in found.items():
            mean, half = mean_and_half(values)
            at = rows.index(tuple(rest)), columns.index((pair, other))
            grid[at] = mean
            axis.text(
                at[1], at[0], f"{mean:+.2f}" + ("" if abs(mean) > half else " ~"), ha="center", va="center", fontsize=7
            )
        top = float(np.nanmax(np.abs(grid))) or 1.0
        axis.imshow(grid, cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto", alpha=0.75)
        names = {"sensitivity": "sensitivity", "deconvolution": "deconv."}
        axis.set_xticks(range(len(columns)), [f"{SHORT[p]}\n- {names[o]}" for p, o in columns], fontsize=6)
        labels = [f"{FILL_NAMES[fill]}, {region} px, {share:.0%}" for fill, region, share in rows]
        axis.set_yticks(range(len(rows)), labels, fontsize=7)
        axis.grid(False)
    return drawn


def _differences(tables: Tables) -> Mapping[tuple[Any, ...], list[float]]:
    found: dict[tuple[Any, ...], list[float]] = {}
    table = where(tables["aopc"], score="logit")
    starts: dict[Any, list[float]] = {}
    for row in table.select(["pair", "seed", "start"]).to_pylist():
        starts.setdefault((row["pair"], row["seed"]), []).append(row["start"])
    for (pair, *rest, _), values in settings({"aopc": table}, black=True).items():
        found[pair, *rest] = [value / float(np.mean(starts[pair, seed])) for seed, value in values.items()]
    return found


def epsilons(tables: Tables) -> Figure:
    """Loss of relevance and largest relevance against epsilon."""
    table = tables["epsilons"]
    smallest = min((e for e in table["epsilon"].to_pylist() if e > 0), default=1e-9)
    with style():
        drawn, axes = figure(2.6, columns=2)
        for axis, metric, label in zip(
            axes[0], ("gap", "largest"), ("lost share of the logit", "largest relevance / logit"), strict=True
        ):
            rows = where(table, metric=metric)
            values = sorted(set(rows["epsilon"].to_pylist()))
            at = [e if e > 0 else smallest / 100 for e in values]
            single = where(rows, seed=0)
            for image in sorted(set(single["image"].to_pylist()))[:8]:
                line = where(single, image=image).sort_by("epsilon")["value"].to_numpy()
                axis.plot(at, np.maximum(line, 1e-17), color="0.75", linewidth=0.6)
            middle = [np.median(where(rows, epsilon=e)["value"].to_numpy()) for e in values]
            axis.plot(at, np.maximum(middle, 1e-17), color="#0072B2", marker="o")
            axis.set(xscale="log", yscale="log", xlabel="epsilon", ylabel=label)
    return drawn


def _pairs(table: pa.Table) -> list[str]:
    return present(table["pair"].to_pylist(), PAIR_NAMES)

"""The study's curves, bars and heat maps, redrawn from tables. No torch.

Maps stand in `map_figures`, the table of verdicts in `verdict_table`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import figure, series, style
from restudy.studies.saliency_sanity.agreement import kendall_w, kendall_w_null, methods_of, rankings
from restudy.studies.saliency_sanity.drawing import (
    METHOD_NAMES,
    METRIC_NAMES,
    PAIR_NAMES,
    mean_and_half_width,
    pairs_of,
)
from restudy.studies.saliency_sanity.photo_statistics import photo_means
from restudy.studies.saliency_sanity.rule import METRICS
from restudy.studies.saliency_sanity.tidy import layers, similarity, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]


def cascade_curves(tables: Tables) -> Figure:
    """Similarity against the number of random layers from the top, one panel per pair and metric; 95% t bands."""
    pairs = pairs_of(tables["similarity"])
    with style():
        drawn, axes = figure(2.1 * len(pairs) + 0.8, rows=len(pairs), columns=len(METRICS), sharey=True)
        for row, pair in enumerate(pairs):
            methods = methods_of(tables["similarity"], pair)
            for column, metric in enumerate(METRICS):
                axis = axes[row, column]
                _cascade_panel(axis, tables, pair, methods, metric)
                axis.set_title(METRIC_NAMES[metric] if row == 0 else "")
                axis.set_xlabel(
                    "random layers; re: retrained, pe: permuted" if row == len(pairs) - 1 and column == 0 else "",
                    loc="left",
                )
            axes[row, 0].set_ylabel(f"{PAIR_NAMES[pair]}\nsimilarity")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=6.5, columnspacing=1.2)
    return drawn


def _cascade_panel(axis: Axes, tables: Tables, pair: str, methods: Sequence[str], metric: str) -> None:
    count = layers(tables, pair)
    looks = series(list(METHOD_NAMES))
    for method in methods:
        points = [(0.0, 1.0, 0.0)]
        for depth in range(1, count + 1):
            values = similarity(tables, pair, method, metric, "top_down", depth=depth)
            points.append((float(depth), *mean_and_half_width(values)))
        x, mean, half = np.array(points).T
        axis.plot(x, mean, label=METHOD_NAMES[method], **looks[method])
        axis.fill_between(x, mean - half, mean + half, alpha=0.12, color=looks[method]["color"], linewidth=0)
        for place, state in ((count + 1, "seed_retrain"), (count + 2, "permuted_labels")):
            middle, width = mean_and_half_width(similarity(tables, pair, method, metric, state))
            look = {k: v for k, v in looks[method].items() if k != "linestyle"}
            axis.errorbar([place], [middle], yerr=[width], linestyle="none", elinewidth=0.8, **look)
    axis.axvline(count + 0.5, color="0.6", linewidth=0.8)
    axis.set_xticks(range(count + 3), [*map(str, range(count + 1)), "re", "pe"])
    axis.set_ylim(-0.2, 1.05)


def independent_heat(tables: Tables) -> Figure:
    """Mean similarity with one layer alone drawn anew, method by layer; signed and absolute rank correlation."""
    table = tables["similarity"]
    pairs = [p for p in pairs_of(table) if where(table, pair=p, state="independent").num_rows] or pairs_of(table)
    metrics = ("spearman", "spearman_abs")
    with style():
        drawn, axes = figure(2.6 * len(pairs), rows=len(pairs), columns=2)
        image = None
        for row, pair in enumerate(pairs):
            state = "independent" if where(table, pair=pair, state="independent").num_rows else "top_down"
            rows = where(table, pair=pair, state=state).to_pylist()
            names = dict(sorted({r["depth"]: r["layer"] for r in rows}.items()))
            methods = methods_of(table, pair)
            for axis, metric in zip(axes[row], metrics, strict=True):
                values = np.array(
                    [
                        [mean_and_half_width(similarity(tables, pair, m, metric, state, depth=d))[0] for d in names]
                        for m in methods
                    ]
                )
                image = axis.imshow(values, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
                _write_numbers(axis, values)
                axis.set_xticks(range(len(names)), names.values(), fontsize=7)
                axis.set_yticks(range(len(methods)), [METHOD_NAMES[m] for m in methods], fontsize=7)
                axis.set_title(f"{PAIR_NAMES[pair]}: {METRIC_NAMES[metric]}", fontsize=8)
                axis.grid(False)
        if image is not None:
            drawn.colorbar(image, ax=axes, shrink=0.5, aspect=30, label="similarity")
    return drawn


def _write_numbers(axis: Axes, values: Any) -> None:
    for (row, column), value in np.ndenumerate(values):
        text = "no map" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
        colour = "white" if abs(np.nan_to_num(value)) > 0.6 else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=6, color=colour)


def data_bars(tables: Tables) -> Figure:
    """Similarity on the retrained net and on permuted labels, per method and metric; 95% t whiskers."""
    pairs = pairs_of(tables["similarity"])
    arms = {
        "seed_retrain": ("retrained, true labels", "#0072B2", ""),
        "permuted_labels": ("permuted labels", "#E69F00", "///"),
    }
    with style():
        drawn, axes = figure(2.4 * len(pairs), rows=len(pairs), columns=2, sharey=True)
        for row, pair in enumerate(pairs):
            methods = methods_of(tables["similarity"], pair)
            at = np.arange(len(methods))
            for axis, metric in zip(axes[row], ("spearman", "spearman_abs"), strict=True):
                for shift, (state, (label, colour, hatch)) in zip((-0.2, 0.2), arms.items(), strict=True):
                    found = [mean_and_half_width(similarity(tables, pair, m, metric, state)) for m in methods]
                    mean, half = np.array(found).T
                    axis.bar(at + shift, mean, 0.38, yerr=half, label=label, color=colour, hatch=hatch, ecolor="0.3")
                names = [METHOD_NAMES[m] for m in methods]
                axis.set_xticks(at, names, rotation=40, ha="right", rotation_mode="anchor", fontsize=7)
                axis.set_title(f"{PAIR_NAMES[pair]}: {METRIC_NAMES[metric]}", fontsize=8)
            axes[row, 0].set_ylabel("similarity")
        axes[0, 0].legend()
    return drawn


def metric_bump(tables: Tables) -> Figure:
    """Ranks of the methods by their similarity over the cascade under each metric, mean over seeds; Kendall's W."""
    pairs = pairs_of(tables["similarity"])
    with style():
        drawn, axes = figure(3.0, columns=len(pairs))
        for axis, pair in zip(axes[0], pairs, strict=True):
            methods = methods_of(tables["similarity"], pair)
            mean = {
                metric: [
                    mean_and_half_width(similarity(tables, pair, m, metric, "top_down", redraw=0))[0] for m in methods
                ]
                for metric in METRICS
            }
            defined = ~np.isnan(np.array(list(mean.values()))).any(axis=0)
            shown = [m for m, fine in zip(methods, defined, strict=True) if fine]
            ranks = {k: np.argsort(np.argsort(-np.array(v)[defined])) + 1 for k, v in mean.items()}
            for place, method in enumerate(shown):
                heights = [ranks[metric][place] for metric in METRICS]
                axis.plot(
                    range(len(METRICS)), heights, label=METHOD_NAMES[method], **series(list(METHOD_NAMES))[method]
                )
                axis.text(len(METRICS) - 0.9, heights[-1], METHOD_NAMES[method], va="center", fontsize=6)
            found = [kendall_w(list(r.values())) for r in rankings(tables, pair).values()]
            null = kendall_w_null(max(len(shown), 3), len(METRICS))
            left_out = f"; {len(methods) - len(shown)} undefined" if len(shown) < len(methods) else ""
            axis.set_title(
                f"{PAIR_NAMES[pair]}: W = {np.mean(found):.2f}{left_out}\n"
                f"(by chance {null.mean():.2f}, 95% below {np.quantile(null, 0.95):.2f})",
                fontsize=7,
            )
            axis.set_xticks(range(len(METRICS)), [METRIC_NAMES[m] for m in METRICS], fontsize=6, rotation=20)
            axis.set_xlim(-0.2, len(METRICS) + 0.4)
            axis.invert_yaxis()
        axes[0, 0].set_ylabel("rank, 1 = most alike")
    return drawn


def training_curves(tables: Tables) -> Figure:
    """Running accuracy by epoch, one line per seed and arm; final accuracies in the legend."""
    curves, training = tables["curves"], tables["training"]
    pairs = pairs_of(curves)
    looks = series(["true", "retrain", "permuted"])
    with style():
        drawn, axes = figure(2.4, columns=len(pairs), sharey=True)
        for axis, pair in zip(axes[0], pairs, strict=True):
            for arm, look in looks.items():
                mine = where(curves, pair=pair, arm=arm)
                test = where(training, pair=pair, arm=arm, metric="test_accuracy")["value"].to_numpy().mean()
                label = f"{arm}: test {test:.2f}"
                for seed in sorted(set(mine["seed"].to_pylist())):
                    line = where(mine, seed=seed).sort_by("epoch")
                    axis.plot(line["epoch"].to_numpy(), line["accuracy"].to_numpy(), label=label, markersize=2,
                              color=look["color"], marker=look["marker"], linestyle=look["linestyle"])  # fmt: skip
                    label = "_nolegend_"
            axis.axhline(0.95, color="0.4", linestyle="--", linewidth=0.8)
            axis.set(xlabel="epoch", title=PAIR_NAMES[pair], ylim=(0, 1.02))
            axis.legend(loc="lower right")
        axes[0, 0].set_ylabel("running accuracy")
    return drawn


def photo_curves(tables: Tables) -> Figure:
    """The cascade on Lite0: mean over photos against the steps of the cascade, one panel per metric."""
    table = tables["photo_similarity"]
    rows = where(table, state="top_down", redraw=0, metric="ssim").to_pylist()
    steps = dict(sorted({r["depth"]: r["layer"] for r in rows}.items()))
    methods = [m for m in METHOD_NAMES if where(table, method=m).num_rows]
    with style():
        drawn, axes = figure(3.2, columns=len(METRICS), sharey=True)
        for axis, metric in zip(axes[0], METRICS, strict=True):
            for method, look in series(list(METHOD_NAMES)).items():
                if method not in methods:
                    continue
                found = [mean_and_half_width(photo_means(tables, method, metric, depth)) for depth in steps]
                mean, half = np.array([(1.0, 0.0), *found]).T
                axis.plot(range(len(mean)), mean, label=METHOD_NAMES[method], **look)
                axis.fill_between(
                    range(len(mean)), mean - half, mean + half, alpha=0.12, color=look["color"], linewidth=0
                )
            names = ["trained", *steps.values()]
            axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=6)
            axis.set_title(METRIC_NAMES[metric])
        axes[0, 0].set_ylabel("similarity")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        drawn.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=6.5, columnspacing=1.2)
    return drawn

"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.parts import (
    GUIDE,
    Band,
    Names,
    band,
    cell_texts,
    each_line,
    full_colour,
    heat_map,
    image_grid,
    interval,
    intervals,
    legend_below,
    mean_mark,
    panels,
    picture,
)
from restudy.plotting.style import COLOURS, figure, style
from restudy.tables import Array, Tables, where

from .statistics import (
    ACCEPTED,
    CNN,
    MARGIN,
    METRICS,
    NOT_APPLICABLE,
    REJECTED,
    alike,
    concordance,
    decide,
    layers,
    methods_of,
    photo_means,
    rankings,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METHODS = Names(
    {
        "gradient": "gradient",
        "smoothgrad": "SmoothGrad",
        "vargrad": "VarGrad",
        "gradient_x_input": "gradient x input",
        "integrated_gradients": "integrated gradients",
        "smoothgrad_ig": "IG-SmoothGrad",
        "gradcam": "GradCAM",
        "guided_backprop": "guided backprop",
        "guided_gradcam": "guided GradCAM",
        "deconvolution": "deconvolution",
    }
)
METRIC_NAMES = {"spearman": "rank, signed", "spearman_abs": "rank, absolute", "ssim": "SSIM", "hog": "HOG"}
PAIRS = Names(
    {
        "cnn-fashion_mnist": "CNN, Fashion-MNIST",
        "mlp-mnist5k": "MLP, MNIST digits",
        "cnn_paper_init-fashion_mnist": "CNN, paper's initial weights",
    }
)
ROWS = {**METHODS, "edges": "edges (Sobel)", "noise": "noise"}
TESTS = {"logits": "logit layer random", "all": "all layers random", "data": "permuted labels"}
CELLS = {ACCEPTED: ("#CFE8F3", ""), REJECTED: ("#F5C18A", "////"), NOT_APPLICABLE: ("#FFFFFF", "")}


def mean_of(tables: Tables, *asked: Any, **more: Any) -> float:
    """Mean over seeds of a similarity (arguments as of `alike`); NaN where one is undefined."""
    return interval(alike(*asked, **more).values(tables))[0]


def cascade(tables: Tables) -> Figure:
    """Similarity against the number of random layers from the top, one panel per pair and metric; 95% t bands."""
    pairs = PAIRS.present(tables["similarity"], "pair")
    with panels(2.1 * len(pairs) + 0.8, len(pairs), len(METRICS), sharey=True) as (drawn, axes):
        for row, pair in enumerate(pairs):
            for axis, metric in zip(axes[row], METRICS, strict=True):
                _cascade_panel(axis, tables, pair, metric)
                axis.set_title(METRIC_NAMES[metric] if row == 0 else "")
            axes[row, 0].set_ylabel(f"{PAIRS[pair]}\nsimilarity")
        axes[-1, 0].set_xlabel("random layers; re: retrained, pe: permuted", loc="left")
        legend_below(drawn, axes[0, 0], 5, fontsize=6.5, columnspacing=1.2)
    return drawn


def _cascade_panel(axis: Axes, tables: Tables, pair: str, metric: str) -> None:
    count = layers(tables, pair)
    for method in methods_of(tables["similarity"], pair):
        depths = range(1, count + 1)
        found = [alike(method, metric, pair=pair, depth=depth).values(tables) for depth in depths]
        curve = Band.of([0, *depths], [{0: 1.0}, *found])
        band(axis, curve, METHODS.styles[method], METHODS[method])
        for place, state in ((count + 1, "seed_retrain"), (count + 2, "permuted_labels")):
            look = METHODS.styled(method, linestyle="none", elinewidth=0.8)
            mean_mark(axis, place, alike(method, metric, state, pair).values(tables), **look)
    axis.axvline(count + 0.5, color="0.6", linewidth=0.8)
    axis.set_xticks(range(count + 3), [*map(str, range(count + 1)), "re", "pe"])
    axis.set_ylim(-0.2, 1.05)


def independent(tables: Tables) -> Figure:
    """Mean similarity with one layer alone drawn anew, method by layer; signed and absolute rank correlation."""
    table = tables["similarity"]
    alone = PAIRS.present(where(table, state="independent"), "pair")
    pairs = alone or PAIRS.present(table, "pair")
    state = "independent" if alone else "top_down"
    with panels(2.6 * len(pairs), len(pairs), 2) as (drawn, axes):
        for row, pair in enumerate(pairs):
            depths = where(table, pair=pair, state=state).to_pylist()
            names = dict(sorted({r["depth"]: r["layer"] for r in depths}.items()))
            methods = methods_of(table, pair)
            for axis, metric in zip(axes[row], ("spearman", "spearman_abs"), strict=True):
                values = np.array([[mean_of(tables, m, metric, state, pair, depth=d) for d in names] for m in methods])
                labels, steps = [METHODS[m] for m in methods], list(names.values())
                image = heat_map(axis, values, labels, steps, fontsize=7, cmap="RdBu_r", vmin=-1, vmax=1)
                cell_texts(axis, values, _written, _readable, fontsize=6)
                axis.set_title(f"{PAIRS[pair]}: {METRIC_NAMES[metric]}", fontsize=8)
        drawn.colorbar(image, ax=axes, shrink=0.5, aspect=30, label="similarity")
    return drawn


def _written(value: float) -> str:
    return "no map" if np.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)


def _readable(value: float) -> str:
    return "white" if abs(np.nan_to_num(value)) > 0.6 else "black"


def data(tables: Tables) -> Figure:
    """Similarity on the retrained net and on permuted labels, per method and metric; 95% t whiskers."""
    pairs = PAIRS.present(tables["similarity"], "pair")
    arms = {
        "seed_retrain": ("retrained, true labels", COLOURS[0], ""),
        "permuted_labels": ("permuted labels", COLOURS[5], "///"),
    }
    with panels(2.4 * len(pairs), len(pairs), 2, sharey=True) as (drawn, axes):
        for row, pair in enumerate(pairs):
            methods = methods_of(tables["similarity"], pair)
            at = np.arange(len(methods))
            for axis, metric in zip(axes[row], ("spearman", "spearman_abs"), strict=True):
                for shift, (state, (label, colour, hatch)) in zip((-0.2, 0.2), arms.items(), strict=True):
                    mean, half = intervals(alike(m, metric, state, pair).values(tables) for m in methods)
                    axis.bar(at + shift, mean, 0.38, yerr=half, label=label, color=colour, hatch=hatch, ecolor="0.3")
                names = [METHODS[m] for m in methods]
                axis.set_xticks(at, names, rotation=40, ha="right", rotation_mode="anchor", fontsize=7)
                axis.set_title(f"{PAIRS[pair]}: {METRIC_NAMES[metric]}", fontsize=8)
            axes[row, 0].set_ylabel("similarity")
        axes[0, 0].legend()
    return drawn


def metrics(tables: Tables) -> Figure:
    """Ranks of the methods by their similarity over the cascade under each metric, mean over seeds; Kendall's W."""
    pairs = PAIRS.present(tables["similarity"], "pair")
    with panels(3.0, 1, len(pairs)) as (drawn, axes):
        for axis, pair in zip(axes[0], pairs, strict=True):
            methods = methods_of(tables["similarity"], pair)
            mean = np.array([[mean_of(tables, m, name, pair=pair, redraw=0) for m in methods] for name in METRICS])
            defined = ~np.isnan(mean).any(axis=0)
            shown = [m for m, fine in zip(methods, defined, strict=True) if fine]
            ranks = np.array([np.argsort(np.argsort(-row[defined])) + 1 for row in mean])
            for method, heights in zip(shown, ranks.T, strict=True):
                axis.plot(range(len(METRICS)), heights, label=METHODS[method], **METHODS.styles[method])
                axis.text(len(METRICS) - 0.9, heights[-1], METHODS[method], va="center", fontsize=6)
            found = [concordance(judges) for judges in rankings(tables, pair).values()]
            null = concordance_by_chance(max(len(shown), 3), len(METRICS))
            left_out = f"; {len(methods) - len(shown)} undefined" if len(shown) < len(methods) else ""
            axis.set_title(
                f"{PAIRS[pair]}: W = {np.mean(found):.2f}{left_out}\n"
                f"(by chance {null.mean():.2f}, 95% below {np.quantile(null, 0.95):.2f})",
                fontsize=7,
            )
            axis.set_xticks(range(len(METRICS)), [METRIC_NAMES[m] for m in METRICS], fontsize=6, rotation=20)
            axis.set_xlim(-0.2, len(METRICS) + 0.4)
            axis.invert_yaxis()
        axes[0, 0].set_ylabel("rank, 1 = most alike")
    return drawn


def concordance_by_chance(methods: int, judges: int, *, draws: int = 4000) -> Array:
    """Kendall's W of judges who order the methods at random, (draws,) float64."""
    generator = np.random.default_rng(0)
    orders = generator.permuted(np.tile(np.arange(methods), (draws, judges, 1)), axis=2) + 1.0
    sums = orders.sum(axis=1)
    deviation = np.square(sums - sums.mean(axis=1, keepdims=True)).sum(axis=1)
    found: Array = 12 * deviation / (judges**2 * (methods**3 - methods))
    return found


def training(tables: Tables) -> Figure:
    """Running accuracy by epoch, one line per seed and arm; final accuracies in the legend."""
    curves = tables["curves"]
    pairs = PAIRS.present(curves, "pair")
    arms = Names({"true": "true", "retrain": "retrain", "permuted": "permuted"})
    with panels(2.4, 1, len(pairs), sharey=True) as (drawn, axes):
        for axis, pair in zip(axes[0], pairs, strict=True):
            for arm, look in arms.styles.items():
                test = where(tables["training"], pair=pair, arm=arm, metric="test_accuracy")["value"].to_numpy()
                label = f"{arm}: test {test.mean():.2f}"
                for _, epochs, accuracy in each_line(curves, "seed", "epoch", "accuracy", pair=pair, arm=arm):
                    axis.plot(epochs, accuracy, label=label, markersize=2, **look)
                    label = "_nolegend_"
            axis.axhline(0.95, **GUIDE)
            axis.set(xlabel="epoch", title=PAIRS[pair], ylim=(0, 1.02))
            axis.legend(loc="lower right")
        axes[0, 0].set_ylabel("running accuracy")
    return drawn


def photos(tables: Tables) -> Figure:
    """The cascade on Lite0: mean over photos against the steps of the cascade, one panel per metric."""
    table = tables["photo_similarity"]
    rows = where(table, state="top_down", redraw=0, metric="ssim").to_pylist()
    steps = dict(sorted({r["depth"]: r["layer"] for r in rows}.items()))
    names = ["trained", *steps.values()]
    with panels(3.2, 1, len(METRICS), sharey=True) as (drawn, axes):
        for axis, metric in zip(axes[0], METRICS, strict=True):
            for method in METHODS.present(table, "method"):
                found = [photo_means(tables, method, metric, depth) for depth in steps]
                curve = Band.of(range(len(names)), [{"trained": 1.0}, *found])
                band(axis, curve, METHODS.styles[method], METHODS[method])
            axis.set_xticks(range(len(names)), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=6)
            axis.set_title(METRIC_NAMES[metric])
        axes[0, 0].set_ylabel("similarity")
        legend_below(drawn, axes[0, 0], 5, fontsize=6.5, columnspacing=1.2)
    return drawn


def signed(tables: Tables) -> Figure:
    """Signed maps of the first example image on every net, full colour at the 99th percentile of each."""
    return _grid(where(tables["maps"], image=0, pair=CNN), absolute=False)


def absolute(tables: Tables) -> Figure:
    """The same maps without their signs."""
    return _grid(where(tables["maps"], image=0, pair=CNN), absolute=True)


def photo_maps(tables: Tables) -> Figure:
    """Absolute maps of the first example photo through the cascade on Lite0."""
    table = tables["photo_maps"]
    return _grid(where(table, photo=table["photo"][0].as_py()), absolute=True)


def _grid(table: pa.Table, *, absolute: bool) -> Figure:
    maps = {(r["method"], (r["state"], r["depth"])): r for r in table.to_pylist()}
    methods = [m for m in ROWS if any(method == m for method, _ in maps)]
    states = _states(list(maps.values()))
    with image_grid([ROWS[m] for m in methods], ["input", *states.values()], left=1.15, top=0.25) as (drawn, axes):
        axes[0, 0].imshow(picture(maps["input", ("trained", 0)]), cmap="gray_r")
        for row, method in enumerate(methods):
            for axis, state in zip(axes[row, 1:], states, strict=True):
                if (method, state) in maps:
                    _show(axis, picture(maps[method, state]), absolute=absolute)
    return drawn


def _states(rows: list[dict[str, Any]]) -> dict[tuple[str, int], str]:
    """The columns: trained, the cascade from the top, retrained, permuted labels; with their titles."""
    steps = {r["depth"]: r["layer"] for r in rows if r["state"] == "top_down"}
    found = {("trained", 0): "trained"}
    found |= {("top_down", d): ("+ " if d > 1 else "") + steps[d] for d in sorted(steps)}
    others = {("seed_retrain", 0): "retrained", ("permuted_labels", 0): "permuted"}
    present = {r["state"] for r in rows}
    return found | {state: title for state, title in others.items() if state[0] in present}


def _show(axis: Axes, values: Array, *, absolute: bool) -> None:
    if absolute:
        axis.imshow(np.abs(full_colour(values)), cmap="Greys", vmin=0, vmax=1)
    else:
        axis.imshow(full_colour(values), cmap="RdBu_r", vmin=-1, vmax=1)
    if not values.any():
        axis.text(0.5, 0.5, "all zero", transform=axis.transAxes, ha="center", va="center", fontsize=5)


def decisions(tables: Tables, pair: str) -> dict[str, dict[tuple[str, str], tuple[str, float]]]:
    """Method -> (test, metric) -> decision and drop below the retrained net, means over seeds."""
    states: dict[str, tuple[str, dict[str, int]]] = {
        "logits": ("top_down", {"depth": 1}),
        "all": ("top_down", {"depth": layers(tables, pair)}),
        "data": ("permuted_labels", {}),
    }
    everywhere = set(tables["similarity"]["method"].to_pylist())
    measured = set(where(tables["similarity"], pair=pair)["method"].to_pylist())
    found: dict[str, dict[tuple[str, str], tuple[str, float]]] = {}
    for method in [m for m in ROWS if m in everywhere]:
        cells = found[method] = {}
        for test, (state, more) in states.items():
            for metric in METRICS:
                cells[test, metric] = (NOT_APPLICABLE, math.nan)
                if method in measured:
                    changed = mean_of(tables, method, metric, state, pair, **more)
                    yardstick = mean_of(tables, method, metric, "seed_retrain", pair)
                    cells[test, metric] = (decide(changed, yardstick), yardstick - changed)
    return found


def verdicts(tables: Tables) -> Figure:
    """One block of rows per pair; a cell shows the fall below the retrained net and the decision by its colour."""
    found = {pair: decisions(tables, pair) for pair in PAIRS.present(tables["similarity"], "pair")}
    with style():
        drawn, axes = figure(sum(0.24 * (len(f) + 3) for f in found.values()) + 0.5, rows=len(found))
        for axis, (pair, block) in zip(axes[:, 0], found.items(), strict=True):
            _block(axis, block, PAIRS[pair])
        drawn.supxlabel(
            "Numbers: fall of the similarity below that of a retrained net. Blue: accepted (at least .10); "
            "orange, hatched: rejected.",
            fontsize=7,
        )
    return drawn


def _number(drop: float) -> str:
    """Two decimals, or three where two would hide on which side of the margin the number lies."""
    if math.isnan(drop):
        return "no map"
    short = f"{drop + 0.0:+.2f}".replace("-0.00", "+0.00")
    return short if (float(short) >= MARGIN) == (drop >= MARGIN) else f"{drop:+.3f}"


def _block(axis: Axes, found: Mapping[str, Mapping[tuple[str, str], tuple[str, float]]], title: str) -> None:
    from matplotlib.patches import Rectangle

    columns = [(test, metric) for test in TESTS for metric in METRICS]
    for row, (_method, cells) in enumerate(found.items()):
        for column, key in enumerate(columns):
            decision, drop = cells[key]
            colour, hatch = CELLS.get(decision, ("#E5E5E5", ""))
            look: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "hatch": hatch}
            axis.add_patch(Rectangle((column, row), 1, 1, **look))
            text = "n/a" if decision == NOT_APPLICABLE else _number(drop)
            box = {"facecolor": colour, "edgecolor": "none", "pad": 0.6}
            axis.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=6, bbox=box)
    axis.set(xlim=(0, len(columns)), ylim=(len(found), 0))
    axis.set_yticks([i + 0.5 for i in range(len(found))], [ROWS[m] for m in found], fontsize=7)
    axis.set_xticks([i + 0.5 for i in range(len(columns))], [METRIC_NAMES[m] for _, m in columns], fontsize=5.5,
                    rotation=25, ha="left", rotation_mode="anchor")  # fmt: skip
    axis.tick_params(length=0, top=False, bottom=False, labeltop=True, labelbottom=False)
    axis.grid(False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    for place, name in enumerate(TESTS.values()):
        axis.axvline(4 * place, color="0.3", linewidth=0.8)
        axis.text(4 * place + 2, len(found) + 0.1, name, ha="center", va="top", fontsize=7)
    axis.set_title(title, fontsize=8, loc="left")

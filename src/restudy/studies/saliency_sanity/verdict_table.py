"""Table T1: what both checks decide on every method, metric by metric. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from restudy.plotting.style import COLUMN_WIDTH, style
from restudy.studies.saliency_sanity.drawing import (
    METHOD_NAMES,
    METRIC_NAMES,
    PAIR_NAMES,
    mean_and_half_width,
    pairs_of,
)
from restudy.studies.saliency_sanity.rule import ACCEPTED, MARGIN, METRICS, NOT_APPLICABLE, REJECTED, decide
from restudy.studies.saliency_sanity.tidy import layers, similarity, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]
TESTS = {"logits": "logit layer random", "all": "all layers random", "data": "permuted labels"}
ROWS = {**METHOD_NAMES, "edges": "edges (Sobel)", "noise": "noise"}
COLOURS = {ACCEPTED: ("#CFE8F3", ""), REJECTED: ("#F5C18A", "////"), NOT_APPLICABLE: ("#FFFFFF", "")}


def decisions(tables: Tables, pair: str) -> dict[str, dict[tuple[str, str], tuple[str, float]]]:
    """Method -> (test, metric) -> decision and drop below the retrained net, means over seeds."""
    count = layers(tables, pair)
    states: dict[str, tuple[str, dict[str, object]]] = {
        "logits": ("top_down", {"depth": 1}),
        "all": ("top_down", {"depth": count}),
        "data": ("permuted_labels", {}),
    }
    measured = set(where(tables["similarity"], pair=pair)["method"].to_pylist())
    everywhere = set(tables["similarity"]["method"].to_pylist())
    found: dict[str, dict[tuple[str, str], tuple[str, float]]] = {}
    for method in (m for m in ROWS if m in everywhere):
        found[method] = {}
        for test, (state, more) in states.items():
            for metric in METRICS:
                if method not in measured:
                    found[method][test, metric] = (NOT_APPLICABLE, float("nan"))
                    continue
                changed = mean_and_half_width(similarity(tables, pair, method, metric, state, **more))[0]
                yardstick = mean_and_half_width(similarity(tables, pair, method, metric, "seed_retrain"))[0]
                found[method][test, metric] = (decide(changed, yardstick), yardstick - changed)
    return found


def verdict_table(tables: Tables) -> Figure:
    """One block of rows per pair; a cell shows the fall below the retrained net and the decision by its colour."""
    from matplotlib.figure import Figure

    pairs = pairs_of(tables["similarity"])
    with style():
        found = {pair: decisions(tables, pair) for pair in pairs}
        height = sum(0.24 * (len(f) + 3) for f in found.values()) + 0.5
        drawn = Figure(figsize=(COLUMN_WIDTH, height), layout="constrained")
        axes = drawn.subplots(len(pairs), 1, squeeze=False)
        for axis, pair in zip(axes[:, 0], pairs, strict=True):
            _block(axis, found[pair], PAIR_NAMES[pair])
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
            colour, hatch = COLOURS.get(decision, ("#E5E5E5", ""))
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

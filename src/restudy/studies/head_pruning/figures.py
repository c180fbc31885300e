"""The study's figures, redrawn from tables. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from restudy.plotting.style import COLOURS, MARKERS, figure, style
from restudy.studies.head_pruning.drawing import (
    ARM_NAMES,
    FUNCTION_LOOKS,
    KIND_NAMES,
    dots,
    heat_map,
    layer_colour,
    metric_grid,
    role_names,
)
from restudy.studies.head_pruning.measures import (
    PAIRS,
    constant_offset,
    functions,
    gates_of,
    held_out,
    kept_share,
    main_penalty,
    shares,
)
from restudy.studies.head_pruning.tidy import Array, Mask, seeds_of, where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Tables = Mapping[str, pa.Table]


def confidence_maps(tables: Tables) -> Figure:
    """Confidence by layer and head of three models, seed of the first replicate."""
    seed = seeds_of(tables["heads"])[0]
    with style():
        drawn, axes = figure(1.9, columns=len(ARM_NAMES), sharey=True)
        for axis, (arm, name) in zip(axes[0], ARM_NAMES.items(), strict=True):
            values = np.sort(metric_grid(tables["heads"], arm, "confidence", seed), axis=1)[:, ::-1]
            image = heat_map(axis, values, 0, 1)
            axis.set_title(name, fontsize=8)
            axis.set_xlabel("heads")
        axes[0, 0].set_ylabel("layer")
        drawn.colorbar(image, ax=list(axes[0]), shrink=0.9, label="confidence")
    return drawn


def importance_maps(tables: Tables) -> Figure:
    """Four measures side by side, and how they fall within a layer over all seeds."""
    table = tables["heads"]
    seed = seeds_of(table)[0]
    metrics = ("relevance", "confidence", "ablation", "gradient")
    order = np.argsort(-metric_grid(table, "relative", "relevance", seed), axis=1)
    with style():
        drawn, axes = figure(3.6, rows=2, columns=4)
        for axis, metric in zip(axes[0], metrics, strict=True):
            values = np.take_along_axis(metric_grid(table, "relative", metric, seed), order, axis=1)
            heat_map(axis, np.clip(values, 0, None), 0, float(values.max()))
            axis.set_title(metric, fontsize=8)
        axes[0, 0].set_ylabel("layer")
        for axis, metric in zip(axes[1], metrics, strict=True):
            for arm, colour, dash in (("relative", COLOURS[0], "-"), ("untrained", COLOURS[8], "--")):
                curve = _sorted_shares(table, arm, metric)
                axis.plot(range(1, len(curve) + 1), curve, color=colour, linestyle=dash, label=ARM_NAMES[arm])
            axis.set_xlabel("head, sorted")
            axis.locator_params(axis="x", integer=True)
        axes[1, 0].set_ylabel("share of the layer")
        axes[1, 0].legend(fontsize=6)
    return drawn


def _sorted_shares(table: pa.Table, arm: str, metric: str) -> Array:
    """Shares of a layer's sum in falling order, mean over layers and seeds."""
    found = []
    for seed in seeds_of(table):
        values = np.clip(metric_grid(table, arm, metric, seed), 0, None)
        total = values.sum(1, keepdims=True)
        found.append(np.sort(np.divide(values, total, out=np.zeros_like(values), where=total > 0), axis=1)[:, ::-1])
    return np.asarray(np.concatenate(found).mean(0), dtype=np.float64)


def relation_bars(tables: Tables) -> Figure:
    """Best head against constant offset for each relation and direction, with controls."""
    cases = [("relative", "given", COLOURS[1], "trained"), ("untrained", "given", COLOURS[8], "untrained")]
    cases.append(("relative", "permuted", COLOURS[4], "permuted trees"))
    with style():
        drawn, axes = figure(2.8)
        axis: Axes = axes[0, 0]
        for number, (arm, trees, colour, label) in enumerate(cases):
            for place, (relation, direction) in enumerate(PAIRS):
                values = _accuracies(tables, arm, trees, relation, direction)
                at = place + 0.26 * (number - 1)
                axis.bar(at, np.mean(values), 0.24, color=colour, label=label if place == 0 else None)
                dots(axis, at, values)
        for place, (relation, direction) in enumerate(PAIRS):
            base = [
                np.mean(
                    [constant_offset(_pair(tables["baselines"], relation, direction, "given", s), h) for h in (0, 1)]
                )
                for s in seeds_of(tables["baselines"])
            ]
            level = float(np.mean(base))
            name = "best constant offset" if place == 0 else None
            axis.plot([place - 0.42, place + 0.42], [level, level], color="black", linewidth=1.2, label=name)
        names = [f"{r}\n{'head to dep.' if d == 'to_dependent' else 'dep. to head'}" for r, d in PAIRS]
        axis.set_xticks(range(len(PAIRS)), names, fontsize=6)
        axis.set(ylabel="accuracy", ylim=(0, 1.02))
        axis.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    return drawn


def _pair(table: pa.Table, relation: str, direction: str, trees: str, seed: int) -> pa.Table:
    return where(table, relation=relation, direction=direction, trees=trees, seed=seed)


def _accuracies(tables: Tables, arm: str, trees: str, relation: str, direction: str) -> list[float]:
    rows = where(tables["relations"], arm=arm)
    found = []
    for seed in seeds_of(rows):
        own = _pair(rows, relation, direction, trees, seed)
        found.append(held_out((shares(where(own, half=0)), shares(where(own, half=1)))))
    return found


def function_maps(tables: Tables) -> Figure:
    """Functions and survival of every encoder head, and how many heads have a function before and after."""
    seeds = seeds_of(where(tables["gates"], arm="encoder"))
    counts: dict[str, dict[str, list[int]]] = {"before": {}, "after": {}}
    with style():
        drawn, axes = figure(2.2, columns=len(seeds) + 1, width_ratios=[1] * len(seeds) + [1.6])
        for axis, seed in zip(axes[0, :-1], seeds, strict=True):
            kept = gates_of(tables, seed, "gate") > 0.5
            before, after = (role_names(functions(tables, arm, seed)) for arm in ("relative", "pruned"))
            _dots_by_function(axis, before, kept)
            axis.set_title(f"seed {seed}: {int(kept.sum())} kept", fontsize=6)
            for name, roles in (("before", before), ("after", np.where(kept, after, "shut"))):
                for role in FUNCTION_LOOKS:
                    counts[name].setdefault(role, []).append(int((roles == role).sum()))
        axes[0, 0].set_ylabel("layer")
        for axis in axes[0, 1:-1]:
            axis.set_yticklabels([])
        last: Axes = axes[0, -1]
        for place, name in enumerate(("before", "after")):
            bottom = 0.0
            for role, (colour, label) in FUNCTION_LOOKS.items():
                mean = float(np.mean(counts[name][role]))
                last.bar(place, mean, 0.7, bottom=bottom, color=colour, label=label if place == 0 else None)
                bottom += mean
        last.set_xticks([0, 1], ["before", "after"], fontsize=7)
        last.set_ylabel("heads, mean over seeds", fontsize=7)
        last.set_ylim(0, 1.7 * sum(float(np.mean(values)) for values in counts["before"].values()))
        last.legend(fontsize=5, loc="upper right")
    return drawn


def _dots_by_function(axis: Axes, roles: np.ndarray[tuple[int, int], np.dtype[np.str_]], kept: Mask) -> None:
    for (layer, head), role in np.ndenumerate(roles):
        colour = FUNCTION_LOOKS[str(role)][0]
        face = colour if kept[layer, head] else "none"
        axis.plot(head, layer + 1, "o", markerfacecolor=face, markeredgecolor=colour, markersize=4.5)
    axis.set_yticks(range(1, len(roles) + 1))
    axis.set_xticks([])
    axis.set(xlim=(-0.7, roles.shape[1] - 0.3), ylim=(0.5, len(roles) + 0.5))
    axis.grid(False)


_SCORE_LOOKS = {
    ("open", True): (COLOURS[6], MARKERS[6], "all heads, trained on"),
    ("l0", True): (COLOURS[1], MARKERS[0], "L0 gates"),
    ("random", True): (COLOURS[8], MARKERS[2], "random, trained on"),
    ("confidence", True): (COLOURS[4], MARKERS[3], "by confidence, trained on"),
    ("scratch", True): (COLOURS[2], MARKERS[1], "from scratch"),
    ("l0", False): (COLOURS[5], MARKERS[0], "L0 mask, unpruned weights"),
    ("random", False): (COLOURS[3], MARKERS[2], "random, unpruned weights"),
}


def pruning_scores(tables: Tables) -> Figure:
    """BLEU and cross-entropy against the number of encoder heads that are kept."""
    table = tables["scores"]
    with style():
        drawn, axes = figure(3.0, columns=2)
        for axis, metric, label in zip(
            axes[0], ("bleu", "cross_entropy"), ("BLEU", "cross-entropy, nats"), strict=True
        ):
            for (arm, tuned), (colour, marker, name) in _SCORE_LOOKS.items():
                rows = where(table, arm=arm, tuned=tuned, metric=metric)
                if rows.num_rows:
                    x, y = rows["kept"].to_numpy(), rows["value"].to_numpy()
                    axis.plot(x, y, linestyle="", marker=marker, color=colour, markersize=4, alpha=0.8, label=name)
            axis.set(xlabel="encoder heads kept", ylabel=label)
            axis.locator_params(axis="x", integer=True)
        losses = where(table, metric="cross_entropy")["value"].to_numpy()
        if losses.max() > 3 * losses.min():  # over less than that a log scale has no decade to label
            axes[0, 1].set_yscale("log")
        axes[0, 1].legend(fontsize=6)
    return drawn


def kept_by_kind(tables: Tables) -> Figure:
    """What is left when every head has a gate: by kind, and by layer of the decoder."""
    gates = where(tables["gates"], arm="all")
    with style():
        drawn, axes = figure(2.4, columns=2)
        left, right = axes[0]
        for place, (kind, name) in enumerate(KIND_NAMES.items()):
            values = list(kept_share(tables, "all", kind).values())
            left.bar(place, np.mean(values), 0.6, color=COLOURS[place], label=name)
            dots(left, place, values)
        left.set_xticks(range(3), list(KIND_NAMES.values()))
        left.set(ylabel="share of heads kept", ylim=(0, 1.02))
        for number, kind in enumerate(("encoder", "decoder", "cross")):
            rows = where(gates, kind=kind)
            for layer in sorted(set(rows["layer"].to_pylist())):
                own = where(rows, layer=layer)
                kept = [float((where(own, seed=s)["gate"].to_numpy() > 0.5).sum()) for s in seeds_of(own)]
                at = layer + 0.26 * (number - 1)
                right.bar(at, np.mean(kept), 0.24, color=COLOURS[number], label=kind if layer == 0 else None)
                dots(right, at, kept)
        layers = sorted(set(gates["layer"].to_pylist()))
        right.set_xticks(layers, [str(layer + 1) for layer in layers])
        right.set(xlabel="layer", ylabel="heads kept")
        right.legend(fontsize=7)
    return drawn


def gate_paths(tables: Tables) -> Figure:
    """P(g = 0) over training, one line for each encoder head, at the middle lambda."""
    table = where(tables["gate_paths"], arm="encoder")
    seed = seeds_of(table)[0]
    known = {"gates": where(tables["gate_paths"], arm="encoder")}
    rows = where(table, seed=seed, penalty=main_penalty(known))
    with style():
        drawn, axes = figure(2.2)
        axis: Axes = axes[0, 0]
        for layer in sorted(set(rows["layer"].to_pylist())):
            for head in sorted(set(rows["head"].to_pylist())):
                line = where(rows, layer=layer, head=head).sort_by("step")
                steps, shut = line["step"].to_numpy(), line["shut"].to_numpy()
                label = f"layer {layer + 1}" if head == 0 else None
                axis.plot(steps, shut, color=layer_colour(layer), linewidth=0.9, label=label)
        axis.set(xlabel="step", ylabel="P(g = 0)", ylim=(-0.03, 1.03))
        axis.legend(fontsize=7)
    return drawn

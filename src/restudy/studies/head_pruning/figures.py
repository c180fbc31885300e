"""The study's figures, drawn from the tables of one track: those of real text go by the names of the synthetic ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.parts import Names, beside, dots, heat_map, panels
from restudy.plotting.style import COLOURS, MARKERS
from restudy.tables import Array, Tables, arrays, levels, ordered, where

from . import statistics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ARMS = Names({"relative": "relative positions", "sinusoid": "sinusoids alone", "untrained": "untrained"})
FUNCTIONS = {
    "none": ("#7F7F7F", "no function found"),
    "positional": ("#0072B2", "positional"),
    "syntactic": ("#D55E00", "syntactic"),
    "both": ("#009E73", "both"),
}
KINDS = ("encoder", "decoder", "cross")
SIDE_BY_SIDE = beside(3, 0.26)
CONTROLS = ((COLOURS[1], "trained"), (COLOURS[8], "untrained"))


def either_track(draw: Callable[[Tables], Figure]) -> Callable[[Tables], Figure]:
    """Let a figure read the tables of real text where it is given no others."""

    @wraps(draw)
    def drawn(tables: Tables) -> Figure:
        return draw({name.removeprefix(statistics.TEXT): table for name, table in tables.items()} | dict(tables))

    return drawn


def confidence(tables: Tables) -> Figure:
    """Confidence by layer and head of three models, seed of the first replicate."""
    table = tables["heads"]
    seed = levels(table)[0]
    with panels(1.9, 1, len(ARMS), sharey=True) as (drawn, axes):
        for axis, (arm, name) in zip(axes[0], ARMS.items(), strict=True):
            image = _head_map(axis, np.sort(_grid(table, arm, "confidence", seed), axis=1)[:, ::-1])
            axis.set_title(name, fontsize=8)
            axis.set_xlabel("heads")
        axes[0, 0].set_ylabel("layer")
        drawn.colorbar(image, ax=list(axes[0]), shrink=0.9, label="confidence")
    return drawn


def _grid(table: pa.Table, arm: str, metric: str, seed: int) -> Array:
    """A metric of the encoder's heads, (layers, heads)."""
    return statistics.grid(where(table, arm=arm, kind="encoder", metric=metric, seed=seed))


def _head_map(axis: Axes, values: Array, top: float = 1.0) -> Any:
    """Layers from bottom to top, heads from left to right."""
    names = [str(number + 1) for number in range(len(values))]
    return heat_map(axis, values, names, vmin=0, vmax=top, cmap="viridis", origin="lower")


@either_track
def importance(tables: Tables) -> Figure:
    """Four measures side by side, and how they fall within a layer over all seeds."""
    table = tables["heads"]
    seed = levels(table)[0]
    metrics = ("relevance", "confidence", "ablation", "gradient")
    order = np.argsort(-_grid(table, "relative", "relevance", seed), axis=1)
    with panels(3.6, 2, 4) as (drawn, axes):
        for axis, metric in zip(axes[0], metrics, strict=True):
            values = np.take_along_axis(_grid(table, "relative", metric, seed), order, axis=1)
            _head_map(axis, np.clip(values, 0, None), float(values.max()))
            axis.set_title(metric, fontsize=8)
        axes[0, 0].set_ylabel("layer")
        for axis, metric in zip(axes[1], metrics, strict=True):
            for arm, colour, dash in (("relative", COLOURS[0], "-"), ("untrained", COLOURS[8], "--")):
                curve = _sorted_shares(table, arm, metric)
                axis.plot(range(1, len(curve) + 1), curve, color=colour, linestyle=dash, label=ARMS[arm])
            axis.set_xlabel("head, sorted")
            axis.locator_params(axis="x", integer=True)
        axes[1, 0].set_ylabel("share of the layer")
        axes[1, 0].legend(fontsize=6)
    return drawn


def _sorted_shares(table: pa.Table, arm: str, metric: str) -> Array:
    """Shares of a layer's sum in falling order, mean over layers and seeds."""
    found = []
    for seed in levels(table):
        values = np.clip(_grid(table, arm, metric, seed), 0, None)
        total = values.sum(1, keepdims=True)
        found.append(np.sort(np.divide(values, total, out=np.zeros_like(values), where=total > 0), axis=1)[:, ::-1])
    return np.asarray(np.concatenate(found).mean(0))


def _bar(
    axis: Axes, place: float, values: Sequence[float], colour: str, label: str | None, width: float = 0.24
) -> None:
    """A bar as high as the mean over seeds, and a dot for each seed."""
    axis.bar(place, np.mean(values), width, color=colour, label=label)
    dots(axis, place, values, spread=0.12, color="black", markersize=3, zorder=3)


def _reference(axis: Axes, place: int, level: float, label: str, **look: Any) -> None:
    """A line across the bars of a place, named at the first one."""
    axis.plot([place - 0.42, place + 0.42], [level, level], color="black", label=None if place else label, **look)


@either_track
def relations(tables: Tables) -> Figure:
    """Best head against constant offset for each relation and direction, with controls."""
    cases = [("relative", "given", *CONTROLS[0]), ("untrained", "given", *CONTROLS[1])]
    cases.append(("relative", "permuted", COLOURS[4], "permuted trees"))
    with panels(2.8) as (drawn, axes):
        axis: Axes = axes[0, 0]
        for (arm, trees, colour, label), aside in zip(cases, SIDE_BY_SIDE, strict=True):
            for place, (relation, direction) in enumerate(statistics.PAIRS):
                rows = where(tables["relations"], arm=arm, relation=relation, direction=direction, trees=trees)
                values = [statistics.best_head(where(rows, seed=seed)) for seed in levels(rows)]
                _bar(axis, place + aside, values, colour, None if place else label)
        for place, (relation, direction) in enumerate(statistics.PAIRS):
            base = where(tables["baselines"], relation=relation, direction=direction, trees="given")
            own = [where(base, seed=seed) for seed in levels(base)]
            level = np.mean([np.mean([statistics.constant_offset(rows, half) for half in (0, 1)]) for rows in own])
            _reference(axis, place, float(level), "best constant offset", linewidth=1.2)
        names = [f"{r}\n{'head to dep.' if d == 'to_dependent' else 'dep. to head'}" for r, d in statistics.PAIRS]
        axis.set_xticks(range(len(names)), names, fontsize=6)
        axis.set(ylabel="accuracy", ylim=(0, 1.02))
        axis.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    return drawn


@either_track
def functions(tables: Tables) -> Figure:
    """Functions and survival of every encoder head, and how many heads have a function before and after."""
    seeds = levels(where(tables["gates"], arm="encoder"))
    before, after = [], []
    with panels(2.2, 1, len(seeds) + 1, width_ratios=[1] * len(seeds) + [1.6]) as (drawn, axes):
        for axis, seed in zip(axes[0, :-1], seeds, strict=True):
            kept = statistics.gates_of(tables, seed, "gate") > 0.5
            before.append(_roles(tables, "relative", seed))
            after.append(np.where(kept, _roles(tables, "pruned", seed), "shut"))
            _dots_by_function(axis, before[-1], kept)
            axis.set_title(f"seed {seed}: {int(kept.sum())} kept", fontsize=6)
        axes[0, 0].set_ylabel("layer")
        for axis in axes[0, 1:-1]:
            axis.set_yticklabels([])
        last: Axes = axes[0, -1]
        for place, found in enumerate((before, after)):
            bottom = 0.0
            for role, (colour, label) in FUNCTIONS.items():
                mean = float(np.mean([(roles == role).sum() for roles in found]))
                last.bar(place, mean, 0.7, bottom=bottom, color=colour, label=None if place else label)
                bottom += mean
        last.set_xticks([0, 1], ["before", "after"], fontsize=7)
        last.set_ylabel("heads, mean over seeds", fontsize=7)
        last.set_ylim(0, 1.7 * before[0].size)
        last.legend(fontsize=5, loc="upper right")
    return drawn


def _roles(tables: Tables, arm: str, seed: int) -> Array:
    """Function of each encoder head of a model, a key of `FUNCTIONS`, (layers, heads)."""
    found = statistics.functions(tables, arm, seed)
    positional, syntactic = found["positional"], found["syntactic"]
    return np.select([positional & syntactic, positional, syntactic], ["both", "positional", "syntactic"], "none")


def _dots_by_function(axis: Axes, roles: Array, kept: Array) -> None:
    """A dot for each head, in the colour of its function; filled where the head is kept."""
    for (layer, head), role in np.ndenumerate(roles):
        colour = FUNCTIONS[str(role)][0]
        face = colour if kept[layer, head] else "none"
        axis.plot(head, layer + 1, "o", markerfacecolor=face, markeredgecolor=colour, markersize=4.5)
    axis.set_yticks(range(1, len(roles) + 1))
    axis.set_xticks([])
    axis.set(xlim=(-0.7, roles.shape[1] - 0.3), ylim=(0.5, len(roles) + 0.5))
    axis.grid(False)


SCORES = {
    ("open", True): (COLOURS[6], MARKERS[6], "all heads, trained on"),
    ("l0", True): (COLOURS[1], MARKERS[0], "L0 gates"),
    ("random", True): (COLOURS[8], MARKERS[2], "random, trained on"),
    ("confidence", True): (COLOURS[4], MARKERS[3], "by confidence, trained on"),
    ("scratch", True): (COLOURS[2], MARKERS[1], "from scratch"),
    ("l0", False): (COLOURS[5], MARKERS[0], "L0 mask, unpruned weights"),
    ("random", False): (COLOURS[3], MARKERS[2], "random, unpruned weights"),
}


@either_track
def pruning(tables: Tables) -> Figure:
    """BLEU and cross-entropy against the number of encoder heads that are kept."""
    table = tables["scores"]
    labels = {"bleu": "BLEU", "cross_entropy": "cross-entropy, nats"}
    with panels(3.0, 1, 2) as (drawn, axes):
        for axis, (metric, label) in zip(axes[0], labels.items(), strict=True):
            for (arm, tuned), (colour, marker, name) in SCORES.items():
                kept, found = arrays(where(table, arm=arm, tuned=tuned, metric=metric), "kept", "value")
                if len(found):
                    look = {"linestyle": "", "marker": marker, "markersize": 4, "alpha": 0.8}
                    axis.plot(kept, found, color=colour, label=name, **look)
            axis.set(xlabel="encoder heads kept", ylabel=label)
            axis.locator_params(axis="x", integer=True)
        losses = where(table, metric="cross_entropy")["value"].to_numpy()
        if losses.max() > 3 * losses.min():  # over less than that a log scale has no decade to label
            axes[0, 1].set_yscale("log")
        axes[0, 1].legend(fontsize=6)
    return drawn


def kinds(tables: Tables) -> Figure:
    """What is left when every head has a gate: by kind, and by layer of the decoder."""
    gates = where(tables["gates"], arm="all")
    with panels(2.4, 1, 2) as (drawn, axes):
        left, right = axes[0]
        for place, kind in enumerate(KINDS):
            _bar(left, place, [*statistics.kept("all", kind).values(tables).values()], COLOURS[place], kind, 0.6)
        left.set_xticks(range(3), KINDS)
        left.set(ylabel="share of heads kept", ylim=(0, 1.02))
        for kind, colour, aside in zip(KINDS, COLOURS, SIDE_BY_SIDE, strict=False):
            rows = where(gates, kind=kind)
            for layer in levels(rows, "layer"):
                own = where(rows, layer=layer)
                kept = [float((where(own, seed=s)["gate"].to_numpy() > 0.5).sum()) for s in levels(own)]
                _bar(right, layer + aside, kept, colour, None if layer else kind)
        layers = levels(gates, "layer")
        right.set_xticks(layers, [str(layer + 1) for layer in layers])
        right.set(xlabel="layer", ylabel="heads kept")
        right.legend(fontsize=7)
    return drawn


def gates(tables: Tables) -> Figure:
    """P(g = 0) over training, one line for each encoder head, at the middle lambda."""
    paths = where(tables["gate_paths"], arm="encoder")
    rows = where(paths, seed=levels(paths)[0], penalty=statistics.main_penalty({"gates": paths}))
    with panels(2.2) as (drawn, axes):
        axis: Axes = axes[0, 0]
        for layer in levels(rows, "layer"):
            for head in levels(rows, "head"):
                label = None if head else f"layer {layer + 1}"
                colour = COLOURS[layer % len(COLOURS)]
                shut = ordered(rows, "step", "shut", layer=layer, head=head)
                axis.plot(*shut, color=colour, linewidth=0.9, label=label)
        axis.set(xlabel="step", ylabel="P(g = 0)", ylim=(-0.03, 1.03))
        axis.legend(fontsize=7)
    return drawn


@either_track
def rare(tables: Tables) -> Figure:
    """Looks at the two rarest tokens: every encoder head of one seed, and the most relevant head of layer 1."""
    seeds = levels(tables["rare"])
    with panels(2.3, 1, 3, width_ratios=[1, 1, 2.2]) as (drawn, axes):
        for axis, arm in zip(axes[0, :2], ("relative", "untrained"), strict=True):
            image = _head_map(axis, statistics.rare_rates(tables, arm, "counted", 2, seeds[0])[0])
            head = statistics.relevant_head(tables, arm, seeds[0])
            axis.plot(head, 0, "o", markerfacecolor="none", markeredgecolor="white", markersize=7)
            axis.set_title("trained" if arm == "relative" else arm, fontsize=8)
            axis.set_xlabel("heads")
        axes[0, 0].set_ylabel("layer")
        drawn.colorbar(image, ax=list(axes[0, :2]), shrink=0.9, label="looks at the two rarest")
        _rare_bars(axes[0, 2], tables, seeds)
    return drawn


def _rare_bars(axis: Axes, tables: Tables, seeds: Sequence[int]) -> None:
    """Looks of the most relevant head of layer 1 at the rarest token and at the two rarest, with controls."""
    cases = [("relative", "counted", *CONTROLS[0]), ("untrained", "counted", *CONTROLS[1])]
    cases.append(("relative", "permuted", COLOURS[4], "trained, permuted frequencies"))
    for place, within in enumerate((1, 2)):
        for (arm, frequencies, colour, label), aside in zip(cases, SIDE_BY_SIDE, strict=True):
            found = [statistics.rare_rates(tables, arm, frequencies, within, seed)[0] for seed in seeds]
            heads = [statistics.relevant_head(tables, arm, seed) for seed in seeds]
            values = [float(rates[0, head]) for rates, head in zip(found, heads, strict=True)]
            _bar(axis, place + aside, values, colour, None if place else label)
        chance = np.mean([statistics.rare_rates(tables, "relative", "counted", within, seed)[1] for seed in seeds])
        _reference(axis, place, float(chance), "chance")
    axis.set_xticks([0, 1], ["the rarest token", "one of the two rarest"], fontsize=7)
    axis.set(ylabel="share of the queries", ylim=(0, 1.3), yticks=np.linspace(0, 1, 6))
    axis.legend(fontsize=6, ncols=2, loc="upper center")

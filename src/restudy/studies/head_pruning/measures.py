"""What the statistics are made of: held-out roles of heads, Gini, ranks, areas under curves. numpy and pyarrow only."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from restudy.tables import BySeed, Tables, by_seed, levels, where

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
PAIRS = tuple((r, d) for r in ("nsubj", "dobj", "amod", "advmod") for d in ("to_dependent", "to_head"))
BAR = 0.90
"""A positional head looks at one offset in at least this share of the cases."""
MARGIN = 0.10
"""A syntactic head beats the best constant offset by at least this."""


def grid(table: pa.Table, column: str = "value") -> Array:
    """A column as (layers, heads); rows that name a place twice are added up."""
    layer, head = table["layer"].to_numpy(), table["head"].to_numpy()
    found = np.zeros((layer.max() + 1, head.max() + 1)) if len(layer) else np.zeros((0, 0))
    np.add.at(found, (layer, head), table[column].to_numpy())
    return found


def shares(table: pa.Table) -> Array:
    """hits / count by head, (layers, heads)."""
    count = grid(table, "count")
    return np.divide(grid(table, "hits"), count, out=np.zeros_like(count), where=count > 0)


def held_out(halves: tuple[Array, Array]) -> float:
    """The best head of one half, scored on the other; mean of both ways."""
    found = [halves[1 - half].flat[int(halves[half].argmax())] for half in (0, 1)]
    return float(np.mean(found))


def best_held_out(rows: pa.Table) -> BySeed:
    """By seed: hits / count of the head that is best on one half of the sentences, on the other half."""
    own = {seed: where(rows, seed=seed) for seed in levels(rows)}
    return {seed: held_out((shares(where(r, half=0)), shares(where(r, half=1)))) for seed, r in own.items()}


def position(tables: Tables, arm: str, offset: int, weighting: str = "weight") -> BySeed:
    """By seed: share of queries at which the best head looks at an offset, head chosen on the other half."""
    return best_held_out(where(tables["positions"], arm=arm, offset=offset, weighting=weighting))


def margins(tables: Tables, arm: str, trees: str, seed: int) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Relation and direction -> accuracy of each head minus the best constant offset's, on both halves.

    The offset is the most frequent one of the other half.
    """
    relations = where(tables["relations"], arm=arm, trees=trees, seed=seed)
    baselines = where(tables["baselines"], trees=trees, seed=seed)
    found = {}
    for relation, direction in PAIRS:
        rows = where(relations, relation=relation, direction=direction)
        base = where(baselines, relation=relation, direction=direction)
        one, two = (shares(where(rows, half=half)) - constant_offset(base, half) for half in (0, 1))
        found[relation, direction] = (one, two)
    return found


def constant_offset(base: pa.Table, half: int) -> float:
    """Accuracy on a half of the offset that is most frequent on the other."""
    other, own = where(base, half=1 - half), where(base, half=half)
    best = other["offset"].to_pylist()[int(np.argmax(other["hits"].to_numpy()))]
    hits = where(own, offset=best)["hits"].to_pylist()
    return float(hits[0] / own["count"].to_numpy()[0]) if hits else 0.0


def third_margin(tables: Tables, arm: str, trees: str = "given") -> BySeed:
    """By seed: the third largest of the eight held-out margins; at least .10 means that three pairs reach it."""
    found: BySeed = {}
    for seed in levels(where(tables["relations"], arm=arm)):
        values = sorted(held_out(halves) for halves in margins(tables, arm, trees, seed).values())
        found[seed] = values[-3]
    return found


def functions(tables: Tables, arm: str, seed: int) -> dict[str, Mask]:
    """Function -> bool (layers, heads): `positional`, `syntactic`; on both halves of the sentences."""
    rows = where(tables["positions"], arm=arm, weighting="weight", seed=seed)
    offsets = [o for o in sorted(set(rows["offset"].to_pylist())) if o != 0]
    halves = [[shares(where(rows, offset=o, half=half)) >= BAR for o in offsets] for half in (0, 1)]
    positional = np.any([a & b for a, b in zip(*halves, strict=True)], axis=0)
    pairs = margins(tables, arm, "given", seed).values()
    syntactic = np.any([(one >= MARGIN) & (two >= MARGIN) for one, two in pairs], axis=0)
    return {"positional": positional, "syntactic": syntactic}


def gini(values: Array) -> float:
    """Gini coefficient of non-negative values; 0 when all are equal, NaN when all are 0."""
    ordered = np.sort(np.clip(values, 0, None))
    n, total = len(ordered), ordered.sum()
    if total <= 0:
        return math.nan
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total))


def mean_gini(tables: Tables, arm: str, metric: str) -> BySeed:
    """By seed: Gini of a metric over the heads of a layer, mean over the encoder's layers."""
    rows = where(tables["heads"], arm=arm, kind="encoder", metric=metric)
    return {s: float(np.mean([gini(layer) for layer in grid(where(rows, seed=s))])) for s in levels(rows)}


def ranks(values: Array) -> Array:
    """Ranks from 0, ties share their mean."""
    flat = values.ravel()
    below = (flat[:, None] > flat).sum(1)
    return np.asarray(below + ((flat[:, None] == flat).sum(1) - 1) / 2, dtype=np.float64)


def spearman(tables: Tables, one: str, two: str, first_layer: int) -> BySeed:
    """By seed: rank correlation of two metrics over the encoder's heads from a layer (0 is the lowest) upwards.

    Ranks are taken within a layer, so that differences between layers play no part.
    """
    rows = where(tables["heads"], arm="relative", kind="encoder")
    found: BySeed = {}
    for seed in levels(rows):
        values = [grid(where(rows, seed=seed, metric=metric))[first_layer:] for metric in (one, two)]
        x, y = (np.concatenate([ranks(layer) for layer in value]) for value in values)
        found[seed] = float(np.corrcoef(x, y)[0, 1])
    return found


def area_under_curve(scores: Array, chosen: Mask) -> float:
    """P(score of a chosen one > score of another), ties half; NaN where one side is empty."""
    inside, outside = scores[chosen], scores[~chosen]
    if not len(inside) or not len(outside):
        return math.nan
    above = (inside[:, None] > outside).mean() + 0.5 * (inside[:, None] == outside).mean()
    return float(above)


def penalties(tables: Tables) -> list[float]:
    """The lambdas of encoder pruning, ascending."""
    return sorted(set(where(tables["gates"], arm="encoder")["penalty"].to_pylist()))


def main_penalty(tables: Tables) -> float:
    """The lambda that claims about one lambda speak of: the middle one."""
    found = penalties(tables)
    return found[len(found) // 2]


def gates_of(tables: Tables, seed: int, column: str, penalty: float | None = None) -> Array:
    """A column of the encoder's gates at a lambda, (layers, heads)."""
    chosen = main_penalty(tables) if penalty is None else penalty
    return grid(where(tables["gates"], arm="encoder", seed=seed, penalty=chosen), column)


def surviving_functions(tables: Tables, arm: str) -> BySeed:
    """By seed: area under the curve of log_alpha for heads with a function in a model against the others, minus .5."""
    found: BySeed = {}
    for seed in levels(where(tables["gates"], arm="encoder")):
        own = functions(tables, arm, seed)
        chosen = own["positional"] | own["syntactic"]
        found[seed] = area_under_curve(gates_of(tables, seed, "log_alpha"), chosen) - 0.5
    return found


def score(tables: Tables, arm: str, metric: str, tuned: bool = True, penalty: float | None = None) -> BySeed:
    """By seed: a number of the table `scores` at a lambda, mean over masks."""
    chosen = 0.0 if arm == "open" else main_penalty(tables) if penalty is None else penalty
    table = tables["scores"]
    if arm == "all":
        return by_seed(table, arm=arm, metric=metric)
    return by_seed(table, arm=arm, metric=metric, tuned=tuned, penalty=chosen)


def kept_share(tables: Tables, arm: str, kind: str | None = None) -> BySeed:
    """By seed: mean test-time gate, of the arm `encoder` (main lambda) or `all`: the share of heads that is kept.

    A gate between 0 and 1 counts as what it lets through, so seeds that keep as many heads still differ.
    """
    rows = where(tables["gates"], arm=arm) if kind is None else where(tables["gates"], arm=arm, kind=kind)
    if arm == "encoder":
        rows = where(rows, penalty=main_penalty(tables))
    at, gates = rows["seed"].to_numpy(), rows["gate"].to_numpy()
    return {seed: float(gates[at == seed].mean()) for seed in levels(rows)}


def relevant_head(tables: Tables, arm: str, seed: int) -> int:
    """The head of the first encoder layer with the largest share of relevance."""
    return int(grid(where(tables["heads"], arm=arm, kind="encoder", metric="relevance", seed=seed))[0].argmax())


def rare_rates(tables: Tables, arm: str, frequencies: str, within: int, seed: int) -> tuple[Array, float]:
    """How often each head looks at one of the rarest tokens, (layers, heads), and how often any look would."""
    rows = where(tables["rare"], arm=arm, frequencies=frequencies, within=within, seed=seed)
    return shares(rows), float(rows["expected"].to_numpy()[0] / rows["count"].to_numpy()[0])


def rare_head(tables: Tables, arm: str, frequencies: str = "counted", *, above_chance: bool = False) -> BySeed:
    """By seed: how often the most relevant head of layer 1 looks at one of the two rarest tokens."""
    found: BySeed = {}
    for seed in levels(where(tables["rare"], arm=arm)):
        rates, chance = rare_rates(tables, arm, frequencies, 2, seed)
        found[seed] = float(rates[0, relevant_head(tables, arm, seed)]) - (chance if above_chance else 0.0)
    return found


def third_rare_head(tables: Tables) -> BySeed:
    """By seed: the third largest such rate of all encoder heads."""
    seeds = levels(where(tables["rare"], arm="relative"))
    return {s: float(np.sort(rare_rates(tables, "relative", "counted", 2, s)[0], None)[-3]) for s in seeds}


def lead_of_relevant_head(tables: Tables) -> BySeed:
    """By seed: ablation delta (nats) of the most relevant head of layer 1 minus the largest of that layer's others."""
    rows = where(tables["heads"], arm="relative", kind="encoder", metric="ablation")
    found: BySeed = {}
    for seed in levels(rows):
        deltas, head = grid(where(rows, seed=seed))[0], relevant_head(tables, "relative", seed)
        found[seed] = float(deltas[head] - np.delete(deltas, head).max())
    return found

"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed (the case for exact statements); positive is the paper's direction. Unless a name says
otherwise a number is about the model with relative positions and, where it is pruned, about the middle lambda.
Names that start with `text_` are the same on real text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from restudy.contrasts import Measure, Values, each, mean, measure, per_seed
from restudy.tables import Tables, by_seed, levels, where

Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
PAIRS = tuple((r, d) for r in ("nsubj", "dobj", "amod", "advmod") for d in ("to_dependent", "to_head"))
BAR = 0.90
"""A positional head looks at one offset in at least this share of the cases."""
MARGIN = 0.10
"""A syntactic head beats the best constant offset by at least this."""
TEXT = "text_"
"""What the names of the tables of the track `text` start with."""


def of_text(tables: Tables) -> dict[str, pa.Table]:
    """Return the tables of real text under the names of the synthetic ones."""
    return {name.removeprefix(TEXT): table for name, table in tables.items() if name.startswith(TEXT)}


def on_text(synthetic: Measure) -> Measure:
    """Return a measure of the synthetic track, on real text."""
    leaves = tuple(replace(leaf, table=TEXT + leaf.table) for leaf in synthetic.leaves)
    formula = f"{synthetic}, on real text"
    return replace(synthetic, compute=lambda t: synthetic.compute(of_text(t)), formula=formula, leaves=leaves)


def for_seeds(formula: str, number: Callable[[Tables, int], float], table: str, **columns: object) -> Measure:
    """Apply a function of the tables and a seed to every seed of the chosen rows."""
    return Measure(lambda t: {s: float(number(t, s)) for s in levels(where(t[table], **columns))}, formula)


def grid(table: pa.Table, column: str = "value") -> Array:
    """Arrange a column as (layers, heads); rows that name a place twice are added up."""
    layer, head = table["layer"].to_numpy(), table["head"].to_numpy()
    found = np.zeros((layer.max() + 1, head.max() + 1)) if len(layer) else np.zeros((0, 0))
    np.add.at(found, (layer, head), table[column].to_numpy())
    return found


def shares(table: pa.Table, **columns: object) -> Array:
    """Return hits / count by head, (layers, heads)."""
    rows = where(table, **columns)
    count = grid(rows, "count")
    return np.divide(grid(rows, "hits"), count, out=np.zeros_like(count), where=count > 0)


def held_out(halves: tuple[Array, Array]) -> float:
    """Take the best head of one half of the sentences, scored on the other; mean of both ways."""
    return float(np.mean([halves[1 - half].flat[int(halves[half].argmax())] for half in (0, 1)]))


def best_head(rows: pa.Table) -> float:
    """Return the share of hits of the best head of one half of the sentences, on the other half."""
    return held_out((shares(rows, half=0), shares(rows, half=1)))


def main_penalty(tables: Tables) -> float:
    """Return the lambda that claims about one lambda speak of: the middle one of encoder pruning."""
    found = penalties(tables)
    return found[len(found) // 2]


def penalties(tables: Tables) -> list[float]:
    """List the lambdas of encoder pruning, ascending."""
    return levels(where(tables["gates"], arm="encoder"), "penalty")


def gates_of(tables: Tables, seed: int, column: str, penalty: float | None = None) -> Array:
    """Arrange a column of the encoder's gates at a lambda, (layers, heads)."""
    chosen = main_penalty(tables) if penalty is None else penalty
    return grid(where(tables["gates"], arm="encoder", seed=seed, penalty=chosen), column)


# H1, E1: positions
def position(arm: str, offset: int, weighting: str = "weight") -> Measure:
    """Return the share of queries at which the best head, chosen on the other half, looks at an offset."""
    formula = f"share at {offset:+d} of the best head ({arm}), chosen on the other half; {weighting}"
    chosen = {"arm": arm, "offset": offset, "weighting": weighting}
    return for_seeds(formula, lambda t, s: best_head(where(t["positions"], seed=s, **chosen)), "positions", **chosen)


previous_token, next_token = position("relative", -1), position("relative", 1)
untrained_previous_token, untrained_next_token = position("untrained", -1), position("untrained", 1)
previous_token_by_norm, next_token_by_norm = position("relative", -1, "norm"), position("relative", 1, "norm")
previous_over_sinusoid = previous_token - position("sinusoid", -1)
next_over_sinusoid = next_token - position("sinusoid", 1)


# H2: syntax
def margins(tables: Tables, arm: str, trees: str, seed: int) -> dict[tuple[str, str], tuple[Array, Array]]:
    """Return, by relation and direction, each head's accuracy minus the best constant offset's, on both halves."""
    relations = where(tables["relations"], arm=arm, trees=trees, seed=seed)
    baselines = where(tables["baselines"], trees=trees, seed=seed)
    found = {}
    for relation, direction in PAIRS:
        rows = where(relations, relation=relation, direction=direction)
        base = where(baselines, relation=relation, direction=direction)
        one, two = (shares(rows, half=half) - constant_offset(base, half) for half in (0, 1))
        found[relation, direction] = (one, two)
    return found


def constant_offset(base: pa.Table, half: int) -> float:
    """Return the accuracy on a half of the offset that is most frequent on the other."""
    other, own = where(base, half=1 - half), where(base, half=half)
    best = other["offset"].to_pylist()[int(np.argmax(other["hits"].to_numpy()))]
    hits = where(own, offset=best)["hits"].to_pylist()
    return float(hits[0] / own["count"].to_numpy()[0]) if hits else 0.0


def third_margin(arm: str, trees: str = "given") -> Measure:
    """Return the third largest of eight held-out margins over the best constant offset."""

    def third(tables: Tables, seed: int) -> float:
        return sorted(held_out(halves) for halves in margins(tables, arm, trees, seed).values())[-3]

    formula = f"third largest of eight margins over the best offset ({arm}, {trees} trees)"
    return for_seeds(formula, third, "relations", arm=arm)


third_syntactic, untrained_third = third_margin("relative"), third_margin("untrained")
permuted_third = third_margin("relative", "permuted")


# H5, E2: which heads survive
def functions(tables: Tables, arm: str, seed: int) -> dict[str, Mask]:
    """Mark `positional` and `syntactic` heads, (layers, heads); they are that on both halves of the sentences."""
    rows = where(tables["positions"], arm=arm, weighting="weight", seed=seed)
    halves = [
        [shares(rows, offset=offset, half=half) >= BAR for offset in levels(rows, "offset") if offset != 0]
        for half in (0, 1)
    ]
    positional = np.any([a & b for a, b in zip(*halves, strict=True)], axis=0)
    pairs = margins(tables, arm, "given", seed).values()
    syntactic = np.any([(one >= MARGIN) & (two >= MARGIN) for one, two in pairs], axis=0)
    return {"positional": positional, "syntactic": syntactic}


def with_function(tables: Tables, arm: str, seed: int) -> Mask:
    """Mark the heads that have a function, (layers, heads)."""
    found = functions(tables, arm, seed)
    return found["positional"] | found["syntactic"]


def area_under_curve(scores: Array, chosen: Mask) -> float:
    """P(score of a chosen one > score of another), ties half; NaN where one side is empty."""
    inside, outside = scores[chosen], scores[~chosen]
    if not len(inside) or not len(outside):
        return math.nan
    return float((inside[:, None] > outside).mean() + 0.5 * (inside[:, None] == outside).mean())


def surviving(arm: str) -> Measure:
    """Return the AUC of log_alpha, heads with a function in a model against others, minus .5."""

    def area(tables: Tables, seed: int) -> float:
        return area_under_curve(gates_of(tables, seed, "log_alpha"), with_function(tables, arm, seed)) - 0.5

    return for_seeds(f"AUC of log_alpha, functions in {arm}, - .5", area, "gates", arm="encoder")


survival, survival_after = surviving("relative"), surviving("pruned")


# H3, E5: importance
def gini(values: Array) -> float:
    """Gini coefficient of non-negative values; 0 when all are equal, NaN when all are 0."""
    ordered = np.sort(np.clip(values, 0, None))
    n, total = len(ordered), ordered.sum()
    return float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total)) if total > 0 else math.nan


def gini_gain(metric: str) -> Measure:
    """Return the mean Gini coefficient of a metric over the heads of a layer: trained minus untrained."""

    def mean_gini(arm: str) -> Measure:
        chosen = {"arm": arm, "kind": "encoder", "metric": metric}
        return for_seeds(
            f"Gini of {metric} ({arm})",
            lambda t, s: float(np.mean([gini(layer) for layer in grid(where(t["heads"], seed=s, **chosen))])),
            "heads",
            **chosen,
        )

    return mean_gini("relative") - mean_gini("untrained")


def ranks(values: Array) -> Array:
    """Ranks (n,) from 0, ties share their mean."""
    below, equal = (values[:, None] > values).sum(1), (values[:, None] == values).sum(1)
    return np.asarray(below + (equal - 1) / 2, dtype=np.float64)


def correlation(one: str, two: str, first_layer: int = 0) -> Measure:
    """Return the rank correlation within layers of two metrics of the encoder's heads.

    Ranks are taken within a layer, so that differences between layers play no part.
    """

    def coefficient(rows: pa.Table) -> float:
        values = (grid(where(rows, metric=metric))[first_layer:] for metric in (one, two))
        x, y = (np.concatenate([ranks(layer) for layer in value]) for value in values)
        return float(np.corrcoef(x, y)[0, 1])

    formula = f"rank correlation of {one} and {two}, layers {first_layer + 1} up"
    chosen = {"arm": "relative", "kind": "encoder"}
    return for_seeds(formula, lambda t, s: coefficient(where(t["heads"], seed=s, **chosen)), "heads", **chosen)


gini_relevance, gini_ablation = gini_gain("relevance"), gini_gain("ablation")
confidence_relevance = correlation("confidence", "relevance", 1)
relevance_ablation, gradient_ablation = correlation("relevance", "ablation"), correlation("gradient", "ablation")


# H4, H6, H7, H11: what is pruned, and what it costs
def kept(arm: str, kind: str | None = None) -> Measure:
    """Return the share of heads that is kept when the encoder (at the main lambda), or `all`, can be pruned.

    A gate between 0 and 1 counts as what it lets through, so seeds that keep as many heads still differ.
    """

    def compute(tables: Tables) -> Values:
        chosen = {"arm": arm} | ({} if kind is None else {"kind": kind})
        only = {"penalty": main_penalty(tables)} if arm == "encoder" else {}
        return dict(by_seed(where(tables["gates"], **chosen, **only), "gate"))

    return Measure(compute, f"share of {kind or 'all'} heads kept, {arm} pruned")


def score(arm: str, metric: str, tuned: bool = True, place: int | None = None) -> Measure:
    """Return a number of the table `scores` at the middle lambda, or at the `place`-th; mean over masks."""

    def compute(tables: Tables) -> Values:
        penalty = main_penalty(tables) if place is None else penalties(tables)[place]
        return scores_at(tables, arm, metric, penalty, tuned)

    at = "" if place is None else f", lambda {place + 1}"
    return Measure(compute, f"{metric} of {arm}{'' if tuned else ', not trained on'}{at}")


def scores_at(tables: Tables, arm: str, metric: str, penalty: float, tuned: bool = True) -> Values:
    """Return a number of the table `scores` at a lambda by seed, mean over masks; `open` has none."""
    at = 0.0 if arm == "open" else penalty
    return dict(by_seed(tables["scores"], arm=arm, metric=metric, tuned=tuned, penalty=at))


kept_encoder, kept_all = kept("encoder", "encoder"), kept("all")
bleu, cross_entropy = partial(score, metric="bleu"), partial(score, metric="cross_entropy")
pruned_share = 1 - kept_encoder
bleu_change = bleu("l0") / bleu("open") - 1
bleu_points = bleu("l0") - bleu("open")
random_untuned_minus_l0_mask = cross_entropy("random", tuned=False) - cross_entropy("l0", tuned=False)
random_minus_l0 = cross_entropy("random") - cross_entropy("l0")
confidence_minus_l0 = cross_entropy("confidence") - cross_entropy("l0")
bleu_over_scratch = bleu("l0") - bleu("scratch")
scratch_minus_l0 = cross_entropy("scratch") - cross_entropy("l0")
scratch_at_low = bleu("l0", place=0) - bleu("scratch", place=0)
scratch_at_middle = bleu("l0", place=1) - bleu("scratch", place=1)
scratch_at_high = bleu("l0", place=2) - bleu("scratch", place=2)
decoder_over_encoder = kept("all", "decoder") - kept("all", "encoder")
cross_over_encoder = kept("all", "cross") - kept("all", "encoder")


# H9: gates near 0 or 1
@measure
def polarised(tables: Tables) -> Values:
    """Tenth percentile of |log_alpha| over the gates, least over the lambdas; ln 7 is a gate of .05 or .95."""

    def tenth(seed: int, penalty: float) -> float:
        return float(np.quantile(np.abs(gates_of(tables, seed, "log_alpha", penalty)), 0.1))

    seeds = levels(where(tables["gates"], arm="encoder"))
    return {seed: min(tenth(seed, penalty) for penalty in penalties(tables)) for seed in seeds}


@measure
def binarising(tables: Tables) -> Values:
    """Change of cross-entropy when gates are set to 0 or 1, relative, absolute value; largest over the lambdas."""
    found: Values = {}
    for penalty in penalties(tables):
        soft, hard = (scores_at(tables, arm, "cross_entropy", penalty) for arm in ("l0_soft", "l0"))
        for seed in soft:
            found[seed] = max(found.get(seed, 0.0), abs(hard[seed] / soft[seed] - 1))
    return found


# The gates of claims
quality = partial(mean, "quality", arm="relative")
encoder_heads = partial(per_seed, "heads", arm="relative", kind="encoder")


def share_inside(low: float, high: float, rows: pa.Table) -> float:
    """Return the share of values from `low` to `high`."""
    values = rows["value"].to_numpy()
    return float(((values >= low) & (values <= high)).mean())


bleu_margin = quality(metric="bleu") - quality(metric="shuffled_bleu")
regular_heads = encoder_heads(
    partial(share_inside, 0.1, 0.9), "share of heads within .1 and .9 of log n", metric="entropy"
)
encoder_needed = quality(metric="without_encoder_heads") / quality(metric="cross_entropy") - 1
ablation_signal = encoder_heads(lambda rows: max(rows["value"].to_pylist()), "largest", metric="ablation") / quality(
    metric="standard_error"
)
function_count = for_seeds(
    "Encoder heads of the unpruned model that have a function",
    lambda t, s: with_function(t, "relative", s).sum(),
    "positions",
    arm="relative",
)

# H8, X1, X2: exact statements
identity = partial(each, "identities", ("check", "case"))
torch_attention = identity(check="torch attention")
separable = identity(check="sum over heads")
removable = identity(check=("gate 0 and deletion", "removal"))
gate_law = identity(check=("gate mean", "gate variance", "P(open)", "P(one)", "P(below .3)", "test-time gate"))
relevance_conserved = identity(check=("relevance conserved", "relevance shares"))

# T1 to T9: the same on real text
text_bleu_margin, text_regular_heads = on_text(bleu_margin), on_text(regular_heads)
text_encoder_needed, text_ablation_signal = on_text(encoder_needed), on_text(ablation_signal)
text_function_count, text_kept_encoder = on_text(function_count), on_text(kept_encoder)
text_previous_token, text_next_token = on_text(previous_token), on_text(next_token)
text_untrained_previous_token = on_text(untrained_previous_token)
text_untrained_next_token = on_text(untrained_next_token)
text_third_syntactic, text_untrained_third = on_text(third_syntactic), on_text(untrained_third)
text_permuted_third = on_text(permuted_third)
text_gini_relevance, text_gini_ablation = on_text(gini_relevance), on_text(gini_ablation)
text_confidence_relevance = on_text(confidence_relevance)
text_pruned_share, text_bleu_change = on_text(pruned_share), on_text(bleu_change)
text_random_untuned_minus_l0_mask = on_text(random_untuned_minus_l0_mask)
text_random_minus_l0, text_confidence_minus_l0 = on_text(random_minus_l0), on_text(confidence_minus_l0)
text_survival, text_bleu_over_scratch = on_text(survival), on_text(bleu_over_scratch)
text_polarised, text_binarising = on_text(polarised), on_text(binarising)


# H10: rare tokens, real text only
def relevant_head(tables: Tables, arm: str, seed: int) -> int:
    """Return the head of the first encoder layer with the largest share of relevance."""
    return int(grid(where(tables["heads"], arm=arm, kind="encoder", metric="relevance", seed=seed))[0].argmax())


def rare_rates(tables: Tables, arm: str, frequencies: str, within: int, seed: int) -> tuple[Array, float]:
    """Return how often each head looks at one of the rarest tokens, (layers, heads), and how often any look would."""
    rows = where(tables["rare"], arm=arm, frequencies=frequencies, within=within, seed=seed)
    return shares(rows), float(rows["expected"].to_numpy()[0] / rows["count"].to_numpy()[0])


def rare(arm: str, frequencies: str = "counted", above_chance: bool = False) -> Measure:
    """Return how often the most relevant head of layer 1 looks at one of the two rarest tokens."""

    def rate(tables: Tables, seed: int) -> float:
        rates, chance = rare_rates(tables, arm, frequencies, 2, seed)
        return float(rates[0, relevant_head(tables, arm, seed)]) - (chance if above_chance else 0.0)

    formula = f"looks of the most relevant head at the two rarest tokens ({arm}, frequencies {frequencies})"
    return on_text(for_seeds(formula + (" - chance" if above_chance else ""), rate, "rare", arm=arm))


def _third_rate(tables: Tables, seed: int) -> float:
    return float(np.sort(rare_rates(tables, "relative", "counted", 2, seed)[0], None)[-3])


def _lead(tables: Tables, seed: int) -> float:
    deltas = grid(where(tables["heads"], arm="relative", kind="encoder", metric="ablation", seed=seed))[0]
    head = relevant_head(tables, "relative", seed)
    return float(deltas[head] - np.delete(deltas, head).max())


rare_looks, untrained_rare_looks = rare("relative"), rare("untrained")
rare_looks_above_chance = rare("relative", above_chance=True)
permuted_rare_looks = rare("relative", "permuted", above_chance=True)
third_rare_looks = on_text(
    for_seeds("third largest rate of such looks of an encoder head", _third_rate, "rare", arm="relative")
)
rare_head_lead = on_text(
    for_seeds("ablation delta of the most relevant head of layer 1 - the largest other", _lead, "heads", arm="relative")
)

"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed (the case for exact statements); positive is the paper's direction. Unless a name says
otherwise a number is about the model with relative positions and, where it is pruned, about the middle lambda.
Names that start with `text_` are the same on real text.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, each, mean, measure, per_seed
from restudy.studies.head_pruning import measures
from restudy.tables import Tables, levels, where

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


# Gates
quality = partial(mean, "quality", arm="relative")
encoder_heads = partial(per_seed, "heads", arm="relative", kind="encoder")


def share_inside(low: float, high: float, rows: pa.Table) -> float:
    """Return the share of values from `low` to `high`."""
    values = rows["value"].to_numpy()
    return float(((values >= low) & (values <= high)).mean())


@measure
def function_count(tables: Tables) -> Values:
    """Encoder heads of the unpruned model that have a function."""
    found = {}
    for seed in levels(where(tables["positions"], arm="relative")):
        own = measures.functions(tables, "relative", seed)
        found[seed] = float((own["positional"] | own["syntactic"]).sum())
    return found


def kept(arm: str, kind: str | None = None) -> Measure:
    """Return the share of heads that is kept when the encoder, or `all`, can be pruned."""
    formula = f"share of {kind or 'all'} heads kept, {arm} pruned"
    return Measure(partial(measures.kept_share, arm=arm, kind=kind), formula)


bleu_margin = quality(metric="bleu") - quality(metric="shuffled_bleu")
regular_heads = encoder_heads(
    partial(share_inside, 0.1, 0.9), "share of heads within .1 and .9 of log n", metric="entropy"
)
encoder_needed = quality(metric="without_encoder_heads") / quality(metric="cross_entropy") - 1
ablation_signal = encoder_heads(lambda rows: max(rows["value"].to_pylist()), "largest", metric="ablation") / quality(
    metric="standard_error"
)
kept_encoder, kept_all = kept("encoder", "encoder"), kept("all")


# H1, E1: positions
def position(arm: str, offset: int, weighting: str = "weight") -> Measure:
    """Return the share of queries at which the best head, chosen on the other half, looks at an offset."""
    formula = f"share at {offset:+d} of the best head ({arm}), chosen on the other half; {weighting}"
    return Measure(partial(measures.position, arm=arm, offset=offset, weighting=weighting), formula)


previous_token, next_token = position("relative", -1), position("relative", 1)
untrained_previous_token, untrained_next_token = position("untrained", -1), position("untrained", 1)
previous_token_by_norm, next_token_by_norm = position("relative", -1, "norm"), position("relative", 1, "norm")
previous_over_sinusoid = previous_token - position("sinusoid", -1)
next_over_sinusoid = next_token - position("sinusoid", 1)


# H2: syntax
def third_margin(arm: str, trees: str = "given") -> Measure:
    """Return the third largest of eight held-out margins over the best constant offset."""
    formula = f"third largest of eight margins over the best offset ({arm}, {trees} trees)"
    return Measure(partial(measures.third_margin, arm=arm, trees=trees), formula)


third_syntactic, untrained_third = third_margin("relative"), third_margin("untrained")
permuted_third = third_margin("relative", "permuted")


# H3, E5: importance
def gini_gain(metric: str) -> Measure:
    """Return the mean Gini coefficient of a metric over the heads of a layer: trained minus untrained."""
    gini = [Measure(partial(measures.mean_gini, arm=a, metric=metric), f"Gini of {metric} ({a})") for a in
            ("relative", "untrained")]  # fmt: skip
    return gini[0] - gini[1]


def correlation(one: str, two: str, first_layer: int = 0) -> Measure:
    """Return the rank correlation within layers of two metrics of the encoder's heads."""
    formula = f"rank correlation of {one} and {two}, layers {first_layer + 1} up"
    return Measure(partial(measures.spearman, one=one, two=two, first_layer=first_layer), formula)


gini_relevance, gini_ablation = gini_gain("relevance"), gini_gain("ablation")
confidence_relevance = correlation("confidence", "relevance", 1)
relevance_ablation, gradient_ablation = correlation("relevance", "ablation"), correlation("gradient", "ablation")


# H4, H6, H11: what pruning costs
def score(arm: str, metric: str, tuned: bool = True, place: int | None = None) -> Measure:
    """Return a number of the table `scores` at the middle lambda, or at the `place`-th; mean over masks."""

    def compute(tables: Tables) -> Values:
        penalty = None if place is None else measures.penalties(tables)[place]
        return dict(measures.score(tables, arm, metric, tuned, penalty))

    at = "" if place is None else f", lambda {place + 1}"
    return Measure(compute, f"{metric} of {arm}{'' if tuned else ', not trained on'}{at}")


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


# H5, E2: which heads survive
def surviving(arm: str) -> Measure:
    """Return the AUC of log_alpha, heads with a function in a model against others, minus .5."""
    return Measure(partial(measures.surviving_functions, arm=arm), f"AUC of log_alpha, functions in {arm}, - .5")


survival, survival_after = surviving("relative"), surviving("pruned")
# H7: kinds of heads
decoder_over_encoder = kept("all", "decoder") - kept("all", "encoder")
cross_over_encoder = kept("all", "cross") - kept("all", "encoder")


# H9: gates near 0 or 1
@measure
def polarised(tables: Tables) -> Values:
    """Tenth percentile of |log_alpha| over the gates, least over the lambdas; ln 7 is a gate of .05 or .95."""

    def tenth(seed: int, penalty: float) -> float:
        return float(np.quantile(np.abs(measures.gates_of(tables, seed, "log_alpha", penalty)), 0.1))

    seeds, penalties = levels(where(tables["gates"], arm="encoder")), measures.penalties(tables)
    return {seed: min(tenth(seed, penalty) for penalty in penalties) for seed in seeds}


@measure
def binarising(tables: Tables) -> Values:
    """Change of cross-entropy when gates are set to 0 or 1, relative, absolute value; largest over the lambdas."""
    found: Values = {}
    for penalty in measures.penalties(tables):
        soft, hard = (measures.score(tables, a, "cross_entropy", penalty=penalty) for a in ("l0_soft", "l0"))
        for seed in soft:
            found[seed] = max(found.get(seed, 0.0), abs(hard[seed] / soft[seed] - 1))
    return found


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
def rare(arm: str, frequencies: str = "counted", above_chance: bool = False) -> Measure:
    """Return how often the most relevant head of layer 1 looks at one of the two rarest tokens."""
    compute = partial(measures.rare_head, arm=arm, frequencies=frequencies, above_chance=above_chance)
    formula = f"looks of the most relevant head at the two rarest tokens ({arm}, frequencies {frequencies})"
    return on_text(Measure(compute, formula + (" - chance" if above_chance else "")))


rare_looks, untrained_rare_looks = rare("relative"), rare("untrained")
rare_looks_above_chance = rare("relative", above_chance=True)
permuted_rare_looks = rare("relative", "permuted", above_chance=True)
third_rare_looks = on_text(Measure(measures.third_rare_head, "third largest rate of such looks of an encoder head"))
rare_head_lead = on_text(
    Measure(measures.lead_of_relevant_head, "ablation delta of the most relevant head of layer 1 - the largest other")
)

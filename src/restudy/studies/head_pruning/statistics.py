"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

The replicate is the seed (the case for exact statements); positive is the paper's direction. Unless a name says
otherwise a number is about the model with relative positions and, where it is pruned, about the middle lambda.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from restudy.studies.head_pruning.measures import (
    functions,
    gates_of,
    kept_share,
    lead_of_relevant_head,
    mean_gini,
    penalties,
    position,
    rare_head,
    score,
    spearman,
    surviving_functions,
    third_margin,
    third_rare_head,
)
from restudy.studies.head_pruning.tidy import (
    BySeed,
    Statistic,
    Tables,
    by_seed,
    minus,
    on_text,
    seeds_of,
    statistic,
    where,
)


def _exact(says: str, *checks: str) -> Statistic:
    def found(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], check=tuple(checks))
        names = [
            f"{check}, {case}" for check, case in zip(*(rows[n].to_pylist() for n in ("check", "case")), strict=True)
        ]
        return pa.table({"replicate": pa.array(names, pa.string()), "value": rows["value"]})

    found.__doc__ = says
    return found


def _bleu_margin(tables: Tables) -> BySeed:
    bleu, shuffled = (by_seed(tables["quality"], arm="relative", metric=m) for m in ("bleu", "shuffled_bleu"))
    return minus(bleu, shuffled)


def _regular_heads(tables: Tables) -> BySeed:
    rows = where(tables["heads"], arm="relative", kind="encoder", metric="entropy")
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    return {s: float(((values[at == s] >= 0.1) & (values[at == s] <= 0.9)).mean()) for s in seeds_of(rows)}


def _encoder_needed(arm: str) -> Statistic:
    def measure(tables: Tables) -> BySeed:
        table = tables["quality"]
        whole, without = (by_seed(table, arm=arm, metric=m) for m in ("cross_entropy", "without_encoder_heads"))
        return {seed: without[seed] / whole[seed] - 1 for seed in whole}

    return statistic(measure, f"Rise of the cross-entropy without the encoder's heads, relative, arm {arm}.")


def _ablation_signal(tables: Tables) -> BySeed:
    rows = where(tables["heads"], arm="relative", kind="encoder", metric="ablation")
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    error = by_seed(tables["quality"], arm="relative", metric="standard_error")
    return {seed: float(values[at == seed].max()) / error[seed] for seed in seeds_of(rows)}


def _function_count(tables: Tables) -> BySeed:
    found = {}
    for seed in seeds_of(where(tables["positions"], arm="relative")):
        own = functions(tables, "relative", seed)
        found[seed] = float((own["positional"] | own["syntactic"]).sum())
    return found


bleu_margin = statistic(_bleu_margin, "Gate: BLEU above that of references shuffled among the sentences.")
regular_heads = statistic(_regular_heads, "Gate: share of encoder heads with an entropy of 10 to 90% of log n.")
encoder_needed = _encoder_needed("relative")
ablation_signal = statistic(_ablation_signal, "Gate: largest ablation delta over the standard error of cross-entropy.")
function_count = statistic(_function_count, "Gate: encoder heads of the unpruned model that have a function.")
kept_encoder = statistic(lambda t: kept_share(t, "encoder"), "Gate: share of the encoder's heads that is kept.")
kept_all = statistic(lambda t: kept_share(t, "all"), "Gate: share of all heads that is kept when all can be pruned.")


# H1
def _position(arm: str, offset: int, weighting: str = "weight") -> Statistic:
    says = (
        f"Share of queries at which the best head ({arm}) looks at {offset:+d}, chosen on the other half; {weighting}."
    )
    return statistic(lambda tables: position(tables, arm, offset, weighting), says)


previous_token = _position("relative", -1)
next_token = _position("relative", 1)
untrained_previous_token = _position("untrained", -1)
untrained_next_token = _position("untrained", 1)
previous_token_by_norm = _position("relative", -1, "norm")
next_token_by_norm = _position("relative", 1, "norm")


def _over_sinusoid(offset: int) -> Statistic:
    says = f"Share at {offset:+d} of the best head: relative positions minus sinusoids alone."
    return statistic(lambda t: minus(position(t, "relative", offset), position(t, "sinusoid", offset)), says)


previous_over_sinusoid = _over_sinusoid(-1)
next_over_sinusoid = _over_sinusoid(1)

# H2
third_syntactic = statistic(
    lambda t: third_margin(t, "relative"), "Third largest of eight held-out margins over the best constant offset."
)
untrained_third = statistic(lambda t: third_margin(t, "untrained"), "Control: the same of the untrained model.")
permuted_third = statistic(
    lambda t: third_margin(t, "relative", "permuted"), "Control: the same on trees over permuted words."
)


# H3
def _gini_gain(metric: str) -> Statistic:
    says = f"Gini of {metric} over the heads of a layer, mean over layers: trained minus untrained."
    return statistic(lambda t: minus(mean_gini(t, "relative", metric), mean_gini(t, "untrained", metric)), says)


gini_relevance = _gini_gain("relevance")
gini_ablation = _gini_gain("ablation")
confidence_relevance = statistic(
    lambda t: spearman(t, "confidence", "relevance", 1), "Rank correlation of confidence and relevance, layers 2 up."
)
relevance_ablation = statistic(
    lambda t: spearman(t, "relevance", "ablation", 0), "Rank correlation within layers of relevance and ablation."
)
gradient_ablation = statistic(
    lambda t: spearman(t, "gradient", "ablation", 0), "Rank correlation within layers of gradient and ablation."
)

# H4
pruned_share = statistic(
    lambda t: {s: 1 - v for s, v in kept_share(t, "encoder").items()}, "Share of the encoder's heads that is pruned."
)


def _relative_bleu(tables: Tables) -> BySeed:
    pruned, whole = score(tables, "l0", "bleu"), score(tables, "open", "bleu")
    return {seed: pruned[seed] / whole[seed] - 1 if whole[seed] else math.nan for seed in pruned}


bleu_change = statistic(_relative_bleu, "BLEU after pruning over that of a model trained on with all heads, minus 1.")
bleu_points = statistic(
    lambda t: minus(score(t, "l0", "bleu"), score(t, "open", "bleu")), "The same in points of BLEU."
)


def _worse_than_l0(arm: str, tuned: bool) -> Statistic:
    def measure(tables: Tables) -> BySeed:
        return minus(score(tables, arm, "cross_entropy", tuned), score(tables, "l0", "cross_entropy", tuned))

    how = "trained on" if tuned else "on the unpruned model"
    return statistic(measure, f"Cross-entropy, nats: {arm} mask minus L0 mask of as many heads, {how}.")


random_untuned_minus_l0_mask = _worse_than_l0("random", False)
random_minus_l0 = _worse_than_l0("random", True)
confidence_minus_l0 = _worse_than_l0("confidence", True)

# H5
survival = statistic(
    lambda t: surviving_functions(t, "relative"), "AUC of log_alpha, heads with a function against others, minus .5."
)
survival_after = statistic(
    lambda t: surviving_functions(t, "pruned"), "The same with functions assigned in the pruned model."
)


# H6, H11
def _pruned_minus_scratch(tables: Tables, metric: str, penalty: float | None = None) -> BySeed:
    return minus(score(tables, "l0", metric, penalty=penalty), score(tables, "scratch", metric, penalty=penalty))


bleu_over_scratch = statistic(
    lambda t: _pruned_minus_scratch(t, "bleu"), "BLEU: pruned minus from scratch, same heads."
)
scratch_minus_l0 = statistic(
    lambda t: {s: -v for s, v in _pruned_minus_scratch(t, "cross_entropy").items()},
    "Cross-entropy, nats: from scratch minus pruned, same heads and as many steps.",
)


def _scratch_at(place: int, name: str) -> Statistic:
    says = f"BLEU: pruned minus from scratch at the {name} lambda."
    return statistic(lambda t: _pruned_minus_scratch(t, "bleu", penalties(t)[place]), says)


scratch_at_low = _scratch_at(0, "lowest")
scratch_at_middle = _scratch_at(1, "middle")
scratch_at_high = _scratch_at(2, "highest")


# H7
def _kept_over_encoder(kind: str) -> Statistic:
    says = f"Share of heads kept when all can be pruned: {kind} minus encoder."
    return statistic(lambda t: minus(kept_share(t, "all", kind), kept_share(t, "all", "encoder")), says)


decoder_over_encoder = _kept_over_encoder("decoder")
cross_over_encoder = _kept_over_encoder("cross")


# H9
def _polarised(tables: Tables) -> BySeed:
    """The tenth percentile of |log_alpha|, least over the lambdas."""
    seeds = seeds_of(where(tables["gates"], arm="encoder"))
    return {
        s: min(float(np.quantile(np.abs(gates_of(tables, s, "log_alpha", p)), 0.1)) for p in penalties(tables))
        for s in seeds
    }


def _binarising(tables: Tables) -> BySeed:
    """Relative change of the cross-entropy, largest over the lambdas."""
    found: BySeed = {}
    for penalty in penalties(tables):
        soft = score(tables, "l0_soft", "cross_entropy", penalty=penalty)
        hard = score(tables, "l0", "cross_entropy", penalty=penalty)
        for seed in soft:
            found[seed] = max(found.get(seed, 0.0), abs(hard[seed] / soft[seed] - 1))
    return found


polarised = statistic(_polarised, "Tenth percentile of |log_alpha| over the gates; ln 7 is a gate of .05 or .95.")
binarising = statistic(_binarising, "Change of cross-entropy when gates are set to 0 or 1, relative, absolute value.")

# H8, X1, X2
torch_attention = _exact("Largest difference from torch's attention, float32.", "torch attention")
separable = _exact("Largest difference from the sum over heads, float64.", "sum over heads")
removable = _exact(
    "Largest difference between a gate of 0 and a head that is gone, float64.", "gate 0 and deletion", "removal"
)
gate_law = _exact(
    "Sampled gates against their closed forms, in units of 5 standard errors.",
    "gate mean", "gate variance", "P(open)", "P(one)", "P(below .3)", "test-time gate",
)  # fmt: skip
relevance_conserved = _exact(
    "Relative change of the total relevance at any cut.", "relevance conserved", "relevance shares"
)

# T1 to T9: the same on real text
text_bleu_margin = on_text(bleu_margin)
text_regular_heads = on_text(regular_heads)
text_encoder_needed = on_text(encoder_needed)
text_ablation_signal = on_text(ablation_signal)
text_function_count = on_text(function_count)
text_kept_encoder = on_text(kept_encoder)
text_previous_token = on_text(previous_token)
text_next_token = on_text(next_token)
text_untrained_previous_token = on_text(untrained_previous_token)
text_untrained_next_token = on_text(untrained_next_token)
text_third_syntactic = on_text(third_syntactic)
text_untrained_third = on_text(untrained_third)
text_permuted_third = on_text(permuted_third)
text_gini_relevance = on_text(gini_relevance)
text_gini_ablation = on_text(gini_ablation)
text_confidence_relevance = on_text(confidence_relevance)
text_pruned_share = on_text(pruned_share)
text_bleu_change = on_text(bleu_change)
text_random_untuned_minus_l0_mask = on_text(random_untuned_minus_l0_mask)
text_random_minus_l0 = on_text(random_minus_l0)
text_confidence_minus_l0 = on_text(confidence_minus_l0)
text_survival = on_text(survival)
text_bleu_over_scratch = on_text(bleu_over_scratch)
text_polarised = on_text(polarised)
text_binarising = on_text(binarising)


# H10: real text only
def _rare(arm: str, says: str, frequencies: str = "counted", *, above_chance: bool = False) -> Statistic:
    how = "minus chance" if above_chance else "share of the queries"
    says = f"{says}How often the most relevant head of layer 1 looks at one of the two rarest tokens, {how}."
    return on_text(statistic(lambda t: rare_head(t, arm, frequencies, above_chance=above_chance), says))


rare_looks = _rare("relative", "")
untrained_rare_looks = _rare("untrained", "Control, the untrained model: ")
rare_looks_above_chance = _rare("relative", "", above_chance=True)
permuted_rare_looks = _rare("relative", "Control, frequencies permuted: ", "permuted", above_chance=True)
third_rare_looks = on_text(statistic(third_rare_head, "Third largest rate of such looks among all encoder heads."))
rare_head_lead = on_text(
    statistic(lead_of_relevant_head, "Ablation delta, nats: most relevant head of layer 1 minus the largest other.")
)

"""One number per seed from the results tables, for every claim, control and gate. numpy and pyarrow only.

Positive is the paper's direction. AOPC and ABPC are areas of the logit over the first 16% of the regions of 4 pixels,
divided by the seed's mean logit of the unperturbed images: a share of the score, so that networks compare. What is
said of EfficientNet-Lite0 stands in `photo_statistics`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.relevance_evaluation.areas import (
    DECONVOLUTION,
    DIGITS,
    EDGES,
    FASHION,
    GARMENTS,
    LRP,
    PAIRS,
    REGION,
    SENSITIVITY,
    SHARE,
    area,
    between_curves,
    ranking_alpha,
    ranking_alpha_of_means,
    settings,
)
from restudy.studies.relevance_evaluation.photo_statistics import (
    lite0_bytes,
    lite0_crops_lrp_minus_sensitivity,
    lite0_deconvolution,
    lite0_edges_minus_sensitivity,
    lite0_lrp_minus_random,
    lite0_mean_fill,
    lite0_noise_bytes,
    lite0_noise_minus_random,
    lite0_outside,
    lite0_outside_noise,
    lite0_sensitivity,
)
from restudy.studies.relevance_evaluation.tidy import (
    BySeed,
    Tables,
    by_seed,
    minus,
    over,
    replicates,
    where,
)

__all__ = [
    "lite0_bytes",
    "lite0_crops_lrp_minus_sensitivity",
    "lite0_deconvolution",
    "lite0_edges_minus_sensitivity",
    "lite0_lrp_minus_random",
    "lite0_mean_fill",
    "lite0_noise_bytes",
    "lite0_noise_minus_random",
    "lite0_outside",
    "lite0_outside_noise",
    "lite0_sensitivity",
    "ranking_alpha",
    "ranking_alpha_of_means",
]
Statistic = Callable[[Tables], pa.Table]
TENTH = 5
"""A tenth of the 49 regions, rounded."""


def _named(function: Statistic, says: str) -> Statistic:
    function.__doc__ = says
    return function


def _exact(claim: str, says: str, **columns: object) -> Statistic:
    """Deviations from an identity, one replicate per case; 0 is right."""

    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], claim=claim, **columns)
        names = [f"{m} {c}" for m, c in zip(rows["model"].to_pylist(), rows["case"].to_pylist(), strict=True)]
        return replicates(dict(zip(names, rows["value"].to_pylist(), strict=True)))

    return _named(statistic, says)


end_to_end_gap = _exact("S7", "Per architecture: |sum of relevance - logit| / |logit|, epsilon rule.", metric="gap")
layer_gap_epsilon = _exact(
    "S8", "Per operation: relative loss of relevance, epsilon rule.", metric="layer_gap", rule="lrp_epsilon"
)
layer_gap_alpha_beta = _exact(
    "S8",
    "Per operation: loss relative to the logit where contributions of both signs meet, alpha 2, beta 1.",
    metric="layer_gap",
    rule="lrp_alpha_beta",
)
gradient_x_input_gap = _exact("I1", "Per architecture: largest difference, relative.", metric="gradient_x_input")


def neuron_shortfall(tables: Tables) -> pa.Table:
    """Epsilon 0: what a share lacks of being 1,000 times too large. Epsilon .01: its excess over 1 / epsilon."""
    rows = where(tables["identities"], claim="S9", metric="largest_share")
    found = dict(zip(rows["case"].to_pylist(), rows["value"].to_pylist(), strict=True))
    wild, tame = found["epsilon=0"], found["epsilon=0.01"]
    large = max(0.0, 1e3 - wild) if math.isfinite(wild) else 0.0
    return replicates({"epsilon=0": large, "epsilon=0.01": max(0.0, tame - 100.0) if math.isfinite(tame) else math.inf})


# AOPC and ABPC
def _area_gap(pair: str, first: str, second: str, fill: str = "uniform") -> Statistic:
    order = {"random": "random"}

    def statistic(tables: Tables) -> pa.Table:
        areas = [area(tables, pair, m, fill, order.get(m, "morf")) for m in (first, second)]
        return replicates(minus(*areas))

    return _named(statistic, f"AOPC, share of the logit, {pair}, {fill} fill: {first} minus {second}.")


sensitivity_fashion = _area_gap(FASHION, LRP, SENSITIVITY)
sensitivity_digits = _area_gap(DIGITS, LRP, SENSITIVITY)
sensitivity_garments = _area_gap(GARMENTS, LRP, SENSITIVITY)
deconvolution_fashion = _area_gap(FASHION, LRP, DECONVOLUTION)
deconvolution_digits = _area_gap(DIGITS, LRP, DECONVOLUTION)
deconvolution_garments = _area_gap(GARMENTS, LRP, DECONVOLUTION)
edges_minus_sensitivity_fashion = _area_gap(FASHION, EDGES, SENSITIVITY)
edges_minus_sensitivity_digits = _area_gap(DIGITS, EDGES, SENSITIVITY)
edges_minus_sensitivity_garments = _area_gap(GARMENTS, EDGES, SENSITIVITY)
edges_minus_deconvolution_fashion = _area_gap(FASHION, EDGES, DECONVOLUTION)
edges_minus_deconvolution_digits = _area_gap(DIGITS, EDGES, DECONVOLUTION)
edges_minus_deconvolution_garments = _area_gap(GARMENTS, EDGES, DECONVOLUTION)
lrp_minus_random_fashion = _area_gap(FASHION, LRP, "random")
lrp_minus_random_garments = _area_gap(GARMENTS, LRP, "random")
sensitivity_minus_random_fashion = _area_gap(FASHION, SENSITIVITY, "random")
sensitivity_minus_random_garments = _area_gap(GARMENTS, SENSITIVITY, "random")
deconvolution_minus_random_fashion = _area_gap(FASHION, DECONVOLUTION, "random")
deconvolution_minus_random_garments = _area_gap(GARMENTS, DECONVOLUTION, "random")
noise_minus_random_fashion = _area_gap(FASHION, "noise", "random")
noise_minus_random_digits = _area_gap(DIGITS, "noise", "random")
noise_minus_random_garments = _area_gap(GARMENTS, "noise", "random")
uniform_reversal_fashion = _area_gap(FASHION, SENSITIVITY, LRP)
uniform_reversal_digits = _area_gap(DIGITS, SENSITIVITY, LRP)
black_fashion = _area_gap(FASHION, LRP, SENSITIVITY, "black")
black_digits = _area_gap(DIGITS, LRP, SENSITIVITY, "black")
noise_black_fashion = _area_gap(FASHION, "noise", "random", "black")
noise_black_digits = _area_gap(DIGITS, "noise", "random", "black")
mean_fill_garments = _area_gap(GARMENTS, LRP, SENSITIVITY, "mean")


def background_interaction(tables: Tables) -> pa.Table:
    """LRP minus sensitivity under the uniform fill: garments on photographs minus garments on black."""
    gaps = [
        minus(area(tables, p, LRP, "uniform"), area(tables, p, SENSITIVITY, "uniform")) for p in (GARMENTS, FASHION)
    ]
    return replicates(minus(*gaps))


def background_interaction_noise(tables: Tables) -> pa.Table:
    """The same difference for a noise map minus the random order."""
    gaps = [
        minus(area(tables, p, "noise", "uniform"), area(tables, p, "random", "uniform", "random"))
        for p in (GARMENTS, FASHION)
    ]
    return replicates(minus(*gaps))


def _abpc_gap(pair: str, first: str, second: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(minus(*(between_curves(tables, pair, m, "uniform") for m in (first, second))))

    return _named(statistic, f"ABPC, share of the logit, {pair}, uniform fill: {first} minus {second}.")


abpc_fashion = _abpc_gap(FASHION, LRP, SENSITIVITY)
abpc_garments = _abpc_gap(GARMENTS, LRP, SENSITIVITY)
abpc_edges_fashion = _abpc_gap(FASHION, EDGES, SENSITIVITY)
abpc_edges_garments = _abpc_gap(GARMENTS, EDGES, SENSITIVITY)


def same_sign_share(tables: Tables) -> pa.Table:
    """Share of settings (pair, rival, fill, region, share, score) whose sign is that of the paper's own setting."""
    found = settings(tables)
    own = ("uniform", REGION, SHARE, "logit")
    shares = {}
    for seed in sorted(next(iter(found.values()))):
        agree = [
            np.sign(values[seed]) == np.sign(found[pair, other, *own][seed])
            for (pair, other, *setting), values in found.items()
            if tuple(setting) != own
        ]
        shares[seed] = float(np.mean(agree))
    return replicates(shares)


# Single measures
def measure(tables: Tables, pair: str, method: str, metric: str, condition: str = "") -> BySeed:
    """A measure of a method's maps, seed by seed."""
    return by_seed(tables["measures"], pair=pair, method=method, metric=metric, condition=condition)


def _ratio(metric: str, first: str, second: str, pair: str = GARMENTS) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(over(*(measure(tables, pair, m, metric) for m in (first, second))))

    return _named(statistic, f"{metric}, {pair}: {first} over {second}.")


bytes_ratio = _ratio("png_bytes", SENSITIVITY, LRP)
entropy_ratio = _ratio("entropy", SENSITIVITY, LRP)
bytes_ratio_noise = _ratio("png_bytes", SENSITIVITY, "noise")
entropy_ratio_noise = _ratio("entropy", SENSITIVITY, "noise")
variation_ratio = _ratio("total_variation", SENSITIVITY, LRP)
variation_ratio_foreground = _ratio("total_variation_foreground", SENSITIVITY, LRP)
variation_ratio_noise = _ratio("total_variation", SENSITIVITY, "noise")
variation_ratio_foreground_noise = _ratio("total_variation_foreground", SENSITIVITY, "noise")
jump_ratio_lrp = _ratio("jump", SENSITIVITY, LRP)
jump_ratio_deconvolution = _ratio("jump", SENSITIVITY, DECONVOLUTION)
jump_ratio_product = _ratio("jump", SENSITIVITY, "gradient_x_input")
entropy_absolute_ratio = _ratio("entropy_absolute", SENSITIVITY, LRP)
bytes_ratio_fashion = _ratio("png_bytes", SENSITIVITY, LRP, FASHION)


def _measure_gap(metric: str, first: str, second: str, condition: str = "", pair: str = GARMENTS) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(minus(*(measure(tables, pair, m, metric, condition) for m in (first, second))))

    return _named(statistic, f"{metric} {condition}, {pair}: {first} minus {second}.")


likeness_switches = _measure_gap("likeness_same_class", DECONVOLUTION, LRP, "signed")
likeness_no_switches = _measure_gap("likeness_same_class", "deconvolution_no_switches", LRP, "signed")
likeness_noise = _measure_gap("likeness_same_class", "noise", LRP, "signed")
likeness_absolute = _measure_gap("likeness_same_class", DECONVOLUTION, LRP, "absolute")
stability_gap = _measure_gap("rank_stability", LRP, SENSITIVITY)
stability_gap_noise = _measure_gap("rank_stability", "noise", SENSITIVITY)


def stability_lrp(tables: Tables) -> pa.Table:
    """Rank correlation of LRP's region scores before and after noise elsewhere."""
    return replicates(measure(tables, GARMENTS, LRP, "rank_stability"))


def stability_noise(tables: Tables) -> pa.Table:
    """The same for a noise map drawn anew."""
    return replicates(measure(tables, GARMENTS, "noise", "rank_stability"))


def sign_shortfall(tables: Tables) -> pa.Table:
    """Share of negative pixels of sensitivity (must be 0), and what LRP's lacks of being above 0; per pair and seed."""
    table = where(tables["measures"], metric="negative_share")
    found = {}
    for pair in sorted(set(table["pair"].to_pylist())):
        for seed, value in measure(tables, pair, SENSITIVITY, "negative_share").items():
            found[f"sensitivity {pair} {seed}"] = value
        for seed, value in measure(tables, pair, LRP, "negative_share").items():
            found[f"lrp {pair} {seed}"] = 0.0 if value > 0 else 1.0
    return replicates(found)


def change_after_tenth(tables: Tables, method: str, order: str, fill: str, pair: str = GARMENTS) -> BySeed:
    """Mean change of the logit after a tenth of the regions, share of the unperturbed logit."""
    rows = where(tables["curves"], pair=pair, region=REGION, fill=fill, method=method, order=order, score="logit")
    change = dict(zip(rows["seed"].to_pylist(), (values[TENTH] for values in rows["values"].to_pylist()), strict=True))
    start = by_seed(
        tables["aopc"], "start", pair=pair, region=REGION, fill=fill, method=method, order=order, score="logit"
    )
    return over(change, start)


def _change(method: str, order: str, fill: str, sign: float) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        found = change_after_tenth(tables, method, order, fill)
        return replicates({seed: sign * value for seed, value in found.items()})

    first = "negative" if order == "lerf" else "positive"
    says = f"Change of the logit when the most {first} tenth of the regions by {method} is replaced, {fill} fill"
    return _named(statistic, says + (", sign turned." if sign < 0 else "."))


negative_mean = _change(LRP, "lerf", "mean", 1)
negative_dataset = _change(LRP, "lerf", "dataset", 1)
positive_mean = _change(LRP, "morf", "mean", -1)
positive_dataset = _change(LRP, "morf", "dataset", -1)
noise_negative_mean = _change("noise", "lerf", "mean", 1)
noise_negative_dataset = _change("noise", "lerf", "dataset", 1)


def outside_share(tables: Tables) -> pa.Table:
    """Share of LRP's absolute relevance outside the garment."""
    return replicates(measure(tables, GARMENTS, LRP, "outside_share"))


def _outside(method: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        found = minus(*(measure(tables, GARMENTS, m, "outside_aopc") for m in (method, "random")))
        start = by_seed(tables["aopc"], "start", pair=GARMENTS, score="logit", method=LRP, fill="mean")
        return replicates(over(found, start))

    return _named(statistic, says)


outside_lrp = _outside(LRP, "AOPC, share of the logit, of regions off the garment: ranked by LRP minus at random.")
outside_noise = _outside("noise", "The same, ranked by a noise map.")


def _occluded(first: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        areas = [measure(tables, GARMENTS, LRP, "occluded_aopc", name) for name in (first, "class_average")]
        start = by_seed(tables["aopc"], "start", pair=GARMENTS, score="logit", method=LRP, fill="mean")
        return replicates(over(minus(*areas), start))

    return _named(statistic, says)


own_minus_average = _occluded("own", "AOPC, share of the logit, usual part hidden: own map minus the class average.")
other_minus_average = _occluded("other_image", "The same for the map of another image of the class.")


# S9
def _over_epsilons(metric: str, sign: float, relative: bool, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        table = where(tables["epsilons"], metric=metric)
        values: dict[tuple[int, float], list[float]] = {}
        columns = (table[name].to_pylist() for name in ("seed", "image", "epsilon", "value"))
        rows = list(zip(*columns, strict=True))
        smallest = min(epsilon for _, _, epsilon, _ in rows)
        first = {(seed, image): value for seed, image, epsilon, value in rows if epsilon == smallest}
        for seed, image, epsilon, value in rows:
            scale = first[seed, image] if relative else 1.0
            values.setdefault((seed, epsilon), []).append(sign * value / scale)
        keys = sorted(values)
        return pa.table(
            {
                "replicate": pa.array([seed for seed, _ in keys], pa.int64()),
                "value": pa.array([float(np.mean(values[key])) for key in keys], pa.float64()),
                "x": pa.array([epsilon for _, epsilon in keys], pa.float64()),
            }
        )

    return _named(statistic, says)


epsilon_gap = _over_epsilons("gap", 1.0, False, "Lost share of the logit by epsilon, mean over images.")
epsilon_tamed = _over_epsilons(
    "largest", -1.0, True, "Largest relevance by epsilon, over that of the same image at epsilon 0, sign turned."
)


# Gates
def _accuracy(pair: str) -> Statistic:
    return _named(
        lambda tables: replicates(by_seed(tables["training"], pair=pair, arm="true", metric="test_accuracy")),
        f"Test accuracy, {pair}.",
    )


accuracy_fashion, accuracy_digits, accuracy_garments = (_accuracy(pair) for pair in PAIRS)


def accuracy_bias_free(tables: Tables) -> pa.Table:
    """Test accuracy of the net without biases."""
    return replicates(by_seed(tables["training"], pair=FASHION, arm="bias_free", metric="test_accuracy"))

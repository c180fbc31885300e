"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed; the scene on EfficientNet-Lite0; the case of an identity. Positive is the paper's direction.
AOPC and ABPC are those of the logit over the first 16% of 4 x 4 regions, as a share of the mean unperturbed logit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, each, mean, measure, table_of
from restudy.tables import Array, BySeed, Tables, arrays, by_seed, levels, where

LRP, SENSITIVITY, DECONVOLUTION, EDGES = "lrp_alpha_beta", "sensitivity", "deconvolution", "edges"
FASHION, DIGITS, GARMENTS = "fashion_mnist", "mnist5k", "garments"
PAIRS = (FASHION, DIGITS, GARMENTS)
FILLS = ("uniform", "mean", "blur", "dataset", "black")
SHARE, REGION = 0.16, 4
TENTH = 5
"""A tenth of the 49 regions, rounded."""
RANKED = (SENSITIVITY, DECONVOLUTION, LRP, "lrp_epsilon", "gradient_x_input")

# S7, S8, I1: deviations from identities
identity = partial(each, "identities", ("model", "case"))
end_to_end_gap = identity(claim="S7", metric="gap")
layer_gap_epsilon = identity(claim="S8", metric="layer_gap", rule="lrp_epsilon")
layer_gap_alpha_beta = identity(claim="S8", metric="layer_gap", rule="lrp_alpha_beta")
gradient_x_input_gap = identity(claim="I1", metric="gradient_x_input")


@measure
def neuron_shortfall(tables: Tables) -> Values:
    """Epsilon 0: what a share lacks of being 1,000 times too large. Epsilon .01: its excess over 1 / epsilon."""
    rows = where(tables["identities"], claim="S9", metric="largest_share")
    found = dict(zip(rows["case"].to_pylist(), rows["value"].to_pylist(), strict=True))
    wild, tame = found["epsilon=0"], found["epsilon=0.01"]
    large = max(0.0, 1e3 - wild) if math.isfinite(wild) else 0.0
    return {"epsilon=0": large, "epsilon=0.01": max(0.0, tame - 100.0) if math.isfinite(tame) else math.inf}


# AOPC and ABPC
aopc = partial(mean, "aopc", within=("pair",), score="logit")


def area(pair: str, method: str, fill: str = "uniform", order: str = "morf") -> Measure:
    """Return AOPC over the mean unperturbed logit."""
    order = "random" if method == "random" else order
    chosen = partial(aopc, pair=pair, region=REGION, share=SHARE, fill=fill, method=method, order=order)
    return chosen() / chosen(column="start")


def area_gap(pair: str, first: str, second: str, fill: str = "uniform") -> Measure:
    """Return the difference of two methods' areas."""
    return area(pair, first, fill) - area(pair, second, fill)


sensitivity_fashion = area_gap(FASHION, LRP, SENSITIVITY)
sensitivity_digits = area_gap(DIGITS, LRP, SENSITIVITY)
sensitivity_garments = area_gap(GARMENTS, LRP, SENSITIVITY)
deconvolution_fashion = area_gap(FASHION, LRP, DECONVOLUTION)
deconvolution_digits = area_gap(DIGITS, LRP, DECONVOLUTION)
deconvolution_garments = area_gap(GARMENTS, LRP, DECONVOLUTION)
edges_minus_sensitivity_fashion = area_gap(FASHION, EDGES, SENSITIVITY)
edges_minus_sensitivity_digits = area_gap(DIGITS, EDGES, SENSITIVITY)
edges_minus_sensitivity_garments = area_gap(GARMENTS, EDGES, SENSITIVITY)
edges_minus_deconvolution_fashion = area_gap(FASHION, EDGES, DECONVOLUTION)
edges_minus_deconvolution_digits = area_gap(DIGITS, EDGES, DECONVOLUTION)
edges_minus_deconvolution_garments = area_gap(GARMENTS, EDGES, DECONVOLUTION)
lrp_minus_random_fashion = area_gap(FASHION, LRP, "random")
lrp_minus_random_garments = area_gap(GARMENTS, LRP, "random")
sensitivity_minus_random_fashion = area_gap(FASHION, SENSITIVITY, "random")
sensitivity_minus_random_garments = area_gap(GARMENTS, SENSITIVITY, "random")
deconvolution_minus_random_fashion = area_gap(FASHION, DECONVOLUTION, "random")
deconvolution_minus_random_garments = area_gap(GARMENTS, DECONVOLUTION, "random")
noise_minus_random_fashion = area_gap(FASHION, "noise", "random")
noise_minus_random_digits = area_gap(DIGITS, "noise", "random")
noise_minus_random_garments = area_gap(GARMENTS, "noise", "random")
uniform_reversal_fashion = area_gap(FASHION, SENSITIVITY, LRP)
uniform_reversal_digits = area_gap(DIGITS, SENSITIVITY, LRP)
black_fashion = area_gap(FASHION, LRP, SENSITIVITY, "black")
black_digits = area_gap(DIGITS, LRP, SENSITIVITY, "black")
noise_black_fashion = area_gap(FASHION, "noise", "random", "black")
noise_black_digits = area_gap(DIGITS, "noise", "random", "black")
mean_fill_garments = area_gap(GARMENTS, LRP, SENSITIVITY, "mean")
background_interaction = sensitivity_garments - sensitivity_fashion
background_interaction_noise = noise_minus_random_garments - noise_minus_random_fashion


def between_curves(pair: str, method: str) -> Measure:
    """Return ABPC: AOPC of the most relevant first minus that of the least relevant first."""
    return area(pair, method) - area(pair, method, order="lerf")


def abpc_gap(pair: str, first: str, second: str) -> Measure:
    """Return the difference of two methods' ABPC."""
    return between_curves(pair, first) - between_curves(pair, second)


abpc_fashion, abpc_garments = abpc_gap(FASHION, LRP, SENSITIVITY), abpc_gap(GARMENTS, LRP, SENSITIVITY)
abpc_edges_fashion = abpc_gap(FASHION, EDGES, SENSITIVITY)
abpc_edges_garments = abpc_gap(GARMENTS, EDGES, SENSITIVITY)


def settings(tables: Tables, *, black: bool = False) -> dict[tuple[str, str, str, int, float, str], BySeed]:
    """(pair, rival, fill, region, share, score) -> seed -> AOPC of LRP minus that of the rival."""
    table = where(tables["aopc"], order="morf")
    found = {}
    regions, shares, scores = (levels(table, name) for name in ("region", "share", "score"))
    for fill, region, share, score in product(FILLS if black else FILLS[:-1], regions, shares, scores):
        for pair in PAIRS:
            rows = where(table, fill=fill, region=region, share=share, score=score, pair=pair)
            if rows.num_rows:
                lrp = by_seed(rows, method=LRP)
                for other in (SENSITIVITY, DECONVOLUTION):
                    rival = by_seed(rows, method=other)
                    found[pair, other, fill, region, share, score] = {seed: lrp[seed] - rival[seed] for seed in lrp}
    return found


@measure
def same_sign_share(tables: Tables) -> Values:
    """Share of settings (pair, rival, fill, region, share, score) whose sign is that of the paper's own setting."""
    found = settings(tables)
    own = ("uniform", REGION, SHARE, "logit")
    shares: Values = {}
    for seed in sorted(next(iter(found.values()))):
        agree = [
            np.sign(values[seed]) == np.sign(found[pair, other, *own][seed])
            for (pair, other, *setting), values in found.items()
            if tuple(setting) != own
        ]
        shares[seed] = float(np.mean(agree))
    return shares


# What maps are like and how they react
def of_maps(method: str, metric: str, condition: str = "", pair: str = GARMENTS) -> Measure:
    """Return a measure of a method's maps."""
    return mean("measures", within=("pair",), pair=pair, method=method, metric=metric, condition=condition)


def of_sensitivity(metric: str, other: str = LRP, pair: str = GARMENTS) -> Measure:
    """Return a measure of sensitivity's maps over that of another method's."""
    return of_maps(SENSITIVITY, metric, pair=pair) / of_maps(other, metric, pair=pair)


def same_class(method: str, condition: str = "signed") -> Measure:
    """Return how much more alike a method's maps are within a class than LRP's."""
    metric = "likeness_same_class"
    return of_maps(method, metric, condition) - of_maps(LRP, metric, condition)


bytes_ratio, bytes_ratio_noise = of_sensitivity("png_bytes"), of_sensitivity("png_bytes", "noise")
bytes_ratio_fashion = of_sensitivity("png_bytes", pair=FASHION)
entropy_ratio, entropy_ratio_noise = of_sensitivity("entropy"), of_sensitivity("entropy", "noise")
entropy_absolute_ratio = of_sensitivity("entropy_absolute")
variation_ratio, variation_ratio_noise = of_sensitivity("total_variation"), of_sensitivity("total_variation", "noise")
variation_ratio_foreground = of_sensitivity("total_variation_foreground")
variation_ratio_foreground_noise = of_sensitivity("total_variation_foreground", "noise")
jump_ratio_lrp = of_sensitivity("jump")
jump_ratio_deconvolution = of_sensitivity("jump", DECONVOLUTION)
jump_ratio_product = of_sensitivity("jump", "gradient_x_input")
likeness_switches = same_class(DECONVOLUTION)
likeness_no_switches = same_class("deconvolution_no_switches")
likeness_noise = same_class("noise")
likeness_absolute = same_class(DECONVOLUTION, "absolute")
stability_lrp = of_maps(LRP, "rank_stability")
stability_noise = of_maps("noise", "rank_stability")
stability_gap = stability_lrp - of_maps(SENSITIVITY, "rank_stability")
stability_gap_noise = stability_noise - of_maps(SENSITIVITY, "rank_stability")


@measure
def sign_shortfall(tables: Tables) -> Values:
    """Share of negative pixels of sensitivity (must be 0), and what LRP's lacks of being above 0; per pair and seed."""
    found: Values = {}
    for pair in levels(where(tables["measures"], metric="negative_share"), "pair"):
        for seed, value in of_maps(SENSITIVITY, "negative_share", pair=pair).values(tables).items():
            found[f"sensitivity {pair} {seed}"] = value
        for seed, value in of_maps(LRP, "negative_share", pair=pair).values(tables).items():
            found[f"lrp {pair} {seed}"] = 0.0 if value > 0 else 1.0
    return found


def after_tenth(method: str, order: str, fill: str) -> Measure:
    """Return the mean change of the logit after a tenth of the regions, share of the unperturbed logit."""
    chosen = {"pair": GARMENTS, "region": REGION, "fill": fill, "method": method, "order": order, "score": "logit"}

    def compute(tables: Tables) -> Values:
        rows = where(table_of(tables, "curves"), **chosen)
        start = by_seed(tables["aopc"], "start", ("pair",), **chosen)
        changes = zip(rows["seed"].to_pylist(), rows["values"].to_pylist(), strict=True)
        return {seed: values[TENTH] / start.get(seed, math.nan) for seed, values in changes}

    said = ", ".join(str(value) for value in chosen.values())
    return Measure(compute, f"curves[{said}] after {TENTH} regions / start")


negative_mean, negative_dataset = after_tenth(LRP, "lerf", "mean"), after_tenth(LRP, "lerf", "dataset")
positive_mean, positive_dataset = -after_tenth(LRP, "morf", "mean"), -after_tenth(LRP, "morf", "dataset")
noise_negative_mean = after_tenth("noise", "lerf", "mean")
noise_negative_dataset = after_tenth("noise", "lerf", "dataset")

# S13, S14: regions off the object, and regions with the usual part hidden; share of the unperturbed logit
start = aopc(column="start", pair=GARMENTS, method=LRP, fill="mean")


def off_object(method: str) -> Measure:
    """Return AOPC of regions off the garment: ranked by a method minus at random."""
    return (of_maps(method, "outside_aopc") - of_maps("random", "outside_aopc")) / start


def beyond_average(ranking: str) -> Measure:
    """Return AOPC of the regions that are left: by this ranking minus by the class average."""
    metric = "occluded_aopc"
    return (of_maps(LRP, metric, ranking) - of_maps(LRP, metric, "class_average")) / start


outside_share = of_maps(LRP, "outside_share")
outside_lrp, outside_noise = off_object(LRP), off_object("noise")
own_minus_average, other_minus_average = beyond_average("own"), beyond_average("other_image")


# S9
def over_epsilons(metric: str, says: str, sign: float = 1.0, *, relative: bool = False) -> Measure:
    """Return a trend over epsilon, mean over images; `relative` to the same image at the smallest epsilon."""

    def compute(tables: Tables) -> pa.Table:
        table = where(table_of(tables, "epsilons"), metric=metric)
        rows = list(zip(*(table[name].to_pylist() for name in ("seed", "image", "epsilon", "value")), strict=True))
        smallest = min(epsilon for _, _, epsilon, _ in rows)
        first = {(seed, image): value for seed, image, epsilon, value in rows if epsilon == smallest}
        found: dict[tuple[int, float], list[float]] = {}
        for seed, image, epsilon, value in rows:
            found.setdefault((seed, epsilon), []).append(sign * value / (first[seed, image] if relative else 1.0))
        keys = sorted(found)
        return pa.table(
            {
                "replicate": pa.array([seed for seed, _ in keys], pa.int64()),
                "value": pa.array([float(np.mean(found[key])) for key in keys], pa.float64()),
                "x": pa.array([epsilon for _, epsilon in keys], pa.float64()),
            }
        )

    return Measure(compute, says)


epsilon_gap = over_epsilons("gap", "lost share of the logit by epsilon, mean over images")
epsilon_tamed = over_epsilons(
    "largest", "-largest relevance by epsilon, over that of the same image at epsilon 0", -1.0, relative=True
)

# Gates
accuracy = partial(mean, "training", within=("pair",), metric="test_accuracy")
accuracy_fashion, accuracy_digits, accuracy_garments = (accuracy(pair=pair, arm="true") for pair in PAIRS)
accuracy_bias_free = accuracy(pair=FASHION, arm="bias_free")


# T1: do single images agree about the order of the methods?
def krippendorff_alpha(ratings: Array) -> float:
    """Krippendorff's alpha of interval data without gaps, ratings (raters, items); 1 is agreement, 0 chance."""
    raters, items = ratings.shape
    count = raters * items
    within = float(np.square(ratings[:, None, :] - ratings[None, :, :]).sum()) / (raters - 1)
    flat = ratings.ravel()
    between = 2.0 * (count * float(np.square(flat).sum()) - float(flat.sum()) ** 2) / (count - 1)
    return 1.0 - within / between if between > 0 else math.nan


def ranks(values: Array) -> Array:
    """Ranks within each row of (M, N), 1 for the smallest, ties averaged."""
    array = np.asarray(values, dtype=np.float64)
    below = (array[:, :, None] > array[:, None, :]).sum(2)
    equal = (array[:, :, None] == array[:, None, :]).sum(2)
    found: Array = below + (equal + 1) / 2
    return found


def image_areas(tables: Tables, pair: str, fill: str, seed: int) -> dict[str, Any]:
    """AOPC of single images by method, a list each."""
    chosen = {"pair": pair, "region": REGION, "fill": fill, "order": "morf", "score": "logit", "share": SHARE}
    rows = where(tables["aopc"], seed=seed, **chosen)
    return dict(zip(rows["method"].to_pylist(), rows["values"].to_pylist(), strict=True))


def image_alpha(tables: Tables, pair: str, fill: str, seed: int) -> float:
    """Krippendorff's alpha over the images' rankings of five methods."""
    found = image_areas(tables, pair, fill, seed)
    return krippendorff_alpha(ranks(np.array([found[method] for method in RANKED]).T))


@measure
def ranking_alpha(tables: Tables) -> Values:
    """Krippendorff's alpha over the images' rankings of five methods, garments on photographs, uniform fill."""
    return {seed: image_alpha(tables, GARMENTS, "uniform", seed) for seed in levels(tables["aopc"])}


@measure
def ranking_alpha_of_means(tables: Tables) -> Values:
    """Control: alpha over four groups of images, of the mean AOPC of sensitivity and LRP under black, Fashion-MNIST."""
    alphas: Values = {}
    for seed in levels(tables["aopc"]):
        found = image_areas(tables, FASHION, "black", seed)
        both = np.array([found[SENSITIVITY], found[LRP]])
        alphas[seed] = krippendorff_alpha(np.array([part.mean(1) for part in np.array_split(both, 4, axis=1)]))
    return alphas


# EfficientNet-Lite0: one number per scene, or per plain crop, clustered by its photograph
def scene_areas(tables: Tables, method: str, fill: str, kind: str = "scene") -> dict[str, float]:
    """AOPC of each scene over the mean unperturbed logit of all of them."""
    order = "random" if method == "random" else "morf"
    chosen = {"kind": kind, "fill": fill, "method": method, "order": order, "score": "logit", "share": SHARE}
    rows = where(table_of(tables, "photo_aopc"), **chosen)
    first = float(np.mean(rows["start"].to_numpy())) if rows.num_rows else math.nan
    return {s: v / first for s, v in zip(rows["scene"].to_pylist(), rows["value"].to_pylist(), strict=True)}


def scene_gap(first: str, second: str, fill: str = "uniform", kind: str = "scene") -> Measure:
    """Return AOPC, share of the logit: a method minus another."""

    def compute(tables: Tables) -> Values:
        one, other = (scene_areas(tables, method, fill, kind) for method in (first, second))
        return {scene: one[scene] - other[scene] for scene in one if scene in other}

    def clusters(tables: Tables) -> Mapping[Any, Any]:
        rows = where(tables["photo_aopc"], kind=kind)
        scenes, photos = arrays(rows, "scene", "photo")
        return dict(zip(scenes, photos if kind == "crop" else scenes, strict=True))

    return Measure(compute, f"photo_aopc[{kind}, {fill}]: {first} - {second}, for each {kind}", clusters=clusters)


lite0_sensitivity = scene_gap(LRP, SENSITIVITY)
lite0_deconvolution = scene_gap(LRP, DECONVOLUTION)
lite0_lrp_minus_random = scene_gap(LRP, "random")
lite0_noise_minus_random = scene_gap("noise", "random")
lite0_edges_minus_sensitivity = scene_gap(EDGES, SENSITIVITY)
lite0_mean_fill = scene_gap(LRP, SENSITIVITY, "mean")
lite0_crops_lrp_minus_sensitivity = scene_gap(LRP, SENSITIVITY, kind="crop")


def of_scene(method: str, metric: str) -> Measure:
    """Return a measure of each scene's map."""

    def compute(tables: Tables) -> Values:
        rows = where(table_of(tables, "photo_measures"), kind="scene", method=method, metric=metric)
        return dict(zip(rows["scene"].to_pylist(), rows["value"].to_pylist(), strict=True))

    def clusters(tables: Tables) -> Mapping[Any, Any]:
        return {scene: scene for scene in tables["photo_measures"]["scene"].to_pylist()}

    return Measure(compute, f"photo_measures[{metric} of {method}] for each scene", clusters=clusters)


lite0_bytes = of_scene(SENSITIVITY, "png_bytes") / of_scene(LRP, "png_bytes")
lite0_noise_bytes = of_scene(SENSITIVITY, "png_bytes") / of_scene("noise", "png_bytes")
lite0_outside = of_scene(LRP, "outside_aopc") - of_scene("random", "outside_aopc")
lite0_outside_noise = of_scene("noise", "outside_aopc") - of_scene("random", "outside_aopc")

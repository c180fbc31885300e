"""One number per replicate from the results tables, for every claim, control and gate; and the rule of both checks.

Unless a name says otherwise the pair is the CNN on Fashion-MNIST, the replicate is the model seed, positive is the
paper's direction. Similarities are those to the maps of the trained net, the class held fixed.

The rule: a map that stays as similar to the trained net's as an honest retraining would leave it, although the net was
randomised or had nothing to learn, does not describe the net: the method is rejected. It is accepted when the
similarity falls clearly below that yardstick. The rule is the same for every method and every similarity metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, mean, measure, table_of
from restudy.tables import Array, BySeed, Tables, arrays, levels, where

CNN, MLP, CNN_PAPER_INIT = "cnn-fashion_mnist", "mlp-mnist5k", "cnn_paper_init-fashion_mnist"
CONTROLS = ("noise", "edges")
MAX_UNDEFINED = 0.10
"""A method with a larger share of undefined maps in an arm has no value there: the rest would be another sample."""
HALF, ALL = -2, -1
"""Depths of the cascade that depend on the net: its upper half, and all its layers."""
MARGIN = 0.10
"""Smallest fall below the retrained net's similarity that counts as a response, in points of the metric."""

ACCEPTED, REJECTED, UNDEFINED, NOT_APPLICABLE = "accepted", "rejected", "no map", "not applicable"
TESTS = ("parameters", "data")
METRICS = ("spearman", "spearman_abs", "ssim", "hog")
"""The four similarity metrics of the paper: signed and absolute rank correlation, SSIM, HOG."""


def decide(changed: float, yardstick: float) -> str:
    """Decision of one test under one metric.

    Args:
        changed: similarity to the trained net's map after the net was randomised or trained on permuted labels.
        yardstick: similarity of an honestly retrained net's map.

    Returns:
        `accepted`, `rejected`, or `no map` where either similarity is undefined.
    """
    if math.isnan(changed) or math.isnan(yardstick):
        return UNDEFINED
    return ACCEPTED if yardstick - changed >= MARGIN else REJECTED


def layers(tables: Tables, pair: str) -> int:
    """Return the number of layers of a pair's net: the largest depth of the cascade from the top."""
    return int(max(where(tables["similarity"], pair=pair, state="top_down")["depth"].to_pylist(), default=0))


def defined_mean(table: pa.Table, pair: str, **columns: object) -> BySeed:
    """Average the chosen rows of each seed, images counting alike; NaN where none is left or too many are undefined."""
    rows = where(table, pair=pair, **columns)
    at, values, images, undefined = arrays(rows, "seed", "value", "images", "undefined")
    weights, share = images - undefined.astype(float), undefined / images
    found = {}
    for seed in levels(where(table, pair=pair)):
        mine = at == seed
        fine = mine.any() and share[mine].mean() <= MAX_UNDEFINED
        defined = mine & (weights > 0)
        found[seed] = float(np.average(values[defined], weights=weights[defined])) if fine else math.nan
    return found


def alike(method: str, metric: str = "spearman_abs", state: str = "top_down", pair: str = CNN, **more: Any) -> Measure:
    """Return the similarity of a method's maps on a state's net to those of the trained net.

    Args:
        more: further columns of `similarity`, others are averaged over; `depth` may be `HALF` or `ALL`.
    """
    only = {"method": method, "metric": metric, "state": state, "target": "fixed", "against": "trained"} | more

    def compute(tables: Tables) -> Values:
        depth = {HALF: layers(tables, pair) // 2, ALL: layers(tables, pair)} if only.get("depth", 0) < 0 else {}
        exact = {name: depth.get(value, value) if name == "depth" else value for name, value in only.items()}
        return dict(defined_mean(table_of(tables, "similarity"), pair, **exact))

    words = {HALF: "upper half", ALL: "all"}
    said = [f"{metric} of {method}", f"pair={pair}", f"state={state}"]
    said += [f"{name}={words.get(value, value) if name == 'depth' else value}" for name, value in more.items()]
    return Measure(compute, f"similarity[{', '.join(said)}]", linear=True)


# Gates
accuracy = partial(mean, "training", within=("pair",))
test_accuracy = accuracy(pair=CNN, arm="true", metric="test_accuracy")
train_accuracy_permuted = accuracy(pair=CNN, arm="permuted", metric="train_accuracy")
test_accuracy_permuted = accuracy(pair=CNN, arm="permuted", metric="test_accuracy")
mlp_test_accuracy = accuracy(pair=MLP, arm="true", metric="test_accuracy")
mlp_train_accuracy_permuted = accuracy(pair=MLP, arm="permuted", metric="train_accuracy")
mlp_test_accuracy_permuted = accuracy(pair=MLP, arm="permuted", metric="test_accuracy")

# A1: signed rank correlation of the gradient
gradient_signed_full = alike("gradient", "spearman", depth=ALL)
mlp_gradient_signed_full = alike("gradient", "spearman", pair=MLP, depth=ALL)
gradient_signed_logits = alike("gradient", "spearman", depth=1)
gradient_signed_retrain = alike("gradient", "spearman", "seed_retrain")


def logit_layer_gap(method: str, pair: str = CNN) -> Measure:
    """Return absolute rank correlation with the logit layer random: a method minus the gradient (A2, G1)."""
    return alike(method, pair=pair, depth=1) - alike("gradient", pair=pair, depth=1)


def random_nets_gap(method: str, pair: str = CNN) -> Measure:
    """Return the same difference between the maps of two random nets (A5)."""
    between = partial(alike, state="two_random_nets", pair=pair, against="random_net")
    return between(method) - between("gradient")


gbp_minus_gradient_logit_layer = logit_layer_gap("guided_backprop")
mlp_gbp_minus_gradient_logit_layer = logit_layer_gap("guided_backprop", MLP)
guided_gradcam_minus_gradient = logit_layer_gap("guided_gradcam")
noise_minus_gradient_logit_layer = logit_layer_gap("noise")
two_random_nets = random_nets_gap("guided_backprop")
mlp_two_random_nets = random_nets_gap("guided_backprop", MLP)
gxi_minus_gradient_random_nets = random_nets_gap("gradient_x_input")
noise_minus_gradient_random_nets = random_nets_gap("noise")
gbp_gap_beyond_random_nets = gbp_minus_gradient_logit_layer - two_random_nets


# A3, A4: the cascade from the top
def half_minus_full(method: str) -> Measure:
    """Return absolute rank correlation: upper half random minus all random."""
    return alike(method, depth=HALF) - alike(method, depth=ALL)


def ssim_minus_signed(method: str) -> Measure:
    """Return SSIM minus signed rank correlation after the full cascade."""
    return alike(method, "ssim", depth=ALL) - alike(method, "spearman", depth=ALL)


gbp_top_half_minus_full = half_minus_full("guided_backprop")
noise_top_half_minus_full = half_minus_full("noise")
ssim_minus_signed_gxi = ssim_minus_signed("gradient_x_input")
ssim_minus_signed_ig = ssim_minus_signed("integrated_gradients")
ssim_minus_signed_gradient = ssim_minus_signed("gradient")  # has no input factor


# A6, A10: the data test
def drop(method: str, metric: str = "spearman", pair: str = CNN) -> Measure:
    """Return the similarity of the retrained net minus that of the net trained on permuted labels."""
    return alike(method, metric, "seed_retrain", pair) - alike(method, metric, "permuted_labels", pair)


def drop_gap(method: str = "gradient", metric: str = "spearman", pair: str = CNN) -> Measure:
    """Return the drop of a method minus that of guided backprop."""
    return drop(method, metric, pair) - drop("guided_backprop", metric, pair)


gradient_retrain_minus_permuted = drop("gradient")
mlp_gradient_retrain_minus_permuted = drop("gradient", pair=MLP)
noise_retrain_minus_permuted = drop("noise")
drop_gap_signed = drop_gap()
drop_gap_absolute = drop_gap(metric="spearman_abs")
drop_gap_noise = drop_gap("noise")
mlp_drop_gap_signed = drop_gap(pair=MLP)
paper_init_drop_gap_signed = drop_gap(pair=CNN_PAPER_INIT)

# A9: guided backprop, random against retrained
gbp_retrained = alike("guided_backprop", state="seed_retrain")
gbp_logits_minus_retrain = alike("guided_backprop", depth=1) - gbp_retrained
gbp_full_minus_retrain = alike("guided_backprop", depth=ALL) - gbp_retrained


# A11: rank correlation with the image's edges, foreground, absolute
def edges(method: str, state: str = "trained", depth: int = 0) -> Measure:
    """Return the rank correlation of a method's maps with the edges of the image."""
    return alike(method, "spearman_abs_foreground", state, against="edges", depth=depth)


gbp_minus_gradient_edges = edges("guided_backprop") - edges("gradient")
noise_minus_gradient_edges = edges("noise") - edges("gradient")
gbp_edges_change = edges("guided_backprop", "top_down", 1) - edges("guided_backprop")


# A7: do the metrics agree on the order of the methods?
def methods_of(table: pa.Table, pair: str) -> list[str]:
    """The saliency methods measured on a pair, controls left out, in the order of the table."""
    found = dict.fromkeys(where(table, pair=pair, state="top_down")["method"].to_pylist())
    return [name for name in found if name not in CONTROLS]


def rankings(tables: Tables, pair: str, *, metric: str = "") -> dict[int, list[Array]]:
    """For each seed the similarities of the methods by each judge, (methods,) float64, undefined methods left out.

    The judges are the four metrics, similarity averaged over the cascade from the top; with `metric` they are the
    re-draws of the logit layer under that metric.
    """
    table = tables["similarity"]
    judges: list[tuple[str, dict[str, Any]]] = [(name, {"redraw": 0}) for name in METRICS]
    if metric:
        draws = levels(where(table, pair=pair, state="top_down", depth=1), "redraw")
        judges = [(metric, {"depth": 1, "redraw": draw}) for draw in draws]
    methods = methods_of(table, pair)
    values = [[alike(m, name, pair=pair, **rest).values(tables) for m in methods] for name, rest in judges]
    ranked = {}
    for seed in sorted({seed for found in values for one in found for seed in one}):
        matrix = np.array([[one[seed] for one in found] for found in values])
        defined = ~np.isnan(matrix).any(axis=0)
        ranked[seed] = [row[defined] for row in matrix]
    return ranked


def concordance(values: Sequence[Array]) -> float:
    """Kendall's coefficient of concordance W in [0, 1] of m judges over n items (Kendall, Babington Smith 1939).

    W = 12 S / (m^2 (n^3 - n)), S the sum of squared deviations of the items' rank sums; ties get the mean rank.
    """
    count, items = len(values), len(values[0]) if values else 0
    if count < 2 or items < 3:
        return float("nan")
    sums = np.sum([mean_ranks(row) for row in values], axis=0)
    deviation = float(np.square(sums - sums.mean()).sum())
    return 12 * deviation / (count**2 * (items**3 - items))


def mean_ranks(row: Array) -> Array:
    """Ranks from 1, (n,); ties get the mean rank."""
    below = (row[:, None] > row[None, :]).sum(axis=1)
    equal = (row[:, None] == row[None, :]).sum(axis=1)
    found: Array = below + (equal + 1) / 2
    return found


@measure
def kendall_w(tables: Tables) -> Values:
    """Kendall's W of the methods' order under the four metrics, cascade from the top."""
    return {seed: concordance(judges) for seed, judges in rankings(tables, CNN).items()}


@measure
def kendall_w_redraws(tables: Tables) -> Values:
    """Kendall's W of the order over re-draws of the logit layer, one metric; mean over metrics."""
    by_metric = [rankings(tables, CNN, metric=metric) for metric in METRICS]
    return {seed: sum(concordance(found[seed]) for found in by_metric) / len(by_metric) for seed in by_metric[0]}


# L1, L2: one number per photo, its crops averaged
def photo_means(tables: Tables, method: str, metric: str, depth: int, state: str = "top_down") -> dict[str, float]:
    """Mean similarity over crops and re-draws for each photo; NaN for all where a tenth of the maps is undefined."""
    table = table_of(tables, "photo_similarity")
    rows = where(table, method=method, metric=metric, depth=depth, state=state)
    photos, values = arrays(rows, "photo", "value")
    undefined = np.isnan(values)
    enough = len(values) > 0 and undefined.mean() <= MAX_UNDEFINED
    found = {}
    for photo in dict.fromkeys(table["photo"].to_pylist()):
        mine = values[(photos == photo) & ~undefined]
        found[photo] = float(mine.mean()) if enough and len(mine) else math.nan
    return found


def photo_gap(method: str) -> Measure:
    """Return absolute rank correlation on Lite0 with random logits: a method minus the gradient, photo by photo."""

    def compute(tables: Tables) -> Values:
        first, second = (photo_means(tables, name, "spearman_abs", 1) for name in (method, "gradient"))
        return {photo: first[photo] - second[photo] for photo in first}

    def clusters(tables: Tables) -> dict[str, str]:
        return {photo: photo for photo in tables["photo_similarity"]["photo"].to_pylist()}

    formula = f"photo_similarity[spearman_abs of {method}, depth=1] - the same of gradient, for each photo"
    return Measure(compute, formula, clusters=clusters)


lite0_gbp_minus_gradient = photo_gap("guided_backprop")
lite0_guided_gradcam_minus_gradient = photo_gap("guided_gradcam")
lite0_noise_minus_gradient = photo_gap("noise")  # a map that knows no net

# A8, A12: deviations of the rule's decisions from what must be, so 0 is right; one replicate per decision or control
RIGHT = {"edges": REJECTED, "gradient": ACCEPTED}
"""What signed rank correlation must decide on a map that ignores the net, and on one that is nothing but the net."""
DECISIONS = (ACCEPTED, REJECTED, UNDEFINED)


@measure
def decision_errors(tables: Tables) -> Values:
    """1 for every wrong decision on the two maps of known kind (edges, gradient), 0 for every right one."""
    rows = where(tables["decisions"], method=tuple(RIGHT), test=TESTS, metric="spearman").to_pylist()
    return {f"{r['model']} {r['method']} {r['test']}": float(r["decision"] != RIGHT[r["method"]]) for r in rows}


@measure
def edge_similarity_gap(tables: Tables) -> Values:
    """1 minus the similarity of the Sobel map before and after either change: it cannot change, so 0."""
    rows = where(tables["decisions"], method="edges", test=TESTS).to_pylist()
    return {f"{r['model']} {r['test']} {r['metric']}": 1.0 - r["changed"] for r in rows}


@measure
def coverage_gap(tables: Tables) -> Values:
    """For each model and metric, the share of applicable methods without a decision from both tests."""
    table = where(tables["decisions"], role="method", test=TESTS)
    found: Values = {}
    for model in levels(table, "model"):
        for metric in METRICS:
            rows = where(table, model=model, metric=metric).to_pylist()
            decided: dict[str, set[str]] = {r["method"]: set() for r in rows if r["decision"] != NOT_APPLICABLE}
            for row in rows:
                if row["decision"] in DECISIONS:
                    decided[row["method"]].add(row["test"])
            open_ = sum(tests != set(TESTS) for tests in decided.values())
            found[f"{model} {metric}"] = open_ / len(decided) if decided else 1.0
    return found


@measure
def control_gap(tables: Tables) -> Values:
    """1 for every control that is missing from a model's run, 0 where it is there.

    The four controls: iid noise, the edges of the image, the retrained net as yardstick, two random nets.
    """
    table = tables["decisions"]
    found: Values = {}
    for model in levels(table, "model"):
        mine = where(table, model=model)
        gradient = where(mine, method="gradient", test=TESTS)
        present = {
            "noise": where(mine, method="noise", test=TESTS).num_rows == len(TESTS) * len(METRICS),
            "edges": where(mine, method="edges", test=TESTS).num_rows == len(TESTS) * len(METRICS),
            "retrained net": gradient.num_rows > 0 and gradient["yardstick"].null_count == 0,
            "two random nets": where(mine, test="random_nets").num_rows > 0,
        }
        found |= {f"{model} {name}": float(not there) for name, there in present.items()}
    return found

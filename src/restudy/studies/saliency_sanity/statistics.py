"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

Unless a name says otherwise the pair is the CNN on Fashion-MNIST, the replicate is the model seed, positive is the
paper's direction. Similarities are those to the maps of the trained net.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from restudy.studies.saliency_sanity.agreement import kendall_w_of, rankings
from restudy.studies.saliency_sanity.photo_statistics import (
    lite0_gbp_minus_gradient,
    lite0_guided_gradcam_minus_gradient,
    lite0_noise_minus_gradient,
)
from restudy.studies.saliency_sanity.rule import METRICS
from restudy.studies.saliency_sanity.rule_statistics import (
    control_gap,
    coverage_gap,
    decision_errors,
    edge_similarity_gap,
)
from restudy.studies.saliency_sanity.tidy import (
    CNN,
    CNN_PAPER_INIT,
    MLP,
    BySeed,
    Tables,
    by_seed,
    layers,
    minus,
    replicates,
    similarity,
)

__all__ = [
    "control_gap",
    "coverage_gap",
    "decision_errors",
    "edge_similarity_gap",
    "lite0_gbp_minus_gradient",
    "lite0_guided_gradcam_minus_gradient",
    "lite0_noise_minus_gradient",
]
Statistic = Callable[[Tables], pa.Table]


def _on(measure: Callable[[Tables, str], BySeed], pair: str, says: str) -> Statistic:
    """A statistic of one pair: replicate (seed) and value; `says` becomes its docstring."""

    def statistic(tables: Tables) -> pa.Table:
        return replicates(measure(tables, pair))

    statistic.__doc__ = says
    return statistic


def _signed_full(tables: Tables, pair: str) -> BySeed:
    return similarity(tables, pair, "gradient", "spearman", "top_down", depth=layers(tables, pair))


def _gap(method: str, other: str, metric: str, state: str, **more: object) -> Callable[[Tables, str], BySeed]:
    def measure(tables: Tables, pair: str) -> BySeed:
        first, second = (similarity(tables, pair, m, metric, state, **more) for m in (method, other))
        return minus(first, second)

    return measure


def _between_random_nets(method: str) -> Callable[[Tables, str], BySeed]:
    return _gap(method, "gradient", "spearman_abs", "two_random_nets", against="random_net")


def _half_minus_full(method: str) -> Callable[[Tables, str], BySeed]:
    def measure(tables: Tables, pair: str) -> BySeed:
        count = layers(tables, pair)
        half, full = (
            similarity(tables, pair, method, "spearman_abs", "top_down", depth=d) for d in (count // 2, count)
        )
        return minus(half, full)

    return measure


def _ssim_minus_signed(method: str) -> Callable[[Tables, str], BySeed]:
    def measure(tables: Tables, pair: str) -> BySeed:
        count = layers(tables, pair)
        ssim, signed = (
            similarity(tables, pair, method, metric, "top_down", depth=count) for metric in ("ssim", "spearman")
        )
        return minus(ssim, signed)

    return measure


def _drop(method: str, metric: str = "spearman") -> Callable[[Tables, str], BySeed]:
    """Similarity of the retrained net minus that of the net trained on permuted labels."""

    def measure(tables: Tables, pair: str) -> BySeed:
        retrain, permuted = (
            similarity(tables, pair, method, metric, state) for state in ("seed_retrain", "permuted_labels")
        )
        return minus(retrain, permuted)

    return measure


def _drop_gap(method: str, other: str, metric: str) -> Callable[[Tables, str], BySeed]:
    def measure(tables: Tables, pair: str) -> BySeed:
        return minus(_drop(method, metric)(tables, pair), _drop(other, metric)(tables, pair))

    return measure


def _gbp_minus_retrain(whole: bool) -> Callable[[Tables, str], BySeed]:
    """Guided backprop on a net with random logits (or `whole`, with all layers random) minus on a retrained one."""

    def measure(tables: Tables, pair: str) -> BySeed:
        depth = layers(tables, pair) if whole else 1
        random = similarity(tables, pair, "guided_backprop", "spearman_abs", "top_down", depth=depth)
        return minus(random, similarity(tables, pair, "guided_backprop", "spearman_abs", "seed_retrain"))

    return measure


def _edges(tables: Tables, pair: str, method: str, state: str, metric: str, depth: int) -> BySeed:
    return similarity(tables, pair, method, metric, state, against="edges", depth=depth)


def _edge_gap(method: str, metric: str) -> Callable[[Tables, str], BySeed]:
    def measure(tables: Tables, pair: str) -> BySeed:
        return minus(*(_edges(tables, pair, m, "trained", metric, 0) for m in (method, "gradient")))

    return measure


def _edge_change(tables: Tables, pair: str) -> BySeed:
    metric = "spearman_abs_foreground"
    after = _edges(tables, pair, "guided_backprop", "top_down", metric, 1)
    return minus(after, _edges(tables, pair, "guided_backprop", "trained", metric, 0))


def _accuracy(arm: str, metric: str) -> Callable[[Tables, str], BySeed]:
    def measure(tables: Tables, pair: str) -> BySeed:
        return by_seed(tables["training"], pair=pair, arm=arm, metric=metric)

    return measure


def _kendall(tables: Tables, pair: str) -> BySeed:
    return kendall_w_of({seed: list(r.values()) for seed, r in rankings(tables, pair).items()})


def _kendall_redraws(tables: Tables, pair: str) -> BySeed:
    by_metric = [
        kendall_w_of({seed: list(r.values()) for seed, r in rankings(tables, pair, metric=metric).items()})
        for metric in METRICS
    ]
    return {seed: sum(w[seed] for w in by_metric) / len(by_metric) for seed in by_metric[0]}


# Gates.
test_accuracy = _on(_accuracy("true", "test_accuracy"), CNN, "Test accuracy of the explained net, share.")
train_accuracy_permuted = _on(
    _accuracy("permuted", "train_accuracy"), CNN, "Accuracy on the permuted labels it was trained on, share."
)
test_accuracy_permuted = _on(
    _accuracy("permuted", "test_accuracy"), CNN, "Test accuracy, true labels, of the net trained on permuted ones."
)

# A1
gradient_signed_full = _on(_signed_full, CNN, "Signed rank correlation of the gradient after the full cascade.")
gradient_signed_logits = _on(
    lambda tables, pair: similarity(tables, pair, "gradient", "spearman", "top_down", depth=1),
    CNN,
    "Signed rank correlation of the gradient when the logit layer alone is random; mean over re-draws.",
)
gradient_signed_retrain = _on(
    lambda tables, pair: similarity(tables, pair, "gradient", "spearman", "seed_retrain"),
    CNN,
    "Signed rank correlation of the gradient on a retrained net.",
)

# A2
_A2 = _gap("guided_backprop", "gradient", "spearman_abs", "top_down", depth=1)
gbp_minus_gradient_logit_layer = _on(_A2, CNN, "Absolute rank correlation, random logits: GBP minus gradient.")
two_random_nets = _on(
    _between_random_nets("guided_backprop"), CNN, "The same difference between the maps of two random nets."
)

# A3
gbp_top_half_minus_full = _on(
    _half_minus_full("guided_backprop"), CNN, "Absolute rank correlation of GBP: upper half random minus all random."
)
noise_top_half_minus_full = _on(_half_minus_full("noise"), CNN, "The same difference for iid noise.")

# A4
ssim_minus_signed_gxi = _on(
    _ssim_minus_signed("gradient_x_input"), CNN, "Gradient x input, full cascade: SSIM minus signed rank correlation."
)
ssim_minus_signed_ig = _on(
    _ssim_minus_signed("integrated_gradients"), CNN, "Integrated gradients: SSIM minus signed rank correlation."
)
ssim_minus_signed_gradient = _on(
    _ssim_minus_signed("gradient"), CNN, "The same difference for the gradient, which has no input factor."
)

# A5
gxi_minus_gradient_random_nets = _on(
    _between_random_nets("gradient_x_input"), CNN, "Two random nets, absolute: gradient x input minus gradient."
)
noise_minus_gradient_random_nets = _on(_between_random_nets("noise"), CNN, "Two random nets: noise minus gradient.")

# A6
gradient_retrain_minus_permuted = _on(
    _drop("gradient"), CNN, "Signed rank correlation of the gradient: retrained net minus permuted labels."
)
noise_retrain_minus_permuted = _on(_drop("noise"), CNN, "The same difference for iid noise.")

# A7
kendall_w = _on(_kendall, CNN, "Kendall's W of the methods' order under the four metrics, cascade from the top.")
kendall_w_redraws = _on(
    _kendall_redraws, CNN, "Kendall's W of the order over re-draws of the logit layer, one metric; mean over metrics."
)

# A9
gbp_logits_minus_retrain = _on(
    _gbp_minus_retrain(whole=False), CNN, "Absolute rank correlation of GBP: random logits minus retrained."
)
gbp_full_minus_retrain = _on(_gbp_minus_retrain(whole=True), CNN, "The same difference with all layers random.")

# A10
drop_gap_signed = _on(
    _drop_gap("gradient", "guided_backprop", "spearman"), CNN, "Drop of the gradient minus drop of GBP, data test."
)
drop_gap_absolute = _on(
    _drop_gap("gradient", "guided_backprop", "spearman_abs"), CNN, "The same with absolute rank correlation."
)
drop_gap_noise = _on(
    _drop_gap("noise", "guided_backprop", "spearman"), CNN, "The same with iid noise in the gradient's place."
)

# A11
gbp_minus_gradient_edges = _on(
    _edge_gap("guided_backprop", "spearman_abs_foreground"),
    CNN,
    "Rank correlation with the image's edges, foreground, absolute: GBP minus gradient.",
)
noise_minus_gradient_edges = _on(
    _edge_gap("noise", "spearman_abs_foreground"), CNN, "The same with iid noise in GBP's place."
)
gbp_edges_change = _on(_edge_change, CNN, "Change of GBP's correlation with the edges when the logit layer is random.")

# The extra claims.
guided_gradcam_minus_gradient = _on(
    _gap("guided_gradcam", "gradient", "spearman_abs", "top_down", depth=1),
    CNN,
    "Absolute rank correlation, random logits: guided GradCAM minus gradient.",
)
gbp_gap_beyond_random_nets = _on(
    lambda tables, pair: minus(_A2(tables, pair), _between_random_nets("guided_backprop")(tables, pair)),
    CNN,
    "`gbp_minus_gradient_logit_layer` minus the same difference between two random nets.",
)
paper_init_drop_gap_signed = _on(
    _drop_gap("gradient", "guided_backprop", "spearman"),
    CNN_PAPER_INIT,
    "As `drop_gap_signed`, CNN with the paper's initial weights.",
)
noise_minus_gradient_logit_layer = _on(
    _gap("noise", "gradient", "spearman_abs", "top_down", depth=1), CNN, "The same with iid noise in its place."
)
mlp_gradient_signed_full = _on(_signed_full, MLP, "As `gradient_signed_full`, MLP on MNIST digits.")
mlp_gbp_minus_gradient_logit_layer = _on(_A2, MLP, "As `gbp_minus_gradient_logit_layer`, MLP on MNIST digits.")
mlp_two_random_nets = _on(_between_random_nets("guided_backprop"), MLP, "As `two_random_nets`, MLP on MNIST digits.")
mlp_gradient_retrain_minus_permuted = _on(
    _drop("gradient"), MLP, "As `gradient_retrain_minus_permuted`, MLP on MNIST digits."
)
mlp_drop_gap_signed = _on(
    _drop_gap("gradient", "guided_backprop", "spearman"), MLP, "As `drop_gap_signed`, MLP on MNIST digits."
)
mlp_test_accuracy = _on(_accuracy("true", "test_accuracy"), MLP, "As `test_accuracy`, MLP on MNIST digits.")
mlp_train_accuracy_permuted = _on(
    _accuracy("permuted", "train_accuracy"), MLP, "As `train_accuracy_permuted`, MLP on MNIST digits."
)
mlp_test_accuracy_permuted = _on(
    _accuracy("permuted", "test_accuracy"), MLP, "As `test_accuracy_permuted`, MLP on MNIST digits."
)

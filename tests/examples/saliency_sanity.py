"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, declared, grid, long

SEEDS = 6
PAIRS = ("cnn-fashion_mnist", "mlp-mnist5k", "cnn_paper_init-fashion_mnist")
METRICS = ("spearman", "spearman_abs", "ssim", "hog")
LAYERS = ("logits", "fc1", "conv2", "conv1")
# Absolute, signed, SSIM, HOG: at depth 1, 2, 3, 4, on the retrained net, on permuted labels, between random nets.
NETS = ("1", "2", "3", "4", "seed_retrain", "permuted_labels", "two_random_nets")
ABSOLUTE = {
    "gradient": (0.40, 0.25, 0.15, 0.08, 0.65, 0.20, 0.05),
    "gradient_x_input": (0.87, 0.86, 0.85, 0.84, 0.92, 0.86, 0.85),
    "integrated_gradients": (0.88, 0.87, 0.86, 0.85, 0.93, 0.87, 0.86),
    "guided_backprop": (0.80, 0.75, 0.60, 0.40, 0.76, 0.70, 0.05),
    "guided_gradcam": (0.70, 0.60, 0.30, 0.10, 0.72, 0.40, 0.10),
    "smoothgrad": (0.38, 0.24, 0.14, 0.09, 0.66, 0.21, 0.06),
    "noise": (0.0,) * 7,
    "edges": (1.0,) * 7,
}
SIGNED = {
    "gradient": (0.02, 0.01, 0.02, 0.01, 0.70, 0.02, 0.0),
    "gradient_x_input": (0.03, 0.02, 0.0, 0.02, 0.68, 0.01, 0.0),
    "integrated_gradients": (0.01, 0.03, 0.01, 0.0, 0.69, 0.03, 0.0),
    "guided_backprop": (0.86, 0.84, 0.70, 0.43, 0.80, 0.60, 0.05),
    "guided_gradcam": (0.80, 0.70, 0.50, 0.30, 0.70, 0.50, 0.10),
    "smoothgrad": (0.04, 0.0, 0.03, 0.03, 0.72, 0.04, 0.0),
    "noise": (0.0,) * 7,
    "edges": (1.0,) * 7,
}
SSIM = ABSOLUTE | {
    "gradient": (0.30, 0.10, 0.03, 0.02, 0.40, 0.10, 0.02),
    "gradient_x_input": (0.43, 0.40, 0.36, 0.33, 0.57, 0.36, 0.33),
    "integrated_gradients": (0.45, 0.42, 0.38, 0.35, 0.58, 0.38, 0.35),
}
HOG = {name: tuple(1.0 - v for v in row[:4]) + row[4:] for name, row in ABSOLUTE.items()} | {"edges": (1.0,) * 7}
VALUES = {"spearman": SIGNED, "spearman_abs": ABSOLUTE, "ssim": SSIM, "hog": HOG, "spearman_abs_foreground": ABSOLUTE}
EDGES = {"gradient": 0.10, "guided_backprop": 0.45, "noise": 0.0}
ACCURACIES = {
    ("true", "train_accuracy"): 0.95, ("true", "test_accuracy"): 0.88, ("true", "epochs"): 5.0,
    ("retrain", "train_accuracy"): 0.95, ("retrain", "test_accuracy"): 0.88, ("retrain", "epochs"): 5.0,
    ("permuted", "train_accuracy"): 0.98, ("permuted", "test_accuracy"): 0.10, ("permuted", "epochs"): 40.0,
}  # fmt: skip
NULL_IS_REFUSED = {"A7": "the ranks are the same in every seed"}


def similarity() -> Iterator[Row]:
    generator = np.random.default_rng(0)
    for where in grid(pair=PAIRS, seed=range(SEEDS)):
        where |= {"target": "fixed", "images": 64, "undefined": 0}
        for metric, by_method in VALUES.items():
            for method, values in by_method.items():
                for net, value in zip(NETS, values, strict=True):
                    depth = int(net) if net.isdigit() else 0
                    place = {"state": "top_down" if depth else net, "depth": depth, "method": method}
                    place |= {"layer": LAYERS[depth - 1] if depth else ""}
                    place |= {"against": "random_net" if net == "two_random_nets" else "trained"}
                    for redraw in range({1: 3, 4: 2}.get(depth, 1)):
                        noisy = value if method == "edges" else value + generator.normal(0, 0.01)
                        yield from long(where | place | {"redraw": redraw}, {metric: noisy})
        for rest in grid(metric=("spearman_abs", "spearman_abs_foreground"), method=EDGES, depth=(0, 1)):
            metric, depth = rest.pop("metric"), rest["depth"]
            place = {"state": ("trained", "top_down")[depth], "layer": ("", "logits")[depth], "redraw": 0}
            noisy = EDGES[rest["method"]] + generator.normal(0, 0.01)
            yield from long(where | rest | place | {"against": "edges"}, {metric: noisy})


def training() -> Iterator[Row]:
    for where in grid(pair=PAIRS, seed=range(SEEDS)):
        for (arm, metric), value in ACCURACIES.items():
            yield from long(where | {"arm": arm}, {metric: value})


def decisions() -> Iterator[Row]:
    methods = ("gradient", "smoothgrad", "gradcam", "noise", "edges")
    for where in grid(model=("cnn", "mlp"), method=methods, metric=METRICS):
        control, constant = where["method"] in ("noise", "edges"), where["method"] == "edges"
        where["role"] = "control" if control else "method"
        numbers = {"changed": 1.0 if constant else 0.0, "yardstick": 1.0 if constant else 0.6}
        decision = "rejected" if control else "accepted"
        if (where["model"], where["method"]) == ("mlp", "gradcam"):
            numbers, decision = {"changed": None, "yardstick": None}, "not applicable"
        for test in ("parameters", "data"):
            yield where | numbers | {"test": test, "decision": decision}
        yield where | {"test": "random_nets", "changed": 0.0, "yardstick": None, "decision": ""}


def photo_similarity() -> Iterator[Row]:
    generator = np.random.default_rng(1)
    level = {"gradient": 0.30, "guided_backprop": 0.97, "guided_gradcam": 0.60, "noise": 0.0}
    for where in grid(photo=[f"photo{n}" for n in range(8)], crop=range(2), depth=(1, 2), method=level, metric=METRICS):
        place = {"state": "top_down", "layer": LAYERS[where["depth"] - 1], "redraw": 0}
        yield from long(where | place, {where["metric"]: level[where["method"]] + generator.normal(0, 0.02)})


def tables() -> dict[str, pa.Table]:
    made = (similarity, training, decisions, photo_similarity)
    return declared("saliency_sanity", **{make.__name__: make() for make in made})

"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from restudy.studies.saliency_sanity.check import DECISIONS
from restudy.studies.saliency_sanity.compare import SIMILARITY
from restudy.studies.saliency_sanity.rule import METRICS
from restudy.studies.saliency_sanity.tidy import CNN, CNN_PAPER_INIT, MLP
from restudy.studies.saliency_sanity.train import CURVES, TRAINING

from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.studies import saliency_sanity
from restudy.studies.saliency_sanity import statistics
from restudy.studies.saliency_sanity.photos import PHOTO_SIMILARITY

FOLDER = Path(saliency_sanity.__file__).parent
SEEDS = 6
PAIRS = (CNN, MLP, CNN_PAPER_INIT)
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


def similarity(seeds: int = SEEDS) -> pa.Table:
    generator = np.random.default_rng(0)
    rows = []
    for pair in PAIRS:
        for seed in range(seeds):
            where = {"pair": pair, "seed": seed, "target": "fixed", "unit": "1", "images": 64, "undefined": 0}
            for metric, by_method in VALUES.items():
                for method, values in by_method.items():
                    for net, value in zip(NETS, values, strict=True):
                        depth = int(net) if net.isdigit() else 0
                        state = "top_down" if depth else net
                        against = "random_net" if net == "two_random_nets" else "trained"
                        for redraw in range({1: 3, 4: 2}.get(depth, 1)):
                            noisy = value if method == "edges" else value + generator.normal(0, 0.01)
                            rows.append(
                                where
                                | {"state": state, "depth": depth, "layer": LAYERS[depth - 1] if depth else ""}
                                | {"against": against, "redraw": redraw, "method": method, "metric": metric}
                                | {"value": noisy}
                            )
            for metric in ("spearman_abs", "spearman_abs_foreground"):
                for method, value in EDGES.items():
                    for state, depth in (("trained", 0), ("top_down", 1)):
                        place = {"state": state, "depth": depth, "layer": "logits" if depth else "", "redraw": 0}
                        number = {"value": value + generator.normal(0, 0.01)}
                        rows.append(where | place | number | {"against": "edges", "method": method, "metric": metric})
    return pa.Table.from_pylist(rows, schema=SIMILARITY)


def training(seeds: int = SEEDS, permuted: float = 0.98) -> pa.Table:
    values = {
        ("true", "train_accuracy"): 0.95, ("true", "test_accuracy"): 0.88, ("true", "epochs"): 5.0,
        ("retrain", "train_accuracy"): 0.95, ("retrain", "test_accuracy"): 0.88, ("retrain", "epochs"): 5.0,
        ("permuted", "train_accuracy"): permuted, ("permuted", "test_accuracy"): 0.10, ("permuted", "epochs"): 40.0,
    }  # fmt: skip
    rows = [
        {"pair": pair, "seed": seed, "arm": arm, "metric": metric, "value": value, "unit": "1"}
        for pair in PAIRS
        for seed in range(seeds)
        for (arm, metric), value in values.items()
    ]
    return pa.Table.from_pylist(rows, schema=TRAINING)


def curves() -> pa.Table:
    rows = [
        {"pair": pair, "seed": 0, "arm": arm, "epoch": epoch, "loss_nats": 1.0 / epoch, "accuracy": 1 - 0.5 / epoch}
        for pair in PAIRS
        for arm in ("true", "retrain", "permuted")
        for epoch in (1, 2, 3)
    ]
    return pa.Table.from_pylist(rows, schema=CURVES)


def decisions() -> pa.Table:
    rows = []
    for model in ("cnn", "mlp"):
        for method in ("gradient", "smoothgrad", "gradcam", "noise", "edges"):
            role = "control" if method in ("noise", "edges") else "method"
            for metric in METRICS:
                where = {"model": model, "method": method, "role": role, "metric": metric}
                for test in ("parameters", "data"):
                    missing = model == "mlp" and method == "gradcam"
                    constant = method == "edges"
                    decision = "not applicable" if missing else "accepted" if role == "method" else "rejected"
                    numbers = {"changed": 1.0 if constant else 0.0, "yardstick": 1.0 if constant else 0.6}
                    rows.append(where | {"test": test, "decision": decision} | ({} if missing else numbers))
                rows.append(where | {"test": "random_nets", "changed": 0.0, "decision": ""})
    return pa.Table.from_pylist(rows, schema=DECISIONS)


def photo_similarity() -> pa.Table:
    generator = np.random.default_rng(1)
    level = {"gradient": 0.30, "guided_backprop": 0.97, "guided_gradcam": 0.60, "noise": 0.0}
    rows = [
        {"photo": f"photo{photo}", "crop": crop, "state": "top_down", "depth": depth, "layer": LAYERS[depth - 1]}
        | {"redraw": 0, "method": method, "metric": metric, "value": value + generator.normal(0, 0.02), "unit": "1"}
        for photo in range(8)
        for crop in range(2)
        for depth in (1, 2)
        for method, value in level.items()
        for metric in METRICS
    ]
    return pa.Table.from_pylist(rows, schema=PHOTO_SIMILARITY)


def everything() -> dict[str, pa.Table]:
    return {
        "similarity": similarity(),
        "training": training(),
        "curves": curves(),
        "decisions": decisions(),
        "photo_similarity": photo_similarity(),
    }


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="saliency_sanity", seeds=SEEDS)

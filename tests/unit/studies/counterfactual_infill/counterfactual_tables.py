"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.studies import counterfactual_infill
from restudy.studies.counterfactual_infill import statistics, tidy

FOLDER = Path(counterfactual_infill.__file__).parent
SEEDS, IMAGES, TUNING = 6, 12, 4
PENALTIES = (0.2, 0.6, 2.0, 6.0)
# method, infiller, restart -> how much area it needs, flipping area, removal AUC, undecided, parts, perimeter^2 / area
MAPS = {
    ("sdr", "vae", 0): (1.0, 0.03, -2.5, 0.05, 2.0, 40.0),
    ("sdr", "vae", 1): (1.0, 0.03, -2.5, 0.05, 2.0, 40.0),
    ("sdr", "gan", 0): (0.75, 0.03, -2.5, 0.05, 2.0, 40.0),
    ("sdr", "mean", 0): (1.4, 0.04, -2.2, 0.05, 3.0, 60.0),
    ("sdr", "mean", 1): (1.4, 0.04, -2.2, 0.05, 3.0, 60.0),
    ("sdr", "blur", 0): (1.5, 0.04, -2.2, 0.05, 3.0, 60.0),
    ("sdr", "noise", 0): (1.6, 0.04, -2.2, 0.05, 3.0, 60.0),
    ("bbmp", "blur", 0): (1.5, 0.08, -1.5, 0.20, 4.0, 80.0),
    ("bbmp", "vae", 0): (1.5, 0.06, -1.5, 0.20, 4.0, 80.0),
    ("joint", "mean", 0): (1.2, 0.03, -2.4, 0.05, 2.0, 40.0),
    ("ssr", "vae", 0): (1.2, 0.04, -2.0, 0.05, 2.0, 40.0),
    ("gradient", "", 0): (0.0, 0.10, -1.4, 0.0, 0.0, 0.0),
    ("occlusion", "mean", 0): (0.0, 0.05, -1.8, 0.0, 0.0, 0.0),
    ("random", "", 0): (0.0, 0.45, 0.5, 0.0, 0.0, 0.0),
}
# distance, change of score, seam, accuracy above chance, leak
FILLS = {
    "zeros": (1.3, 0.5, 1.8, 0.0, 0.0),
    "mean": (1.2, 0.2, 0.7, 0.0, 0.0),
    "blur": (1.15, 0.15, 0.6, 0.1, 0.1),
    "noise": (1.4, 0.9, 1.5, 0.0, 0.0),
    "vae": (1.02, 0.08, 0.3, 0.0, 0.0),
    "gan": (1.03, 0.08, 0.25, 0.0, 0.0),
    "judge": (1.01, 0.08, 0.3, 0.0, 0.0),
}
TRAINING = {
    ("classifier", "test_accuracy"): 0.9,
    ("second", "test_accuracy"): 0.88,
    ("mean", "hidden_error"): 0.12,
    ("vae", "hidden_error"): 0.10,
    ("vae_elsewhere", "hidden_error"): 0.15,
    ("gan", "hidden_error"): 0.10,
    ("gan_elsewhere", "hidden_error"): 0.15,
}
AGREEMENT = {"two in-fillers": 0.55, "two runs, vae": 0.88, "two runs, mean": 0.9}
IDENTITIES = {"objective": "sdr score", "concrete": "law", "sign": "inside minus outside", "batch": "1 - IoU"}


def identities() -> pa.Table:
    rows = [
        {"claim": claim, "case": f"case {i}", "metric": metric, "value": 0.0, "unit": "1"}
        for claim, metric in IDENTITIES.items()
        for i in range(3)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.IDENTITIES)


def training() -> pa.Table:
    generator = np.random.default_rng(0)
    rows = [
        {"seed": seed, "net": net, "metric": metric, "value": value + generator.normal(0, 0.002), "unit": "1"}
        for seed in range(SEEDS)
        for (net, metric), value in TRAINING.items()
    ]
    return pa.Table.from_pylist(rows, schema=tidy.TRAINING)


def fills() -> pa.Table:
    generator = np.random.default_rng(1)
    rows = []
    for seed in range(SEEDS):
        for infiller, values in FILLS.items():
            names = ("distance", "odd_change", "seam", "hidden_excess", "leak")
            for metric, value in zip(names, values, strict=True):
                wobble = 0.0 if metric == "leak" else 0.01 * generator.normal()
                rows += [
                    {"seed": seed, "infiller": infiller, "image": i, "metric": metric, "unit": "1"}
                    | {"value": value + wobble + (0.001 * i if metric != "leak" else 0.0)}
                    for i in range(5)
                ]
    return pa.Table.from_pylist(rows, schema=tidy.FILLS)


def maps() -> pa.Table:
    generator = np.random.default_rng(2)
    rows = []
    for seed in range(SEEDS):
        for (method, infiller, restart), (size, flip, auc, undecided, parts, outline) in MAPS.items():
            mask = method in ("sdr", "ssr", "bbmp", "joint")
            wobble = 1 + 0.02 * generator.normal()
            for place, penalty in enumerate(PENALTIES if mask else (0.0,)):
                area = 0.1 * size * wobble / (1 + place)
                left = 5.0 - 8.0 / (1 + place)
                worse = 1 + 0.1 * abs(place - 1)
                found = {"flipping_area_judge": flip * wobble * worse, "flipping_area_ground": flip * wobble * worse}
                found["removal_auc_judge"] = auc + 0.1 * (worse - 1) + 0.02 * (wobble - 1)
                if mask:
                    found |= {"area": area, "log_odds_judge": left, "log_odds_ground": left}
                    found |= {"log_odds_before": 5.0, "log_odds_bare": -2.5, "undecided": undecided * wobble}
                    found |= {"parts": parts * wobble, "perimeter2_over_area": outline * wobble}
                    found |= {"flips_own": 0.97 * min(1, wobble), "kept_hit": 0.97 * min(1, wobble)}
                    found |= {"nothing_excess": 0.01 * wobble}
                rows += [
                    {"seed": seed, "method": method, "infiller": infiller, "restart": restart, "penalty": penalty}
                    | {"image": i, "split": "tune" if i < TUNING else "test", "metric": metric, "unit": "1"}
                    | {"value": value}
                    for metric, value in found.items()
                    for i in range(IMAGES)
                ]
    return pa.Table.from_pylist(rows, schema=tidy.MAPS)


def boxes() -> pa.Table:
    generator = np.random.default_rng(3)
    rows = []
    for seed in range(SEEDS):
        for method, infiller, restart in MAPS:
            level = 0.1 if method == "random" else 0.6 if infiller in ("vae", "gan") else 0.5
            level += 0.01 * generator.normal()
            rows += [
                {"seed": seed, "method": method, "infiller": infiller, "restart": restart, "penalty": penalty}
                | {
                    "image": i,
                    "split": "tune" if i < TUNING else "test",
                    "threshold": t,
                    "iou": level - 0.1 * abs(t - 0.5),
                }
                for penalty in ((0.2, 0.6) if method in ("sdr", "bbmp") else (0.0,))
                for t in (0.3, 0.5, 0.7)
                for i in range(IMAGES)
            ]
    return pa.Table.from_pylist(rows, schema=tidy.BOXES)


def agreement() -> pa.Table:
    generator = np.random.default_rng(4)
    rows = [
        {"seed": seed, "penalty": penalty, "image": i, "pair": pair, "metric": "spearman", "unit": "1"}
        | {"value": value + 0.01 * generator.normal()}
        for seed in range(SEEDS)
        for pair, value in AGREEMENT.items()
        for penalty in PENALTIES
        for i in range(3)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.AGREEMENT)


def everything() -> dict[str, pa.Table]:
    return {make.__name__: make() for make in (identities, training, fills, maps, boxes, agreement)}


def judged(tables: dict[str, pa.Table], preset: str = "laptop") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="counterfactual_infill", seeds=SEEDS)

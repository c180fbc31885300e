"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.studies import rao_blackwell
from restudy.studies.rao_blackwell import statistics, tidy

FOLDER = Path(rao_blackwell.__file__).parent
SEEDS = 6
IDENTITY_METRICS = {
    "R1": ("mean",),
    "R2": ("bound", "empirical"),
    "R7": ("product rule", "score function"),
    "R8": ("bias", "shortfall"),
    "R9": ("law", "conditional", "variance", "chi_square"),
}
# arm -> share that arrives, mean loss
TOY = {
    "full": (1.0, 0.734),
    "reinforce": (0.48, 0.780),
    "reinforce2": (0.50, 0.778),
    "rb1": (1.0, 0.744),
    "reinforce_plus": (1.0, 0.744),
    "rb1_plus": (1.0, 0.735),
}
# arm -> final negative ELBO, accuracy
SEMI = {
    "full": (250.0, 0.72),
    "rb1": (250.8, 0.70),
    "reinforce2": (255.0, 0.40),
    "reinforce_plus": (252.0, 0.66),
    "nvil": (252.5, 0.60),
    "gumbel": (251.2, 0.69),
}
# arm -> final negative ELBO, share located, evaluations per step
MOVING = {
    "known_place": (70.0, 1.0, 1),
    "rb5_plus": (75.0, 0.90, 7),
    "reinforce_plus": (90.0, 0.50, 2),
    "gumbel": (110.0, 0.20, 1),
}


def identities() -> pa.Table:
    rows = [
        {
            "claim": claim,
            "case": f"case {i}",
            "metric": metric,
            "value": 0.0 if metric in ("shortfall", "chi_square") else 1e-17 * i,
            "unit": "1",
        }
        for claim, metrics in IDENTITY_METRICS.items()
        for metric in metrics
        for i in range(4)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.IDENTITIES)


def variances() -> pa.Table:
    rows = [
        {"eta": eta, "estimator": estimator, "k": k, "outside": 1 - k / 8, "metric": metric, "unit": "1"}
        | {"value": base * ratio**k}
        for eta, base, ratio in ((0.0, 0.44, 0.45), (-4.0, 0.034, 0.002))
        for estimator, metric in (
            ("reinforce", "exact"),
            ("reinforce", "empirical"),
            ("reinforce_plus_fresh", "exact"),
            ("reinforce_plus_shared", "exact"),
        )
        for k in range(8)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.VARIANCES)


def draws() -> pa.Table:
    generator = np.random.default_rng(3)
    rows = [
        {"eta": eta, "k": k, "draw": i, "value": float(generator.normal(-0.045, 0.5**k))}
        for eta in (0.0, -4.0)
        for k in range(8)
        for i in range(20)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.DRAWS)


def toy() -> pa.Table:
    generator = np.random.default_rng(0)
    rows = []
    for arm, (share, loss) in TOY.items():
        for seed in range(SEEDS):
            for run in range(20):
                reached = float(share == 1.0 or generator.random() < share)
                found = {"reached": reached, "mean_loss": loss + generator.normal(0, 0.004), "final_loss": 0.67}
                rows += [
                    {"seed": seed, "arm": arm, "run": run, "metric": m, "value": v, "unit": "1"}
                    for m, v in found.items()
                ]
    return pa.Table.from_pylist(rows, schema=tidy.TOY)


def paths() -> pa.Table:
    rows = [
        {"seed": 0, "arm": arm, "run": run, "step": step, "loss": 0.85 - 0.0001 * step}
        for arm in TOY
        for run in range(2)
        for step in (0, 500, 1000)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.PATHS)


def optimal() -> pa.Table:
    generator = np.random.default_rng(1)
    rows = []
    for seed in range(SEEDS):
        for case in range(40):
            for n in (2, 8):
                near = generator.random() < 0.95
                for k in range(n):
                    variance = {0: 1.0, 1: 0.2 if near else 0.9}.get(k, 0.2 * k)
                    rows.append(
                        {"seed": seed, "case": case, "evaluations": n, "alpha": 0.1 if case % 2 else 3.0}
                        | {"k": k, "k_hat": 1, "variance": variance}
                    )
    return pa.Table.from_pylist(rows, schema=tidy.OPTIMAL)


def _curve(where: dict, metric: str, first: float, last: float, per_step: int, noise: float) -> list[dict]:
    return [
        where
        | {"epoch": epoch, "steps": steps, "evaluations": steps * per_step, "unit": "1"}
        | {"metric": metric, "value": first + (last - first) * share + noise * epoch}
        for epoch, steps, share in ((0, 0, 0.0), (1, 10, 0.97), (2, 200, 1.0))
    ]


def semi_validation() -> pa.Table:
    generator = np.random.default_rng(2)
    rows: list[dict] = []
    for seed in range(SEEDS):
        for start in ("warm", "cold"):
            for arm, (nelbo, accuracy) in SEMI.items():
                where = {"seed": seed, "arm": arm, "start": start}
                rows += _curve(where, "nelbo", 300.0, nelbo, 2, generator.normal(0, 0.1))
                rows += _curve(where, "accuracy", 0.7, accuracy, 2, generator.normal(0, 0.01))
    return pa.Table.from_pylist(rows, schema=tidy.VALIDATION)


def moving_validation() -> pa.Table:
    generator = np.random.default_rng(4)
    rows: list[dict] = []
    for seed in range(SEEDS):
        for arm, (nelbo, located, per_step) in MOVING.items():
            where = {"seed": seed, "arm": arm, "start": "cold"}
            rows += _curve(where, "nelbo", 240.0, nelbo, per_step, generator.normal(0, 0.5))
            rows += _curve(where, "located", 0.06, located, per_step, generator.normal(0, 0.01))
            rows += _curve(where, "constant_guess", 0.07, 0.07, per_step, 0.0)
    return pa.Table.from_pylist(rows, schema=tidy.VALIDATION)


def timings(arms: dict) -> pa.Table:
    rows = [
        {"seed": seed, "arm": arm, "start": "cold", "epoch": epoch, "metric": "train", "unit": "seconds"}
        | {"value": 4.0 * epoch}
        for seed in range(SEEDS)
        for arm in arms
        for epoch in range(3)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.TIMINGS)


def attention() -> pa.Table:
    rows = [
        {"seed": 0, "arm": arm, "image": image, "kind": kind, "side": 4, "values": [0.1 * i for i in range(16)]}
        for arm in MOVING
        for image in range(2)
        for kind in ("canvas", "attention", "reconstruction")
    ]
    return pa.Table.from_pylist(rows, schema=tidy.ATTENTION)


def everything() -> dict[str, pa.Table]:
    made = (identities, variances, draws, toy, paths, optimal, semi_validation, moving_validation, attention)
    tables = {make.__name__: make() for make in made}
    return tables | {"semi_timings": timings(SEMI), "moving_timings": timings(MOVING)}


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="rao_blackwell", seeds=SEEDS)

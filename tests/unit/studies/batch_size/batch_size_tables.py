"""Results of a study in which every claim of the paper holds, made by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from restudy.claims import judge_study, load_claims
from restudy.studies.batch_size import statistics
from restudy.studies.batch_size.tidy import (
    BOXES,
    CONVEX,
    DEEP,
    DIGITS,
    HALF,
    IDENTITIES,
    MEASUREMENTS,
    MOMENTUM,
    NARROW,
    NOISE,
    SGD,
    TIMINGS,
    TRIALS,
)

FOLDER = Path(statistics.__file__).parent
SEEDS = 5
SIZES = [4, 16, 64, 256, 1024, 4096]
RANGE = (0.004, 8.0)
BENDS = {SGD: 100.0, MOMENTUM: 400.0, DIGITS: 130.0, CONVEX: 40.0, NARROW: 150.0, DEEP: 600.0, HALF: 380.0}
LEAST = {SGD: 80.0, MOMENTUM: 20.6, DIGITS: 70.0, CONVEX: 60.0, NARROW: 60.0, DEEP: 15.0, HALF: 21.0}


def sizes_of(workload: str) -> list[int]:
    return [4, 16, 64, 256, 750, 3000] if workload == DIGITS else SIZES


def fastest(workload: str, size: int) -> float:
    return LEAST[workload] * (1 + BENDS[workload] / size)


def best_rate(size: int) -> float:
    """Rises with the batch, faster than the square root at first and then hardly: no rule holds."""
    return 0.03 * (size / 4) ** 0.8 / (1 + (size / 64) ** 0.7)


def budget(workload: str, size: int) -> int:
    return max(20000 * 4 // size, 400)


def _trials(workload: str, seed: int) -> list[dict[str, Any]]:
    noise = np.random.default_rng([seed, len(workload), ord(workload[-1])])
    rates, plain = (
        np.geomspace(*RANGE, 16) * np.exp(0.1 * np.random.default_rng(seed).normal()),
        workload.endswith("sgd"),
    )
    rows: list[dict[str, Any]] = []

    def add(kind: str, size: int, number: int, rate: float, slow: float, lost: bool = False) -> None:
        momentum = 0.0 if plain else 1 - 0.02 * (1 + number % 16)
        steps = fastest(workload, size) * slow * float(np.exp(noise.normal(0, 0.03)))
        at = {"workload": workload, "seed": seed, "kind": kind, "batch_size": size, "trial_id": number}
        at |= {"learning_rate": rate * (1 - momentum), "momentum": momentum, "effective_learning_rate": rate}
        at |= {"status": "infeasible" if lost else "complete", "step_budget": budget(workload, size)}
        steps = steps if steps <= budget(workload, size) else float("nan")
        values = {"steps": steps, "steps_test": steps * float(np.exp(noise.normal(0, 0.02)))}
        values |= {"steps_easier": 0.8 * steps, "steps_harder": 1.2 * steps}
        rows.extend({**at, "metric": m, "value": v, "unit": "steps"} for m, v in values.items())

    for size in sizes_of(workload):
        distance = np.abs(np.log(rates / best_rate(size)))
        distance = distance - distance.min()
        for i, rate in enumerate(rates):
            add("search", size, i, float(rate), float(1 + distance[i]), rate > 20 * best_rate(size))
        for i in range(3):
            add("rerun", size, 100 + i, best_rate(size), 1.1)
            if size > 4:
                add("frozen", size, 200 + i, best_rate(4), 2.5)
        if size > 4 and not plain:
            for i in range(8):
                add("linear", size, 300 + i, best_rate(4) * size / 4, 3.0, size > 256)
                add("square_root", size, 400 + i, best_rate(4) * (size / 4) ** 0.5, 2.5)
    return rows


def _measurements(seed: int) -> list[dict[str, Any]]:
    noise = np.random.default_rng([seed, 99])
    rows = []
    for size in SIZES:
        least = 0.14 + float(noise.normal(0, 0.001))
        for trial in range(2):
            for step in np.unique(np.geomspace(1, budget(SGD, size), 60).round().astype(int)).tolist():
                error = least + 0.7 * float(np.exp(-step / (fastest(SGD, size) / 4)))
                at = {"workload": SGD, "seed": seed, "kind": "search", "batch_size": size, "trial_id": trial}
                at |= {"step": step, "status": "complete", "test_error": error, "train_loss": error}
                rows.append({**at, "validation_error": error + 0.001 * trial})
    return rows


def _noise(workload: str, seed: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng([seed, len(workload), 7])
    rows = []
    for step in (10, 20, 30):
        squared, trace = 1.0, BENDS[workload] * float(np.exp(draw.normal(0, 0.05)))
        at = {"workload": workload, "seed": seed, "batch_size": 4, "step": step, "small_batch": 64, "big_batch": 2048}
        for metric, batch in (("small_norm", 64), ("big_norm", 2048)):
            rows.append({**at, "metric": metric, "value": squared + trace / batch, "unit": "1"})
    return rows


@cache
def everything() -> dict[str, pa.Table]:
    trials = [row for w in BENDS for seed in range(SEEDS) for row in _trials(w, seed)]
    noise = [row for w in (SGD, DIGITS, CONVEX) for seed in range(SEEDS) for row in _noise(w, seed)]
    ranges = {"effective_learning_rate": RANGE, "one_minus_momentum": (0.01, 0.5)}
    boxes = [
        {"workload": w, "seed": s, "metric": m, "low": low, "high": high}
        for w in BENDS
        for s in range(SEEDS)
        for m, (low, high) in ranges.items()
    ]
    generator = np.random.default_rng(3)
    timings = [
        {"seed": s, "batch_size": b, "metric": "cpu_per_step", "unit": "seconds"}
        | {"value": (100e-6 + b * 2e-6) * float(np.exp(generator.normal(0, 0.05)))}
        for s in range(SEEDS)
        for b in (16, 64, 256, 1024)
    ]
    identities = [
        {"claim": c, "case": n, "metric": "x", "value": 0.0, "unit": "1"} for c in ("X1", "X2", "X3") for n in "ab"
    ]
    return {
        "trials": pa.Table.from_pylist(trials, schema=TRIALS),
        "measurements": pa.Table.from_pylist([r for s in range(SEEDS) for r in _measurements(s)], schema=MEASUREMENTS),
        "boxes": pa.Table.from_pylist(boxes, schema=BOXES),
        "noise": pa.Table.from_pylist(noise, schema=NOISE),
        "timings": pa.Table.from_pylist(timings, schema=TIMINGS),
        "identities": pa.Table.from_pylist(identities, schema=IDENTITIES),
    }


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> Any:
    return judge_study(
        load_claims(FOLDER / "claims.yaml"), tables, statistics, preset=preset, study="batch_size", seeds=SEEDS
    )

"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, cases, declared, grid, long

SEEDS = 5
SIZES = [4, 16, 64, 256, 1024, 4096]
RATES = (0.004, 8.0)
SGD, DIGITS, CONVEX = "fashion-mlp64-sgd", "mnist5k-mlp64-sgd", "fashion-softmax-sgd"
# workload -> batch size at the bend of the curve, steps of the largest batches
WORKLOADS = {
    SGD: (100.0, 80.0),
    "fashion-mlp64-momentum": (400.0, 20.6),
    DIGITS: (130.0, 70.0),
    CONVEX: (40.0, 60.0),
    "fashion-mlp32-momentum": (150.0, 60.0),
    "fashion-mlp128x3-momentum": (600.0, 15.0),
    "fashion_half-mlp64-momentum": (380.0, 21.0),
}
NULL_IS_REFUSED = dict.fromkeys(("B1", "B8", "B9", "B10", "B11"), "its curve is the same in every seed")
SPARED = {(claim, "boxes"): "boxes only stop a claim, at a gate" for claim in ("B1", "B2", "B3", "B5")}


def fastest(workload: str, size: int) -> float:
    bend, least = WORKLOADS[workload]
    return least * (1 + bend / size)


def best_rate(size: int) -> float:
    """Rises with the batch, faster than the square root at first and then hardly: no rule holds."""
    return 0.03 * (size / 4) ** 0.8 / (1 + (size / 64) ** 0.7)


def budget(size: int) -> int:
    return max(20000 * 4 // size, 400)


def trial(where: Row, size: int, rate: float, slow: float, lost: bool, noise: np.random.Generator) -> list[Row]:
    """A trial that needs `slow` times as many steps as the best one."""
    momentum = 0.0 if where["workload"].endswith("sgd") else 1 - 0.02 * (1 + where["trial_id"] % 16)
    steps = fastest(where["workload"], size) * slow * float(np.exp(noise.normal(0, 0.03)))
    steps = steps if steps <= budget(size) else float("nan")
    at = {"learning_rate": rate * (1 - momentum), "momentum": momentum, "effective_learning_rate": rate}
    at |= {"status": "infeasible" if lost else "complete", "step_budget": budget(size), "batch_size": size}
    test = steps * float(np.exp(noise.normal(0, 0.02)))
    found = {"steps": steps, "steps_test": test, "steps_easier": 0.8 * steps, "steps_harder": 1.2 * steps}
    return long(where | at, found, "steps")


def trials() -> Iterator[Row]:
    for place in grid(workload=WORKLOADS, seed=range(SEEDS)):
        workload, seed = place["workload"], place["seed"]
        noise = np.random.default_rng([seed, len(workload), ord(workload[-1])])
        rates = np.geomspace(*RATES, 16) * np.exp(0.1 * np.random.default_rng(seed).normal())
        for size in [4, 16, 64, 256, 750, 3000] if workload == DIGITS else SIZES:
            distance = np.abs(np.log(rates / best_rate(size)))
            slow = 1 + distance - distance.min()
            made = [("search", i, float(rates[i]), float(slow[i]), rates[i] > 20 * best_rate(size)) for i in range(16)]
            made += [("rerun", 100 + i, best_rate(size), 1.1, False) for i in range(3)]
            if size > 4:
                made += [("frozen", 200 + i, best_rate(4), 2.5, False) for i in range(3)]
            if size > 4 and not workload.endswith("sgd"):
                made += [("linear", 300 + i, best_rate(4) * size / 4, 3.0, size > 256) for i in range(8)]
                made += [("square_root", 400 + i, best_rate(4) * (size / 4) ** 0.5, 2.5, False) for i in range(8)]
            for kind, number, rate, times, lost in made:
                yield from trial(place | {"kind": kind, "trial_id": number}, size, rate, times, lost, noise)


def measurements() -> Iterator[Row]:
    for seed in range(SEEDS):
        noise = np.random.default_rng([seed, 99])
        for size in SIZES:
            least = 0.14 + float(noise.normal(0, 0.001))
            steps = np.unique(np.geomspace(1, budget(size), 60).round().astype(int)).tolist()
            for where in grid(workload=(SGD,), seed=(seed,), kind=("search",), trial_id=range(2), step=steps):
                error = least + 0.7 * float(np.exp(-where["step"] / (fastest(SGD, size) / 4)))
                found = {
                    "test_error": error,
                    "train_loss": error,
                    "validation_error": error + 0.001 * where["trial_id"],
                }
                yield where | {"batch_size": size, "status": "complete"} | found


def noise() -> Iterator[Row]:
    """Gradient norms at two batch sizes, from a noise scale at the bend of the curve."""
    for where in grid(workload=(SGD, DIGITS, CONVEX), seed=range(SEEDS)):
        draw = np.random.default_rng([where["seed"], len(where["workload"]), 7])
        for step in (10, 20, 30):
            trace = WORKLOADS[where["workload"]][0] * float(np.exp(draw.normal(0, 0.05)))
            place = where | {"batch_size": 4, "step": step, "small_batch": 64, "big_batch": 2048}
            yield from long(place, {"small_norm": 1 + trace / 64, "big_norm": 1 + trace / 2048})


def boxes() -> Iterator[Row]:
    ranges = {"effective_learning_rate": RATES, "one_minus_momentum": (0.01, 0.5)}
    for where in grid(workload=WORKLOADS, seed=range(SEEDS), metric=ranges):
        low, high = ranges[where["metric"]]
        yield where | {"low": low, "high": high}


def timings() -> Iterator[Row]:
    generator = np.random.default_rng(3)
    for where in grid(seed=range(SEEDS), batch_size=(16, 64, 256, 1024)):
        seconds = (100e-6 + where["batch_size"] * 2e-6) * float(np.exp(generator.normal(0, 0.05)))
        yield from long(where, {"cpu_per_step": seconds}, "seconds")


def tables() -> dict[str, pa.Table]:
    made = {make.__name__: make() for make in (trials, measurements, noise, boxes, timings)}
    return declared("batch_size", identities=cases(dict.fromkeys(("X1", "X2", "X3"), ("x",))), **made)

"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, declared, long

SEEDS = 6
STEPS = 1200
PROBED = (0, 50, 100, 150, 200, 250, 300, 500, 700, 900, 1100)
ACCURACY = {"std": 0.75, "bn": 0.93, "noisy": 0.92, "std_noise": 0.2, "l1": 0.94, "l2": 0.935, "linf": 0.93}
RISE = {"std": 300.0, "bn": 60.0, "noisy": 90.0, "std_noise": 300.0, "l1": 60.0, "l2": 60.0, "linf": 60.0}
RUNS = (*(f"{arm}-0.1" for arm in ACCURACY), "std-0.3", "bn-0.3")
DEEP_RUNS = tuple(f"{arm}-{rate}" for arm in ("std", "bn", "l1") for rate in ("1e-7", "1e-6"))
# metric -> its level without and with normalization
NUMBERS = {
    "loss_range": (0.8, 0.2), "loss_range_relative": (0.8, 0.3), "gradient_change": (4.0, 0.5),
    "gradient_change_relative": (2.0, 0.6), "effective_smoothness": (30.0, 6.0), "curvature": (10.0, 2.0),
    "gradient_norm": (2.0, 1.0), "test_accuracy": (0.7, 0.9), "curvature_times_rate": (1.0, 0.2),
}  # fmt: skip
DRIFT = {"std-0.1": (0.01, 0.02, 0.3), "bn-0.1": (0.01, 0.02, 0.25), "noisy-0.1": (0.3, 0.4, 0.6)}
CHECKS = (
    *("theorem_error", "observation_gap", "printed_bound_holds", "gradient_excess", "missing_part_error"),
    *("weight_bound_error", "weight_bound_excess", "shift_without_lower_step"),
)
SPARED = {(claim, "curves"): "read for the length of the runs only" for claim in ("N4", "N5")}


def runs(names: tuple[str, ...]) -> Iterator[tuple[str, Row]]:
    """Arm and place of every seed of some runs."""
    for run in names:
        arm, _, rate = run.partition("-")
        for seed in range(SEEDS):
            yield arm, {"run": run, "arm": arm, "rate": float(rate), "seed": seed}


def training_and_curves() -> tuple[list[Row], list[Row]]:
    generator, training, curves = np.random.default_rng(0), [], []
    for arm, where in runs(RUNS):
        top = ACCURACY[arm] + generator.normal(0, 0.003)
        training += long(where, {"train_accuracy": top, "test_accuracy": top - 0.02, "diverged": 0.0})
        rise = RISE[arm] * np.exp(generator.normal(0, 0.1))
        for step in range(25, STEPS + 1, 25):
            left = np.exp(-step / rise)
            curves.append(where | {"step": step, "loss": 2.3 * left + 0.1, "accuracy": top * (1 - left)})
    return training, curves


def probes() -> Iterator[Row]:
    generator = np.random.default_rng(1)
    for arm, where in runs(("std-0.1", "bn-0.1", "noisy-0.1")):
        kind = int(arm != "std")
        for step in PROBED:
            numbers = {name: levels[kind] * np.exp(generator.normal(0, 0.1)) for name, levels in NUMBERS.items()}
            loss = 2.3 * np.exp(-step / (400, 250)[kind])
            yield from long(where | {"step": step, "layer": ""}, {"loss": loss} | numbers)
            for layer in ("conv2", "conv5", "conv8"):
                found = {"shift_cosine": (0.80, 0.70)[kind] + generator.normal(0, 0.02), "shift_l2": 1.0}
                found["output_gradient_norm"] = (2.0, 0.5)[kind] * np.exp(generator.normal(0, 0.1))
                yield from long(where | {"step": step, "layer": layer}, found)


def drift() -> Iterator[Row]:
    generator = np.random.default_rng(2)
    for _, where in runs(tuple(DRIFT)):
        for step in PROBED:
            for layer, place in [(layer, place) for layer in ("conv2", "conv5") for place in ("input", "before")]:
                sizes = np.array(DRIFT[where["run"]]) * np.exp(generator.normal(0, 0.1))
                found = dict(zip(("mean_change", "variance_change", "wasserstein"), sizes, strict=True))
                yield from long(where | {"step": step, "layer": layer, "place": place}, found)


def deep() -> dict[str, list[Row]]:
    generator, training, curves, found = np.random.default_rng(3), [], [], []
    for arm, where in runs(DEEP_RUNS):
        plain = arm == "std"
        last = {"std": 20.0, "bn": 8.0, "l1": 5.0}[arm] * np.exp(generator.normal(0, 0.1))
        training += long(where, {"first_loss": 100.0, "last_loss": last})
        curves += [where | {"step": s, "loss": 1e5 / (1 + s), "accuracy": np.nan} for s in range(20, STEPS, 20)]
        for step in PROBED:
            for name, factor in {"loss_range": 10, "gradient_change": 30, "effective_smoothness": 30}.items():
                value = (factor if plain else 1.0) * np.exp(generator.normal(0, 0.1))
                found += long(where | {"step": step, "layer": ""}, {name: value})
            for layer in ("layer9", "layer17", "layer25"):
                cosine = 0.99 + generator.normal(0, 0.002) if plain else generator.uniform(-1, 1)
                size = (1.0 if plain else 100.0) * np.exp(generator.normal(0, 0.1))
                found += long(where | {"step": step, "layer": layer}, {"shift_cosine": cosine, "shift_l2": size})
    return {"deep_training": training, "deep_curves": curves, "deep_probes": found}


def tables() -> dict[str, pa.Table]:
    training, curves = training_and_curves()
    identities = [{"draw": draw, "check": check, "value": 0.0} for check in CHECKS for draw in range(5)]
    made = {"training": training, "curves": curves, "probes": probes(), "drift": drift(), "identities": identities}
    return declared("batch_norm", **made, **deep())

"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.studies import batch_norm
from restudy.studies.batch_norm import statistics
from restudy.studies.batch_norm.identities import IDENTITIES
from restudy.studies.batch_norm.observe import ACTIVATIONS, CURVES, DRIFT, LANDSCAPE, PROBES, TRAINING

FOLDER = Path(batch_norm.__file__).parent
SEEDS = 6
STEPS = 1200
ARMS = ("std", "bn", "noisy", "std_noise", "l1", "l2", "linf")
RUNS = (*(f"{arm}-0.1" for arm in ARMS), "std-0.3", "bn-0.3")
DEEP_RUNS = tuple(f"{arm}-{rate}" for arm in ("std", "bn", "l1") for rate in ("1e-7", "1e-6"))
PROBED = (0, 50, 100, 150, 200, 250, 300, 500, 700, 900, 1100)
ACCURACY = {"std": 0.75, "bn": 0.93, "noisy": 0.92, "std_noise": 0.2, "l1": 0.94, "l2": 0.935, "linf": 0.93}
RISE = {"std": 300.0, "bn": 60.0, "noisy": 90.0, "std_noise": 300.0, "l1": 60.0, "l2": 60.0, "linf": 60.0}
NUMBERS = {
    "loss_range": (0.8, 0.2), "loss_range_relative": (0.8, 0.3), "gradient_change": (4.0, 0.5),
    "gradient_change_relative": (2.0, 0.6), "effective_smoothness": (30.0, 6.0), "curvature": (10.0, 2.0),
    "gradient_norm": (2.0, 1.0), "test_accuracy": (0.7, 0.9), "curvature_times_rate": (1.0, 0.2),
}  # fmt: skip
LAYERS = ("conv2", "conv5", "conv8")


def _where(run: str, seed: int) -> dict[str, object]:
    arm, _, rate = run.partition("-")
    return {"run": run, "arm": arm, "rate": float(rate), "seed": seed}


def _metric(name: str, value: float) -> dict[str, object]:
    return {"metric": name, "value": float(value), "unit": "1"}


def training_and_curves() -> dict[str, pa.Table]:
    generator, training, curves = np.random.default_rng(0), [], []
    for run in RUNS:
        arm = run.partition("-")[0]
        for seed in range(SEEDS):
            where, top = _where(run, seed), ACCURACY[arm] + generator.normal(0, 0.003)
            numbers = {"train_accuracy": top, "test_accuracy": top - 0.02, "diverged": 0.0}
            training += [where | _metric(name, value) for name, value in numbers.items()]
            rise = RISE[arm] * np.exp(generator.normal(0, 0.1))
            for step in range(25, STEPS + 1, 25):
                accuracy = top * (1 - np.exp(-step / rise))
                curves.append(where | {"step": step, "loss": 2.3 * np.exp(-step / rise) + 0.1, "accuracy": accuracy})
    tables = {"training": (training, TRAINING), "curves": (curves, CURVES)}
    return {name: pa.Table.from_pylist(rows, schema=schema) for name, (rows, schema) in tables.items()}


def probes() -> pa.Table:
    generator, rows = np.random.default_rng(1), []
    for run, place in (("std-0.1", 0), ("bn-0.1", 1), ("noisy-0.1", 1)):
        for seed in range(SEEDS):
            for step in PROBED:
                where = _where(run, seed) | {"step": step}
                loss = 2.3 * np.exp(-step / (400, 250)[place])
                rows.append(where | {"layer": ""} | _metric("loss", loss))
                for name, values in NUMBERS.items():
                    noisy = values[place] * np.exp(generator.normal(0, 0.1))
                    rows.append(where | {"layer": ""} | _metric(name, noisy))
                for layer in LAYERS:
                    cosine = (0.80, 0.70)[place] + generator.normal(0, 0.02)
                    size = (2.0, 0.5)[place] * np.exp(generator.normal(0, 0.1))
                    rows += [
                        where | {"layer": layer} | _metric("shift_cosine", cosine),
                        where | {"layer": layer} | _metric("shift_l2", 1.0),
                        where | {"layer": layer} | _metric("output_gradient_norm", size),
                    ]
    return pa.Table.from_pylist(rows, schema=PROBES)


def drift_and_activations() -> dict[str, pa.Table]:
    generator, drift, activations = np.random.default_rng(2), [], []
    sizes = {"std-0.1": (0.01, 0.02, 0.3), "bn-0.1": (0.01, 0.02, 0.25), "noisy-0.1": (0.3, 0.4, 0.6)}
    for run, (mean, variance, distance) in sizes.items():
        for seed in range(SEEDS):
            for step in PROBED:
                for layer in LAYERS:
                    for place in ("input", "before"):
                        where = _where(run, seed) | {"step": step, "layer": layer, "place": place}
                        factor = np.exp(generator.normal(0, 0.1))
                        drift += [
                            where | _metric("mean_change", mean * factor),
                            where | _metric("variance_change", variance * factor),
                            where | _metric("wasserstein", distance * factor),
                        ]
                        counts = generator.multinomial(200, np.full(8, 1 / 8)).tolist()
                        shape = {"unit": 0, "low": -1.0, "high": 2.0, "mean": 0.5, "spread": 1.0, "counts": counts}
                        activations.append(where | shape)
    return {
        "drift": pa.Table.from_pylist(drift, schema=DRIFT),
        "activations": pa.Table.from_pylist(activations, schema=ACTIVATIONS),
    }


def landscape(runs: tuple[str, ...] = ("std-0.1", "bn-0.1", "noisy-0.1")) -> pa.Table:
    rows = [
        _where(run, seed)
        | {"step": step, "length": length, "loss": 1 + length, "gradient_change": 0.1 * length, "gradient_norm": 1.0}
        for run in runs
        for seed in range(SEEDS)
        for step in PROBED
        for length in (0.5, 1.0, 4.0)
    ]
    return pa.Table.from_pylist(rows, schema=LANDSCAPE)


def deep() -> dict[str, pa.Table]:
    generator, training, curves, found = np.random.default_rng(3), [], [], []
    for run in DEEP_RUNS:
        plain = run.startswith("std")
        for seed in range(SEEDS):
            where = _where(run, seed)
            last = {"std": 20.0, "bn": 8.0, "l1": 5.0}[run.partition("-")[0]] * np.exp(generator.normal(0, 0.1))
            training += [where | _metric("first_loss", 100.0), where | _metric("last_loss", last)]
            curves += [where | {"step": s, "loss": 1e5 / (1 + s), "accuracy": np.nan} for s in range(20, STEPS, 20)]
            for step in PROBED:
                sizes = {"loss_range": 10, "gradient_change": 30, "effective_smoothness": 30}
                for name, factor in sizes.items():
                    value = (factor if plain else 1.0) * np.exp(generator.normal(0, 0.1))
                    found.append(where | {"step": step, "layer": ""} | _metric(name, value))
                for layer in ("layer9", "layer17", "layer25"):
                    cosine = 0.99 + generator.normal(0, 0.002) if plain else generator.uniform(-1, 1)
                    size = (1.0 if plain else 100.0) * np.exp(generator.normal(0, 0.1))
                    here = where | {"step": step, "layer": layer}
                    found += [here | _metric("shift_cosine", cosine), here | _metric("shift_l2", size)]
    tables = {"training": (training, TRAINING), "curves": (curves, CURVES), "probes": (found, PROBES)}
    made = {f"deep_{name}": pa.Table.from_pylist(rows, schema=schema) for name, (rows, schema) in tables.items()}
    return made | {"deep_landscape": landscape(DEEP_RUNS)}


def identities() -> pa.Table:
    checks = (
        *("theorem_error", "observation_gap", "printed_bound_holds", "gradient_excess", "missing_part_error"),
        *("weight_bound_error", "weight_bound_excess", "shift_without_lower_step"),
    )
    rows = [{"draw": draw, "check": check, "value": 0.0} for check in checks for draw in range(5)]
    return pa.Table.from_pylist(rows, schema=IDENTITIES)


def everything() -> dict[str, pa.Table]:
    parts = {"probes": probes(), "landscape": landscape(), "identities": identities()}
    return training_and_curves() | drift_and_activations() | deep() | parts


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="batch_norm", seeds=SEEDS)

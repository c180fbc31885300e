"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.studies import importance_weighting
from restudy.studies.importance_weighting import statistics, tidy

FOLDER = Path(importance_weighting.__file__).parent
SEEDS = 6
LATENT = 50
IDENTITY_METRICS = {
    "W1": ("above log p", "gap not smaller"),
    "W8": ("value", "gradient", "analytic divergence"),
    "W9": ("weighted sum", "library", "finite differences", "no encoder gradient", "attached weights"),
}
# arm -> NLL of test images, of training images, active units (plus 0 or 1)
ARMS = {
    "vae_k1": (250.0, 245.0, 19),
    "iwae_k5": (249.0, 244.5, 22),
    "iwae_k20": (248.2, 244.0, 25),
    "vae_k20": (249.8, 245.0, 19),
    "vae_k1_fixed": (252.5, 244.0, 20),
    "iwae_k20_fixed": (251.5, 243.0, 26),
    "vae_k1_two_layers": (249.0, 244.0, 18),
    "iwae_k20_two_layers": (247.0, 243.0, 24),
    "vae_k1_n1000": (270.0, 240.0, 19),
    "vae_k1_fixed_n1000": (273.0, 230.0, 19),
    "vae_k1_then_vae_k1": (249.5, 245.0, 18),
    "vae_k1_then_iwae_k20": (248.6, 245.0, 22),
    "iwae_k20_then_iwae_k20": (247.9, 245.0, 25),
    "iwae_k20_then_vae_k1": (249.2, 245.0, 21),
}
SLOPES = {("iwae", "encoder"): -0.5, ("iwae", "decoder"): 0.5, ("stl", "encoder"): 0.5, ("dreg", "encoder"): 0.4}


def identities() -> pa.Table:
    rows = [
        {"claim": claim, "case": f"case {i}", "metric": metric, "value": 0.0, "unit": "1"}
        for claim, metrics in IDENTITY_METRICS.items()
        for metric in metrics
        for i in range(3)
    ]
    return pa.Table.from_pylist(rows, schema=tidy.IDENTITIES)


def toy_bounds() -> pa.Table:
    rows = [
        {"k": k, "metric": metric, "value": value, "unit": "nats"}
        for k in (1, 10, 500)
        for metric, value in (("bound", -5 - 1 / k), ("standard_error", 0.01), ("log_likelihood", -5.0))
    ]
    return pa.Table.from_pylist(rows, schema=tidy.TOY_BOUNDS)


def _gradient_metrics(objective: str, slope: float, k: int, noise: float) -> dict[str, float]:
    found = {"signal_to_noise": 0.2 * k ** (slope + noise), "squared_norm": 1.0 / k, "total_variance": 2.0}
    if objective != "iwae":
        found |= {"distance": 1.1 + noise if objective == "dreg" or k == 1 else 60.0 + noise, "distance_error": 1.0}
    return found


def toy_gradients() -> pa.Table:
    generator = np.random.default_rng(0)
    rows = []
    for seed in range(SEEDS):
        for objective in ("iwae", "stl", "dreg"):
            noise = generator.normal(0, 0.02)
            for k in (1, 3, 10, 30):
                found = _gradient_metrics(objective, SLOPES[objective, "encoder"], k, noise)
                rows += [
                    {"seed": seed, "objective": objective, "k": k, "metric": m, "value": v, "unit": "1"}
                    for m, v in found.items()
                ]
    return pa.Table.from_pylist(rows, schema=tidy.TOY_GRADIENTS)


def signal() -> pa.Table:
    generator = np.random.default_rng(1)
    rows = []
    for seed in range(SEEDS):
        for objective in ("iwae", "stl", "dreg"):
            for part in ("encoder", "decoder"):
                noise = generator.normal(0, 0.02)
                for k in (1, 4, 16):
                    found = _gradient_metrics(objective, SLOPES.get((objective, part), 0.5), k, noise)
                    where = {"seed": seed, "arm": "vae_k1", "objective": objective, "k": k, "parameters": part}
                    rows += [where | {"draws": 10, "metric": m, "value": v, "unit": "1"} for m, v in found.items()]
    return pa.Table.from_pylist(rows, schema=tidy.SIGNAL)


def likelihood() -> pa.Table:
    generator = np.random.default_rng(2)
    rows = []
    for seed in range(SEEDS):
        data = generator.normal(0, 3)  # images differ by seed, and are shared by its arms
        for arm, (test, train, _) in ARMS.items():
            noise = data + generator.normal(0, 0.1)
            for part, nll in (("test", test), ("train", train)):
                metrics = {
                    "nll": nll + noise + generator.normal(0, 0.05),
                    "standard_error": 0.02,
                    "bias": 0.1,
                    "effective_samples": 10.0,
                }
                where = {"seed": seed, "arm": arm, "part": part, "samples": 500}
                rows += [where | {"metric": m, "value": v, "unit": "nats"} for m, v in metrics.items()]
    return pa.Table.from_pylist(rows, schema=tidy.LIKELIHOOD)


def bounds() -> pa.Table:
    generator = np.random.default_rng(3)
    rows = []
    for seed in range(SEEDS):
        data = generator.normal(0, 3)
        for arm in ("vae_k1", "iwae_k20"):
            for k in (1, 5, 50, 500):
                value = -250 - 3 / k**0.5 + data + generator.normal(0, 0.01)
                where = {"seed": seed, "arm": arm, "k": k, "unit": "nats"}
                rows += [
                    where | {"metric": "bound", "value": value},
                    where | {"metric": "error_over_images", "value": 4.0 + generator.normal(0, 0.5)},
                ]
    return pa.Table.from_pylist(rows, schema=tidy.BOUNDS)


def units() -> pa.Table:
    generator = np.random.default_rng(4)
    rows = []
    for seed in range(SEEDS):
        for arm, (_, _, active) in ARMS.items():
            count = active + int(generator.integers(0, 2))
            rows += [
                {"seed": seed, "arm": arm, "layer": 1, "unit_index": i, "metric": "variance", "unit": "1"}
                | {"value": 1.0 if i < count else 1e-4}
                for i in range(LATENT)
            ]
    return pa.Table.from_pylist(rows, schema=tidy.UNITS)


def training() -> pa.Table:
    rows = []
    for seed in range(SEEDS):
        for arm, (test, _, active) in ARMS.items():
            start = 1000 if "_then_" in arm else 0
            for step, share in ((0, 0.0), (500, 0.9), (750, 1.0), (1000, 1.0)):
                found = {
                    "test_bound": -400 + share * (400 - test),
                    "active_units_1": round(LATENT + share * (active - LATENT)),
                }
                where = {"seed": seed, "arm": arm, "step": start + step}
                rows += [where | {"metric": m, "value": float(v), "unit": "1"} for m, v in found.items()]
    return pa.Table.from_pylist(rows, schema=tidy.TRAINING)


def samples() -> pa.Table:
    rows = [
        {"seed": 0, "arm": arm, "image": image, "kind": kind, "side": 4, "values": [0.05 * i for i in range(16)]}
        for arm in ("vae_k1", "iwae_k20")
        for image in range(3)
        for kind in ("test image", "sample")
    ]
    return pa.Table.from_pylist(rows, schema=tidy.SAMPLES)


def everything() -> dict[str, pa.Table]:
    made = (identities, toy_bounds, toy_gradients, signal, likelihood, bounds, units, training, samples)
    return {make.__name__: make() for make in made}


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="importance_weighting", seeds=SEEDS)

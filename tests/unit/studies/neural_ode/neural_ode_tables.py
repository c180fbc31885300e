"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.studies import neural_ode
from restudy.studies.neural_ode import statistics, tidy

FOLDER = Path(neural_ode.__file__).parent
SEEDS = 6
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)
# arm -> test error, parameters, final train loss
NETS = {
    "odenet": (0.105, 2594, 0.31),
    "rknet": (0.106, 2594, 0.31),
    "resnet6": (0.11, 8434, 0.32),
    "tied6": (0.15, 2594, 0.40),
    "mlp": (0.16, 62110, 0.45),
    "plain6": (0.13, 8434, 0.45),
    "plain12": (0.30, 15634, 0.90),
    "resnet12": (0.10, 15634, 0.30),
}
# arm -> KL at 2, 8, 32; error after the window at 30, 50, 100
FLOWS = {"cnf": (0.4, 0.1, 0.02), "nf": (0.7, 0.5, 0.3), "nf_long": (0.6, 0.4, 0.2)}
FORECASTS = {
    "latent_ode": (0.16, 0.15, 0.14),
    "rnn": (0.40, 0.32, 0.18),
    "rnn_gaps": (0.38, 0.30, 0.18),
    "gru_gaps": (0.35, 0.28, 0.17),
}


def noisy(generator: np.random.Generator, value: float) -> float:
    return float(value * np.exp(0.01 * generator.normal()))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def long(metric: str, value: float) -> dict:
    return {"metric": metric, "value": value, "unit": "1"}


def identities() -> pa.Table:
    cases = {
        "D1": ("dL/dt1 by differences", "dL/dt0 by differences", "dL/dt0 closed form", "dL/dt0 of the library"),
        "O11": ("value", "gradient"),
        "O7": ("trace integral", "mass", "round trip", "both ways"),
        "O14": ("trace", "determinants"),
        "O9": ("quadrature",),
    }
    rows = [
        {"claim": claim, "case": f"case {i}", **long(metric, 0.0)}
        for claim, metrics in cases.items()
        for metric in metrics
        for i in range(2)
    ]
    rows += [{"claim": "O14", "case": f"case {i}", **long("determinants of the long way", 2.0)} for i in range(2)]
    return tidy.table("identities", rows)


def gradients() -> pa.Table:
    rows = [
        {"problem": problem, "method": method, "tolerance": t, "error": t}
        for problem in range(2)
        for method in ("adjoint", "equations", "seminorm", "backprop")
        for t in (1e-3, 1e-6, 1e-10)
    ]
    rows += [
        {"problem": problem, "method": method, "tolerance": 0.0, "error": gap}
        for problem in range(2)
        for method, gap in (("euler", 0.1), ("midpoint", 3e-3), ("rk4", 1e-6))
    ]
    return tidy.table("gradients", rows)


def memory() -> pa.Table:
    steps = (8, 16, 32, 64, 128)
    rows = [{"method": "adjoint", "steps": n, "bytes": 9264} for n in steps]
    return tidy.table("memory", rows + [{"method": "backprop", "steps": n, "bytes": 256 + 25632 * n} for n in steps])


def refinement() -> pa.Table:
    rows = [{"problem": p, "steps": n, "distance": 0.03 / n} for p in range(2) for n in (8, 32, 128)]
    return tidy.table("refinement", rows)


def training() -> pa.Table:
    generator, rows = rng(), []
    for seed in range(SEEDS):
        for arm, (error, parameters, loss) in NETS.items():
            found = {"test_error": noisy(generator, error), "parameters": float(parameters), "diverged": 0.0}
            found |= {"train_loss": noisy(generator, loss), "train_accuracy": noisy(generator, 0.85)}
            if arm in ("odenet", "rknet"):
                found |= {"forward_early": noisy(generator, 24), "forward_late": noisy(generator, 36)}
                found |= {"forward_mean": noisy(generator, 30), "backward_mean": noisy(generator, 15)}
            rows += [{"seed": seed, "arm": arm, **long(metric, value)} for metric, value in found.items()]
    return tidy.table("training", rows)


def curves() -> pa.Table:
    rows = []
    for seed in range(SEEDS):
        for arm in NETS:
            for step in range(5, 101, 5):
                found = {"loss": 2.3 / (1 + step / 20), "accuracy": 0.9 - 0.8 / (1 + step / 10) + 0.001 * seed}
                if arm in ("odenet", "rknet"):
                    found |= {"forward": 24 + step / 10, "backward": 12 + step / 20}
                rows += [{"seed": seed, "arm": arm, "step": step, **long(m, v)} for m, v in found.items()]
    return tidy.table("curves", rows)


def train_timings() -> pa.Table:
    generator = rng()
    rows = []
    for seed in range(SEEDS):
        for arm in NETS:
            each = noisy(generator, 0.08 if arm == "odenet" else 0.01)
            rows += [{"seed": seed, "arm": arm, "step": s, "seconds": each * s} for s in range(5, 101, 5)]
    return tidy.table("train_timings", rows)


def tolerances() -> pa.Table:
    generator, rows = rng(), []
    for seed in range(SEEDS):
        size, accuracy = noisy(generator, 0.5), noisy(generator, 0.89)
        for t in TOLERANCES:
            found = {"state_error": size * t ** (0.95 + 0.01 * seed), "evaluations": 14 + 6 * (seed + 3) * t**-0.12}
            if t >= 1e-4:
                found["accuracy"] = accuracy - 0.001 * (t > 1e-3) * (1 + 0.1 * seed)
            rows += [{"seed": seed, "tolerance": t, **long(m, v)} for m, v in found.items()]
    return tidy.table("tolerances", rows)


def solver_timings() -> pa.Table:
    rows = [
        {
            "seed": seed,
            "tolerance": t,
            "seconds": 1e-3 * (14 + 6 * (seed + 3) * t**-0.12) + 1e-3 * (seed % 3) * (t < 1e-3),
        }
        for seed in range(SEEDS)
        for t in TOLERANCES
    ]
    return tidy.table("solver_timings", rows)


def exchanges() -> pa.Table:
    generator, rows = rng(), []
    for seed in range(SEEDS):
        for solver in ("dopri5", "dopri8", "bosh3", "scipy"):
            distance = 0.0 if solver == "dopri5" else noisy(generator, 1e-4)
            rows += [
                {"seed": seed, "arm": "odenet", "solver": solver, **long("logit_distance", distance)},
                {"seed": seed, "arm": "odenet", "solver": solver, **long("exact_accuracy", 0.89)},
            ]
        for arm, solver, accuracy in (
            ("odenet", "rk4-8", 0.89),
            ("odenet", "rk4-16", 0.891),
            ("tied6", "euler-6", 0.85),
            ("tied6", "euler-12", 0.55 + 0.01 * seed),
        ):
            rows.append({"seed": seed, "arm": arm, "solver": solver, **long("accuracy", accuracy)})
        for norm in ("norm", "seminorm"):
            rows.append({"seed": seed, "arm": "odenet", "solver": norm, **long("backward_ratio", 0.5)})
    return tidy.table("exchanges", rows)


def densities() -> pa.Table:
    generator, rows = rng(), []
    for seed in range(SEEDS):
        for arm, divergences in FLOWS.items():
            for width, kl in zip((2, 8, 32), divergences, strict=True):
                here = {"seed": seed, "arm": arm, "target": "crescents", "width": width}
                rows.append(here | long("kl", noisy(generator, kl)))
                if arm == "cnf":
                    rows += [here | long(m, 1e-7) for m in ("mass_error", "round_trip", "jacobian_gap")]
    return tidy.table("densities", rows)


def density_curves() -> pa.Table:
    rows = [
        {"seed": seed, "arm": arm, "target": "crescents", "width": 8, "step": step, **long("kl", 3 / step)}
        for seed in range(SEEDS)
        for arm in FLOWS
        for step in (1, 10, 100)
    ]
    return tidy.table("density_curves", rows)


def density_panels() -> pa.Table:
    rows = [
        {"seed": 0, "arm": arm, "target": target, "width": 8, "side": 3, "values": [0.1 * i for i in range(9)]}
        for arm, target in [*((arm, "crescents") for arm in FLOWS), ("cnf", "circles")]
    ]
    return tidy.table("density_panels", rows)


def forecasts() -> pa.Table:
    generator, rows = rng(), []
    for seed in range(SEEDS):
        for arm, errors in FORECASTS.items():
            for points, error in zip((30, 50, 100), errors, strict=True):
                found = {"future": noisy(generator, error), "future_of_last": 1.0}
                if arm == "latent_ode":
                    found |= {"between": noisy(generator, 0.04), "between_linear": noisy(generator, 0.09)}
                rows += [{"seed": seed, "arm": arm, "points": points, **long(m, v)} for m, v in found.items()]
    return tidy.table("forecasts", rows)


def spiral_paths() -> pa.Table:
    rows = []
    for arm in FORECASTS:
        for points in (30, 100):
            for kind in ("truth", "observed", "predicted", *(["latent"] if arm == "latent_ode" else [])):
                for spiral in range(2):
                    line = np.linspace(0, 1 + spiral, 8).tolist()
                    rows.append(
                        {"seed": 0, "arm": arm, "points": points, "spiral": spiral, "kind": kind}
                        | {"first": line, "second": line[::-1]}
                    )
    return tidy.table("spiral_paths", rows)


def intensities() -> pa.Table:
    generator, rows = rng(), []
    for seed in range(SEEDS):
        found = {
            "correlation": 0.97 + 0.003 * float(generator.uniform()),
            "correlation_other": float(generator.uniform(-0.4, 0.4)),
            "true_log_likelihood": -130.0,
            "constant_log_likelihood": -190.0,
            "quadrature_gap": 1e-7,
        }
        rows += [{"seed": seed, **long(m, v)} for m, v in found.items()]
    return tidy.table("intensities", rows)


def intensity_curves() -> pa.Table:
    rows = [
        {"seed": seed, "kind": kind, "time": [0.0, 1.0, 2.0], "values": [1.0, 2.0, 1.0]}
        for seed in range(SEEDS)
        for kind in ("fitted", "true", "events")
    ]
    return tidy.table("intensity_curves", rows)


def trace_timings() -> pa.Table:
    generator = rng()
    rows = [
        {"seed": seed, "method": method, "dimensions": n, "seconds": noisy(generator, 1e-5 * n**power)}
        for seed in range(SEEDS)
        for method, power in (("trace", 0.05), ("determinant", 1.2))
        for n in (8, 64, 512)
    ]
    return tidy.table("trace_timings", rows)


MADE = (
    *(identities, gradients, memory, refinement, training, curves, train_timings, tolerances, solver_timings),
    *(exchanges, densities, density_curves, density_panels, forecasts, spiral_paths, intensities, intensity_curves),
    trace_timings,
)


def everything() -> dict[str, pa.Table]:
    return {make.__name__: make() for make in MADE}


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="neural_ode", seeds=SEEDS)

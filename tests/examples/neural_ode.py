"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, cases, declared, grid, long

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
IDENTITIES = {
    "D1": ("dL/dt1 by differences", "dL/dt0 by differences", "dL/dt0 closed form", "dL/dt0 of the library"),
    "O11": ("value", "gradient"),
    "O7": ("trace integral", "mass", "round trip", "both ways"),
    "O14": ("trace", "determinants"),
    "O9": ("quadrature",),
}
NULL_IS_REFUSED = {"O3": "its evaluations are equal in every seed"}


class Noise:
    """Relative noise of one percent, the same in every run."""

    def __init__(self) -> None:
        self.generator = np.random.default_rng(0)

    def __call__(self, value: float) -> float:
        return float(value * np.exp(0.01 * self.generator.normal()))


def identities() -> list[Row]:
    rows = cases(IDENTITIES, 2)
    return rows + cases({"O14": ("determinants of the long way",)}, 2, value=2.0)


def gradients() -> Iterator[Row]:
    for problem in range(2):
        for where in grid(method=("adjoint", "equations", "seminorm", "backprop"), tolerance=(1e-3, 1e-6, 1e-10)):
            yield {"problem": problem, "error": where["tolerance"]} | where
        for method, gap in (("euler", 0.1), ("midpoint", 3e-3), ("rk4", 1e-6)):
            yield {"problem": problem, "method": method, "tolerance": 0.0, "error": gap}


def memory() -> Iterator[Row]:
    for n in (8, 16, 32, 64, 128):
        yield {"method": "adjoint", "steps": n, "bytes": 9264}
        yield {"method": "backprop", "steps": n, "bytes": 256 + 25632 * n}


def refinement() -> Iterator[Row]:
    for where in grid(problem=range(2), steps=(8, 32, 128)):
        yield where | {"distance": 0.03 / where["steps"]}


def training() -> Iterator[Row]:
    noisy = Noise()
    for where in grid(seed=range(SEEDS), arm=NETS):
        error, parameters, loss = NETS[where["arm"]]
        found = {"test_error": noisy(error), "parameters": float(parameters), "diverged": 0.0}
        found |= {"train_loss": noisy(loss), "train_accuracy": noisy(0.85)}
        if where["arm"] in ("odenet", "rknet"):
            found |= {"forward_early": noisy(24), "forward_late": noisy(36)}
            found |= {"forward_mean": noisy(30), "backward_mean": noisy(15)}
        yield from long(where, found)


def curves() -> Iterator[Row]:
    for where in grid(seed=range(SEEDS), arm=NETS, step=range(5, 101, 5)):
        step = where["step"]
        found = {"loss": 2.3 / (1 + step / 20), "accuracy": 0.9 - 0.8 / (1 + step / 10) + 0.001 * where["seed"]}
        if where["arm"] in ("odenet", "rknet"):
            found |= {"forward": 24 + step / 10, "backward": 12 + step / 20}
        yield from long(where, found)


def train_timings() -> Iterator[Row]:
    noisy = Noise()
    for where in grid(seed=range(SEEDS), arm=NETS):
        each = noisy(0.08 if where["arm"] == "odenet" else 0.01)
        for step in range(5, 101, 5):
            yield where | {"step": step, "seconds": each * step}


def evaluations(seed: int, tolerance: float) -> float:
    return 14 + 6 * (seed + 3) * tolerance**-0.12


def tolerances() -> Iterator[Row]:
    noisy = Noise()
    for seed in range(SEEDS):
        size, accuracy = noisy(0.5), noisy(0.89)
        for t in TOLERANCES:
            found = {"state_error": size * t ** (0.95 + 0.01 * seed), "evaluations": evaluations(seed, t)}
            if t >= 1e-4:
                found["accuracy"] = accuracy - 0.001 * (t > 1e-3) * (1 + 0.1 * seed)
            yield from long({"seed": seed, "tolerance": t}, found)


def solver_timings() -> Iterator[Row]:
    for where in grid(seed=range(SEEDS), tolerance=TOLERANCES):
        seed, t = where["seed"], where["tolerance"]
        yield where | {"seconds": 1e-3 * evaluations(seed, t) + 1e-3 * (seed % 3) * (t < 1e-3)}


def exchanges() -> Iterator[Row]:
    noisy = Noise()
    for seed in range(SEEDS):
        for solver in ("dopri5", "dopri8", "bosh3", "scipy"):
            distance = 0.0 if solver == "dopri5" else noisy(1e-4)
            where = {"seed": seed, "arm": "odenet", "solver": solver}
            yield from long(where, {"logit_distance": distance, "exact_accuracy": 0.89})
        for arm, solver, accuracy in (
            ("odenet", "rk4-8", 0.89),
            ("odenet", "rk4-16", 0.891),
            ("tied6", "euler-6", 0.85),
            ("tied6", "euler-12", 0.55 + 0.01 * seed),
        ):
            yield from long({"seed": seed, "arm": arm, "solver": solver}, {"accuracy": accuracy})
        for norm in ("norm", "seminorm"):
            yield from long({"seed": seed, "arm": "odenet", "solver": norm}, {"backward_ratio": 0.5})


def densities() -> Iterator[Row]:
    noisy = Noise()
    for seed in range(SEEDS):
        for arm, divergences in FLOWS.items():
            for width, kl in zip((2, 8, 32), divergences, strict=True):
                found = {"kl": noisy(kl)}
                if arm == "cnf":
                    found |= dict.fromkeys(("mass_error", "round_trip", "jacobian_gap"), 1e-7)
                yield from long({"seed": seed, "arm": arm, "target": "crescents", "width": width}, found)


def forecasts() -> Iterator[Row]:
    noisy = Noise()
    for seed in range(SEEDS):
        for arm, errors in FORECASTS.items():
            for points, error in zip((30, 50, 100), errors, strict=True):
                found = {"future": noisy(error), "future_of_last": 1.0}
                if arm == "latent_ode":
                    found |= {"between": noisy(0.04), "between_linear": noisy(0.09)}
                yield from long({"seed": seed, "arm": arm, "points": points}, found)


def intensities() -> Iterator[Row]:
    generator = np.random.default_rng(0)
    for seed in range(SEEDS):
        found = {
            "correlation": 0.97 + 0.003 * generator.uniform(),
            "correlation_other": generator.uniform(-0.4, 0.4),
            "true_log_likelihood": -130.0,
            "constant_log_likelihood": -190.0,
            "quadrature_gap": 1e-7,
        }
        yield from long({"seed": seed}, found)


def trace_timings() -> Iterator[Row]:
    noisy, power = Noise(), {"trace": 0.05, "determinant": 1.2}
    for where in grid(seed=range(SEEDS), method=power, dimensions=(8, 64, 512)):
        yield where | {"seconds": noisy(1e-5 * where["dimensions"] ** power[where["method"]])}


MADE = (
    *(identities, gradients, memory, refinement, training, curves, train_timings, tolerances, solver_timings),
    *(exchanges, densities, forecasts, intensities, trace_timings),
)


def tables() -> dict[str, pa.Table]:
    return declared("neural_ode", **{make.__name__: make() for make in MADE})

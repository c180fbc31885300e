"""Stage `events`: an intensity learned from event times by the Poisson likelihood (claim O9)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.continuous import PoissonProcess, Solver
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.neural_ode.fitting import Recipe, fit
from restudy.studies.neural_ode.tidy import table

SHOWN = 200
"""Times at which intensities are compared and drawn."""


@dataclass(frozen=True)
class Rate:
    """lambda(t) = base (1 + depth sin(2 pi cycles t / end + phase)), per sequence and unit of time."""

    base: float
    depth: float
    cycles: float
    phase: float
    end: float

    def __call__(self, times: Any) -> Any:
        """At times, an array: float64 of the same shape."""
        return self.base * (1 + self.depth * np.sin(2 * math.pi * self.cycles * times / self.end + self.phase))


def draw(seed: int, events: float, sequences: int, end: float) -> tuple[Rate, Tensor]:
    """A rate of the seed (1.2 to 2.2 cycles, any phase) and event times of all sequences together, by thinning.

    Args:
        events: expected number of all sequences together.
    """
    generator = np.random.default_rng(derive_seed(seed, "events"))
    cycles, phase = generator.uniform(1.2, 2.2), generator.uniform(0, 2 * math.pi)
    shape = Rate(1.0, 0.9, float(cycles), float(phase), end)
    mean = float(shape((np.arange(2000) + 0.5) * (end / 2000)).mean())
    rate = Rate(events / (sequences * end * mean), 0.9, float(cycles), float(phase), end)
    top = rate.base * 1.9
    proposed = np.sort(generator.uniform(0, end, generator.poisson(top * sequences * end)))
    kept = proposed[generator.uniform(size=len(proposed)) * top < rate(proposed)]
    return rate, torch.as_tensor(kept)


@dataclass
class Counting:
    """The task: all event times in every step."""

    model: PoissonProcess
    events: Tensor
    sequences: int

    def loss(self, step: int) -> Tensor:
        """Negative log-likelihood, nats per event."""
        return -self.model.log_likelihood(self.events, self.sequences) / len(self.events)

    def numbers(self) -> dict[str, float]:
        """Nothing more."""
        return {}


def fit_intensities(
    context: Context,
    *,
    seeds: Sequence[int],
    events: float,
    sequences: int,
    end: float,
    latent: int,
    hidden: int,
    steps: int,
    learning_rate: float,
    tolerance: float,
    window: int,
) -> Outputs:
    """Fit an intensity for every seed, in float64.

    Returns `intensities` (correlation with the true rate and with another seed's, likelihoods, the gap to direct
    quadrature) and `intensity_curves` (fitted and true rate on a grid, event times).
    """
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    drawn: list[dict[str, Any]] = []
    for seed in seeds:
        rate, times = draw(seed, events, sequences, end)
        other, _ = draw(seed + 1, events, sequences, end)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "intensity"))
            model = PoissonProcess(latent, hidden, end=end, solver=Solver(tolerance=tolerance)).double()
        recipe = Recipe(f"s{seed}", steps, learning_rate, "adam", True, window)
        curves = fit(Counting(model, times, sequences), recipe, context.checkpoints / f"s{seed}.pt")
        model.solver = Solver(tolerance=1e-8)
        grid = torch.linspace(0, end, SHOWN, dtype=torch.float64)
        with torch.no_grad():
            found = model.intensity(grid).numpy()
            likelihood = float(model.log_likelihood(times, sequences))
        truth = rate(grid.numpy())
        exact = model.log_likelihood_by_quadrature(times, sequences)
        numbers = {
            "correlation": (float(np.corrcoef(found, truth)[0, 1]), "1"),
            "correlation_other": (float(np.corrcoef(found, other(grid.numpy()))[0, 1]), "1"),
            "log_likelihood": (likelihood, "nats"),
            "true_log_likelihood": (true_log_likelihood(rate, times, sequences), "nats"),
            "constant_log_likelihood": (constant_log_likelihood(times, sequences, end), "nats"),
            "quadrature_gap": (abs(likelihood - exact), "nats"),
            "events": (float(len(times)), "count"),
        }
        rows += curves.judged([{"seed": seed, "metric": m, "value": v, "unit": u} for m, (v, u) in numbers.items()])
        kinds = {"fitted": (grid, found), "true": (grid, truth), "events": (times, times)}
        for kind, (at, values) in kinds.items():
            drawn.append({"seed": seed, "kind": kind, "time": at.tolist(), "values": np.asarray(values).tolist()})
    return {"intensities": table("intensities", rows), "intensity_curves": table("intensity_curves", drawn)}


def true_log_likelihood(rate: Rate, times: Tensor, sequences: int, cells: int = 20_000) -> float:
    """Of the events under the rate they were drawn from, nats; the integral by midpoints."""
    middle = (np.arange(cells) + 0.5) * (rate.end / cells)
    return float(np.log(rate(times.numpy())).sum() - sequences * rate.end * rate(middle).mean())


def constant_log_likelihood(times: Tensor, sequences: int, end: float) -> float:
    """Of the events under the best constant rate, nats."""
    count = len(times)
    return count * math.log(count / (sequences * end)) - count

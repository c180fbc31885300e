"""Time series: forecasts of irregular spirals (claim O8), and an intensity learned from event times (claim O9)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.errors import ConfigError
from restudy.methods.continuous import LatentOde, PoissonProcess, Recurrent, Solver
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory

from .experiment import Recipe, Row, Task, fit
from .models import GRID, Spirals, draw_spirals

FORECASTERS = ("latent_ode", "rnn", "rnn_gaps", "gru_gaps")
SHOWN = 4
Model = LatentOde | Recurrent


@dataclass
class Forecasting(Task):
    """Batches of trajectories drawn for every step, the same for every arm of a seed."""

    model: Model
    data: Spirals
    batch: int
    seed: int

    def loss(self, step: int) -> Tensor:
        """Negative ELBO, or negative log-likelihood of the next observation: nats per number."""
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "batch", step))
        chosen = torch.randperm(len(self.data.values), generator=generator)[: self.batch]
        device = next(self.model.parameters()).device
        values, index = self.data.values[chosen].to(device), self.data.index[chosen].to(device)
        grid = self.data.grid.to(device)
        if isinstance(self.model, Recurrent):
            return self.model.loss(values, grid[index])
        latent = self.model.posterior.out_features // 2
        noise = torch.randn(len(chosen), latent, generator=generator).to(values)
        return self.model.loss(values, index, grid[:GRID], noise)


def spirals(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    points: Sequence[int],
    trajectories: int,
    held_out: int,
    window_radians: float,
    noise: float,
    latent: int,
    hidden: int,
    units: int,
    encoder: str,
    batch_size: int,
    steps: int,
    learning_rates: Mapping[str, float],
    tolerance: float,
    window: int,
) -> Outputs:
    """Train every arm at every number of observed points for every seed.

    Returns `forecasts` (root mean squared error against the noise-free curve: `future` at as many irregular times
    after the window as were observed in it, of the latent ODE also on all times, see `errors`),
    `spiral_curves`, and `spiral_paths` (trajectories of seed 0).
    """
    keep_freed_memory()
    rows: dict[str, list[Row]] = {"forecasts": [], "spiral_curves": [], "spiral_paths": []}
    for seed in seeds:
        for number in points:
            train, test = (
                draw_spirals(count, number, window_radians, noise, seed, split)
                for count, split in ((trajectories, "train"), (held_out, "test"))
            )
            for arm in arms:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive_seed(seed, "forecaster"))
                    model = make(arm, latent, hidden, units, encoder, noise, tolerance).to(context.device)
                name = f"{arm}-{number}-s{seed}"
                recipe = Recipe(name, steps, float(learning_rates[arm]), "adam", window)
                task = Forecasting(model, train, batch_size, seed)
                curves = fit(task, recipe, context.checkpoints, context.live(seed))
                model.cpu()
                here = {"seed": seed, "arm": arm, "points": number}
                rows["spiral_curves"] += [here | row for row in curves.told(loss="nats")]
                rows["forecasts"] += [here | row for row in curves.judged(errors(model, test))]
                if seed == 0:
                    rows["spiral_paths"] += [here | row for row in paths(model, test)]
    return {**rows}


def make(arm: str, latent: int, hidden: int, units: int, encoder: str, noise: float, tolerance: float) -> Model:
    """The model of an arm.

    Raises:
        ConfigError: an unknown arm.
    """
    if arm == "latent_ode":
        kind: Any = encoder
        solver = Solver(tolerance=tolerance)
        return LatentOde(2, latent, hidden, units, kind=kind, spread=noise, solver=solver)
    if arm in FORECASTERS:
        return Recurrent(2, units, kind="gru" if arm == "gru_gaps" else "rnn", gaps=arm != "rnn", spread=noise)
    raise ConfigError(f"unknown arm {arm!r}", remedy=f"known: {', '.join(FORECASTERS)}")


def _rmse(found: Tensor, truth: Tensor) -> float:
    return float((found - truth).square().mean().sqrt())


def errors(model: Model, data: Spirals) -> Iterator[Row]:
    """Root mean squared errors per coordinate on held-out trajectories, in units of the plane."""
    if isinstance(model, Recurrent):
        found = model.forecast(data.values, data.grid[data.index], data.grid[data.ahead + GRID])
        numbers = {"future": _rmse(found, data.future())}
    else:
        path, _ = model.predict(data.values, data.grid[data.index], data.grid)
        at = (data.ahead + GRID)[..., None].expand(-1, -1, 2)
        numbers = {
            "future": _rmse(path.gather(1, at), data.future()),
            "future_grid": _rmse(path[:, GRID:], data.truth[:, GRID:]),
            "inside": _rmse(path[:, :GRID], data.truth[:, :GRID]),
            **between(path[:, :GRID], data),
        }
    last = data.values[:, -1:].expand_as(data.future())
    numbers["future_of_last"] = _rmse(last, data.future())
    yield from ({"metric": metric, "value": value, "unit": "1"} for metric, value in numbers.items())


def between(path: Tensor, data: Spirals) -> dict[str, float]:
    """Errors between a trajectory's first and last observation: of `path`, and of linear interpolation."""
    place = torch.arange(GRID)
    after = torch.searchsorted(data.index, place.expand(len(data.index), -1).contiguous())
    right = after.clamp(1, data.index.shape[1] - 1)
    low, high = data.index.gather(1, right - 1), data.index.gather(1, right)
    share = ((place - low) / (high - low))[..., None]
    ends = [data.values.gather(1, at[..., None].expand(-1, -1, 2)) for at in (right - 1, right)]
    linear = (1 - share) * ends[0] + share * ends[1]
    within = (place >= data.index[:, :1]) & (place <= data.index[:, -1:])
    truth = data.truth[:, :GRID][within]
    return {"between": _rmse(path[within], truth), "between_linear": _rmse(linear[within], truth)}


def paths(model: Model, data: Spirals) -> Iterator[Row]:
    """The first trajectories: truth, observations, predictions, and the first two latent dimensions."""
    few = Spirals(data.truth[:SHOWN], data.values[:SHOWN], data.index[:SHOWN], data.ahead[:SHOWN], data.grid)
    times = few.grid[few.index]
    kinds = {"truth": few.truth, "observed": few.values}
    if isinstance(model, Recurrent):
        kinds["predicted"] = model.forecast(few.values, times, few.grid[few.ahead + GRID])
    else:
        kinds["predicted"], kinds["latent"] = model.predict(few.values, times, few.grid)
    for kind, values in kinds.items():
        for number in range(len(values)):
            first, second = values[number, :, 0].tolist(), values[number, :, 1].tolist()
            yield {"spiral": number, "kind": kind, "first": first, "second": second}


INSTANTS = 200
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
class Counting(Task):
    """All event times in every step."""

    model: PoissonProcess
    events: Tensor
    sequences: int

    def loss(self, step: int) -> Tensor:
        """Negative log-likelihood, nats per event."""
        return -self.model.log_likelihood(self.events, self.sequences) / len(self.events)


def events(
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
    rows: list[Row] = []
    drawn: list[Row] = []
    for seed in seeds:
        rate, times = draw(seed, events, sequences, end)
        other, _ = draw(seed + 1, events, sequences, end)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "intensity"))
            model = PoissonProcess(latent, hidden, end=end, solver=Solver(tolerance=tolerance)).double()
        recipe = Recipe(f"s{seed}", steps, learning_rate, "adam", window)
        curves = fit(Counting(model, times, sequences), recipe, context.checkpoints, context.live(seed))
        model.solver = Solver(tolerance=1e-8)
        grid = torch.linspace(0, end, INSTANTS, dtype=torch.float64)
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
    return {"intensities": rows, "intensity_curves": drawn}


def true_log_likelihood(rate: Rate, times: Tensor, sequences: int, cells: int = 20_000) -> float:
    """Of the events under the rate they were drawn from, nats; the integral by midpoints."""
    middle = (np.arange(cells) + 0.5) * (rate.end / cells)
    return float(np.log(rate(times.numpy())).sum() - sequences * rate.end * rate(middle).mean())


def constant_log_likelihood(times: Tensor, sequences: int, end: float) -> float:
    """Of the events under the best constant rate, nats."""
    count = len(times)
    return count * math.log(count / (sequences * end)) - count

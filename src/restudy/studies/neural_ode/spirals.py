"""Stage `spirals`: a latent ODE and recurrent forecasters on irregular spirals, judged on held-out ones (claim O8)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.errors import ConfigError
from restudy.methods.continuous import LatentOde, Recurrent, Solver
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.neural_ode.fitting import Recipe, fit
from restudy.studies.neural_ode.spiral_data import GRID, Spirals, spirals
from restudy.studies.neural_ode.tidy import table

ARMS = ("latent_ode", "rnn", "rnn_gaps", "gru_gaps")
SHOWN = 4
Model = LatentOde | Recurrent
Row = dict[str, Any]


@dataclass
class Forecasting:
    """The task: batches of trajectories drawn for every step, the same for every arm of a seed."""

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

    def numbers(self) -> dict[str, float]:
        """Nothing more."""
        return {}


def train_forecasters(
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
                spirals(count, number, window_radians, noise, seed, split)
                for count, split in ((trajectories, "train"), (held_out, "test"))
            )
            for arm in arms:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(derive_seed(seed, "forecaster"))
                    model = make(arm, latent, hidden, units, encoder, noise, tolerance).to(context.device)
                name = f"{arm}-{number}-s{seed}"
                recipe = Recipe(name, steps, float(learning_rates[arm]), "adam", True, window)
                curves = fit(Forecasting(model, train, batch_size, seed), recipe, context.checkpoints / f"{name}.pt")
                model.cpu()
                here = {"seed": seed, "arm": arm, "points": number}
                rows["spiral_curves"] += [
                    here | {"step": int(r["step"]), "metric": "loss", "value": r["loss"], "unit": "nats"}
                    for r in curves.rows
                ]
                rows["forecasts"] += [here | row for row in curves.judged(list(errors(model, test)))]
                if seed == 0:
                    rows["spiral_paths"] += [here | row for row in paths(model, test)]
    return {name: table(name, found) for name, found in rows.items()}


def make(arm: str, latent: int, hidden: int, units: int, encoder: str, noise: float, tolerance: float) -> Model:
    """The model of an arm.

    Raises:
        ConfigError: an unknown arm.
    """
    if arm == "latent_ode":
        kind: Any = encoder
        solver = Solver(tolerance=tolerance)
        return LatentOde(2, latent, hidden, units, kind=kind, spread=noise, solver=solver)
    if arm in ARMS:
        return Recurrent(2, units, kind="gru" if arm == "gru_gaps" else "rnn", gaps=arm != "rnn", spread=noise)
    raise ConfigError(f"unknown arm {arm!r}", remedy=f"known: {', '.join(ARMS)}")


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

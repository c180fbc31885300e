"""Stage `train`: autoencoders under both bounds, and trained ones continued under the other (sections 5.1 and 5.3)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.methods.importance import DeepGaussianAutoencoder
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.importance_weighting.arms import Arm, parse_swap
from restudy.studies.importance_weighting.fitting import Recipe, Run, adam, fit, stages
from restudy.studies.importance_weighting.images import Batches, Images
from restudy.studies.importance_weighting.tidy import TIMINGS, TRAINING

UNITS = {"test_bound": "nats", "train_bound": "nats", "active_units_1": "1", "active_units_2": "1"}


@dataclass(frozen=True)
class Schedule:
    """What all runs of a preset share; the names are those of the parameters."""

    batch_size: int
    hidden: int
    latent: int
    steps: int
    swap_steps: int
    learning_rate: float
    last_learning_rate: float
    rate_stages: int
    stage_growth: float
    measure_every: int

    @property
    def rates(self) -> list[list[float]]:
        """Step sizes of a run from scratch; the last one stays for a continuation, as in the paper."""
        return stages(self.steps, self.learning_rate, self.last_learning_rate, self.rate_stages, self.stage_growth)


def build(arm: Arm, seed: int, hidden: int, latent: int, pixel_means: Tensor | None = None) -> DeepGaussianAutoencoder:
    """The untrained network of an arm: the same for all arms of a seed that have as many layers."""
    widths = {1: ((latent,), (hidden,)), 2: ((2 * latent, latent), (hidden, hidden // 2))}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "networks", arm.layers))
        return DeepGaussianAutoencoder(784, *widths[arm.layers], pixel_means)


def train_autoencoders(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    swaps: Sequence[str],
    train_images: int,
    test_images: int,
    batch_size: int,
    hidden: int,
    latent: int,
    steps: int,
    swap_steps: int,
    learning_rate: float,
    last_learning_rate: float,
    rate_stages: int,
    stage_growth: float,
    measure_every: int,
) -> Outputs:
    """Train every arm, then continue the runs that `swaps` names, weights and optimizer state carried over.

    Returns `training` (seed, arm, step, metric, value, unit), the volatile `timings` (CPU seconds of the steps) and
    the tensors `weights`, named s<seed>/<arm>/<parameter>.
    """
    keep_freed_memory()
    schedule = Schedule(
        batch_size=batch_size,
        hidden=hidden,
        latent=latent,
        steps=steps,
        swap_steps=swap_steps,
        learning_rate=learning_rate,
        last_learning_rate=last_learning_rate,
        rate_stages=rate_stages,
        stage_growth=stage_growth,
        measure_every=measure_every,
    )
    rows: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        images = Images.draw(fashion_mnist.load(), seed, train_images, test_images).to(context.device)
        for name, run in runs(images, seed, arms, swaps, schedule, context.checkpoints):
            rows += training_rows(seed, name, run)
            where = {"seed": seed, "arm": name, "step": run.step}
            times.append({**where, "metric": "train", "value": run.seconds, "unit": "seconds"})
            weights |= {f"s{seed}/{name}/{key}": value for key, value in run.model.state_dict().items()}
    return {
        "training": pa.Table.from_pylist(rows, schema=TRAINING),
        "timings": pa.Table.from_pylist(times, schema=TIMINGS),
        "weights": {key: value.detach().cpu().contiguous() for key, value in weights.items()},
    }


def runs(
    images: Images, seed: int, arms: Sequence[str], swaps: Sequence[str], schedule: Schedule, checkpoints: Path
) -> Iterator[tuple[str, Run]]:
    """Name and end of every run of a seed: the arms first, then the continuations of some of them."""
    finished: dict[str, Run] = {}
    for name in arms:
        arm = Arm.parse(name)
        own = images.first(arm.images)
        model = build(arm, seed, schedule.hidden, schedule.latent, own.grey.mean(0).cpu()).to(own.grey.device)
        recipe = Recipe(name, arm.objective, arm.k, seed, 0, schedule.steps, schedule.rates, schedule.measure_every)
        batches = Batches(own, seed, schedule.batch_size, arm.fixed)
        finished[name] = fit(Run(model, adam(model), 0), batches, recipe, checkpoints / f"s{seed}-{name}.pt")
        yield name, finished[name]
    for name in swaps:
        before, after = parse_swap(name)
        start = finished[before.name]
        recipe = Recipe(
            name, after.objective, after.k, seed, schedule.steps, schedule.steps + schedule.swap_steps,
            schedule.rates, schedule.measure_every,
        )  # fmt: skip
        batches = Batches(images.first(before.images), seed, schedule.batch_size, before.fixed)
        yield name, fit(continued(start), batches, recipe, checkpoints / f"s{seed}-{name}.pt")


def continued(run: Run) -> Run:
    """A copy of a finished run to go on with, its optimizer state included."""
    model = copy.deepcopy(run.model)
    optimizer = adam(model)
    optimizer.load_state_dict(copy.deepcopy(run.optimizer.state_dict()))
    return Run(model, optimizer, run.step)


def training_rows(seed: int, name: str, run: Run) -> Iterator[dict[str, Any]]:
    """Rows of `training`."""
    for record in run.records:
        for metric, value in record.items():
            if metric != "step":
                yield {"seed": seed, "arm": name, "step": int(record["step"])} | {
                    "metric": metric, "value": value, "unit": UNITS[metric]
                }  # fmt: skip

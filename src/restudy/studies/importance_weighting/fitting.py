"""One training run, from scratch or from where another ended: deterministic, resumable to the same bits."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from restudy.errors import RestudyError, ResultError
from restudy.methods.importance import (
    DeepGaussianAutoencoder,
    Objective,
    active_units,
    backward,
    bound_of_groups,
    draw_log_weights,
    unit_variances,
)
from restudy.methods.models import derive_seed
from restudy.methods.training import load_checkpoint, save_checkpoint
from restudy.studies.importance_weighting.images import Batches

BETAS, EPSILON = (0.9, 0.999), 1e-4
CURVE_SAMPLES, CURVE_IMAGES = 10, 500


@dataclass(frozen=True)
class Recipe:
    """What a run does from `start` to `stop`; stands in every checkpoint.

    Attributes:
        name: of the arm or of the swap.
        objective: gradient estimator. k: samples for each image.
        seed: of noise, order and pixels.
        start: step from which it goes on. stop: step before which it ends.
        rates: (first step, step size of Adam) of each stage, in order.
        every: steps between two measurements, after each of which a checkpoint is written.
    """

    name: str
    objective: str
    k: int
    seed: int
    start: int
    stop: int
    rates: list[list[float]]
    every: int

    def rate(self, step: int) -> float:
        """Step size at a step."""
        return [rate for first, rate in self.rates if step >= first][-1]


@dataclass
class Run:
    """A model in training: what a checkpoint holds."""

    model: DeepGaussianAutoencoder
    optimizer: torch.optim.Optimizer
    step: int
    records: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0


def stages(steps: int, first: float, last: float, count: int, growth: float = 1.0) -> list[list[float]]:
    """(First step, step size) of `count` stages: sizes fall geometrically, each stage is `growth` times as long.

    The paper has 10^-3 to 10^-4 in 8 stages of growth 3 (section 5).
    """
    ratio = (last / first) ** (1 / max(count - 1, 1))
    lengths = [growth**i for i in range(count)]
    ends = [sum(lengths[:i]) / sum(lengths) for i in range(count)]
    return [[round(steps * end), first * ratio**i] for i, end in enumerate(ends)]


def adam(model: DeepGaussianAutoencoder) -> torch.optim.Optimizer:
    """The paper's Adam, its step size set at every step."""
    return torch.optim.Adam(model.parameters(), lr=1.0, betas=BETAS, eps=EPSILON, fused=True)


def fit(run: Run, batches: Batches, recipe: Recipe, checkpoint: Path) -> Run:
    """Train in place from `recipe.start` to `recipe.stop`.

    Args:
        run: model and optimizer as they are at the start.
        batches: the data.
        recipe: what to do.
        checkpoint: file written after every measurement; where it is found, training goes on there, to the same bits.

    Raises:
        RestudyError: the bound is not finite. ResultError: a checkpoint of another recipe.
    """
    _load(run, recipe, checkpoint)
    if not run.records:
        run.records.append(_measure(run, batches, recipe))
    total, since = 0.0, 0
    while run.step < recipe.stop:
        begin = time.process_time()
        x = batches.at(run.step)
        generator = torch.Generator().manual_seed(derive_seed(recipe.seed, "noise", run.step))
        for group in run.optimizer.param_groups:
            group["lr"] = recipe.rate(run.step)
        run.optimizer.zero_grad(set_to_none=True)
        objective: Objective = recipe.objective  # type: ignore[assignment]
        bound = backward(objective, run.model, x, run.model.draw_noise(recipe.k, len(x), generator))
        run.optimizer.step()
        run.step += 1
        run.seconds += time.process_time() - begin
        total, since = total + float(bound.mean()), since + 1
        if run.step % recipe.every == 0 or run.step == recipe.stop:
            if not math.isfinite(total):
                raise RestudyError(f"{recipe.name} diverged before step {run.step}", remedy="lower its step size")
            run.records.append(_measure(run, batches, recipe) | {"train_bound": total / since})
            total, since = 0.0, 0
            _save(run, recipe, checkpoint)
    return run


def _measure(run: Run, batches: Batches, recipe: Recipe) -> dict[str, float]:
    """Step, L_10 of test images, and active units of each layer."""
    x = batches.images.test[:CURVE_IMAGES]
    generator = torch.Generator().manual_seed(derive_seed(recipe.seed, "curve"))
    log_w = draw_log_weights(run.model, x, CURVE_SAMPLES, generator)
    found = {"step": float(run.step), "test_bound": float(bound_of_groups(log_w, CURVE_SAMPLES).mean())}
    for layer, variances in enumerate(unit_variances(run.model, batches.images.test, generator), 1):
        found[f"active_units_{layer}"] = float(active_units(variances))
    return found


def _save(run: Run, recipe: Recipe, path: Path) -> None:
    content: dict[str, Any] = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict()}
    facts = {"step": run.step, "records": run.records, "seconds": run.seconds, "recipe": asdict(recipe)}
    save_checkpoint(path, content | facts)


def _load(run: Run, recipe: Recipe, path: Path) -> None:
    content = load_checkpoint(path)
    if content is None:
        return
    if content["recipe"] != asdict(recipe):
        raise ResultError("the checkpoint is of another run", where=str(path), remedy="delete it")
    run.model.load_state_dict(content["model"])
    run.optimizer.load_state_dict(content["optimizer"])
    run.step, run.records, run.seconds = content["step"], content["records"], content["seconds"]

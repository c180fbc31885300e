"""One training loop for every model of the study: deterministic, resumable to the same bits."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn

from restudy.errors import ResultError
from restudy.methods.training import load_checkpoint, save_checkpoint


class Task(Protocol):
    """What is trained: all chance comes from the step's number, so that a resumed run sees the same batches."""

    @property
    def model(self) -> nn.Module:
        """The parameters that are trained."""
        ...

    def loss(self, step: int) -> Tensor:
        """The scalar to go down."""
        ...

    def numbers(self) -> dict[str, float]:
        """More numbers of the step that was just taken, averaged over a window like the loss."""
        ...


@dataclass(frozen=True)
class Recipe:
    """How a task is trained; stands in every checkpoint.

    Attributes:
        steps, rate: of the optimiser. optimizer: Adam, or SGD with momentum .9. cosine: decay of the rate to 0.
        window: steps that a row of the curves averages over. name: of arm, seed and size.
    """

    name: str
    steps: int
    rate: float
    optimizer: Literal["adam", "sgd"]
    cosine: bool
    window: int


@dataclass
class Curves:
    """Rows {step, metric: mean over the window}, CPU seconds of training up to each.

    `diverged`: the loss was not finite, or the solver gave up; the weights are those before that step.
    """

    rows: list[dict[str, float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    diverged: bool = False

    def last(self, metric: str, share: float = 0.1) -> float:
        """Mean of a metric over the last share of the steps, at least one row."""
        return self._mean(metric, self.rows[-max(1, round(share * len(self.rows))) :])

    def first(self, metric: str, share: float = 0.1) -> float:
        """Mean of a metric over the first share of the steps, at least one row."""
        return self._mean(metric, self.rows[: max(1, round(share * len(self.rows)))])

    def judged(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Rows of a table, their values NaN where the run diverged: a failed replicate, whatever the weights say."""
        return [row | {"value": math.nan} for row in rows] if self.diverged else rows

    @staticmethod
    def _mean(metric: str, rows: list[dict[str, float]]) -> float:
        return sum(row.get(metric, math.nan) for row in rows) / len(rows)


def fit(task: Task, recipe: Recipe, checkpoint: Path, checkpoint_every: int = 4) -> Curves:
    """Train in place, in training mode.

    Args:
        checkpoint: written every `checkpoint_every` windows; a run that finds it goes on there.

    Raises:
        ResultError: a checkpoint of another recipe.
    """
    optimizer = _optimizer(task.model, recipe)
    curves = _resume(checkpoint, task.model, optimizer, recipe)
    step = int(curves.rows[-1]["step"]) if curves.rows else 0
    while step < recipe.steps and not curves.diverged:
        until = min(step + recipe.window, recipe.steps)
        sums: dict[str, float] = {}
        start = time.process_time()
        for number in range(step, until):
            for group in optimizer.param_groups:
                group["lr"] = recipe.rate * (_cosine(number, recipe.steps) if recipe.cosine else 1.0)
            value = _step(task, optimizer, number)
            curves.diverged = not math.isfinite(value)
            if curves.diverged:
                break
            for name, found in {"loss": value, **task.numbers()}.items():
                sums[name] = sums.get(name, 0.0) + found
        curves.seconds.append((curves.seconds[-1] if curves.seconds else 0.0) + time.process_time() - start)
        sums = {"loss": math.nan} if curves.diverged else sums
        curves.rows.append({"step": until} | {name: total / (until - step) for name, total in sums.items()})
        step = until
        if len(curves.rows) % checkpoint_every == 0 or step == recipe.steps or curves.diverged:
            content = {"model": task.model.state_dict(), "optimizer": optimizer.state_dict()}
            save_checkpoint(checkpoint, content | {"recipe": vars(recipe), "curves": vars(curves)})
    return curves


def _step(task: Task, optimizer: torch.optim.Optimizer, number: int) -> float:
    """Take a step unless the loss is not finite or the solver gives up; the loss before it, NaN in those cases."""
    try:
        loss = task.loss(number)
        if not math.isfinite(value := float(loss.detach())):
            return math.nan
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
    except AssertionError as error:
        # How torchdiffeq says that its step has become too small, or the state infinite.
        if not any(text in str(error) for text in ("underflow in dt", "non-finite")):
            raise
        return math.nan
    optimizer.step()
    return value


def _cosine(step: int, steps: int) -> float:
    return 0.5 * (1 + math.cos(math.pi * step / steps))


def _optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(model.parameters(), recipe.rate, momentum=0.9)
    return torch.optim.Adam(model.parameters(), recipe.rate, fused=True)


def _resume(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, recipe: Recipe) -> Curves:
    content: dict[str, Any] | None = load_checkpoint(path)
    if content is None:
        return Curves()
    if content["recipe"] != vars(recipe):
        raise ResultError("the checkpoint is of another run", where=str(path), remedy="delete it")
    model.load_state_dict(content["model"])
    optimizer.load_state_dict(content["optimizer"])
    return Curves(**content["curves"])

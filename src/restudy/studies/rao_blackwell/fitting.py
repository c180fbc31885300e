"""One training run of an arm: deterministic, resumable after every epoch to the same bits."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from restudy.errors import RestudyError, ResultError
from restudy.methods.estimators import GumbelSoftmax, Marginal, RaoBlackwell, Relax, ScoreFunction
from restudy.methods.estimators.gumbel import annealed
from restudy.methods.models import derive_seed
from restudy.methods.training import load_checkpoint, save_checkpoint

Estimator = GumbelSoftmax | Marginal | RaoBlackwell | Relax | ScoreFunction
WEIGHT_DECAY = 1e-5


@dataclass(frozen=True)
class Annealing:
    """Temperature of Gumbel-softmax: start * exp(-rate * step), not below the lowest."""

    start: float
    rate: float
    lowest: float


class Task(Protocol):
    """What is trained: parameters, the order of the data, a loss for a batch, and measurements."""

    @property
    def model(self) -> nn.Module:
        """The parameters that are trained."""
        ...

    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of an epoch, the same for every arm of a seed."""
        ...

    def loss(self, batch: Any, estimator: Estimator, generator: torch.Generator) -> Tensor:
        """The scalar to go down, a pseudo-loss where z is drawn."""
        ...

    def measure(self) -> dict[str, float]:
        """Metric -> value on the validation part."""
        ...


@dataclass(frozen=True)
class Record:
    """What was measured after an epoch (0: before the first): steps taken, metrics, CPU seconds of training."""

    epoch: int
    steps: int
    metrics: dict[str, float]
    cpu_seconds: float


@dataclass(frozen=True)
class Recipe:
    """How an arm is trained, whatever the task; stands in every checkpoint."""

    arm: str
    seed: int
    epochs: int
    learning_rate: float
    annealing: Annealing


def fit(
    task: Task, build: Callable[[float], Estimator], recipe: Recipe, checkpoint: Path | None = None
) -> list[Record]:
    """Train with Adam and measure after every epoch.

    Args:
        task: what is trained, in place.
        build: makes the estimator at a temperature; called anew at every step for Gumbel-softmax, else once.
        recipe: seed, epochs, step size.
        checkpoint: file written after every epoch; a run that finds it goes on there, to the same bits.

    Raises:
        RestudyError: the loss is not finite. ResultError: a checkpoint of another recipe.
    """
    estimator = build(recipe.annealing.start)
    if isinstance(estimator, Relax):
        estimator.to(next(task.model.parameters()).device)
    own = list(estimator.parameters()) if isinstance(estimator, Relax) else []
    optimizer = torch.optim.Adam(task.model.parameters(), recipe.learning_rate, weight_decay=WEIGHT_DECAY, fused=True)
    second = torch.optim.Adam(own, recipe.learning_rate, fused=True) if own else None
    state = _State(task.model, estimator, optimizer, second)
    records = state.load(checkpoint, recipe) or [Record(0, 0, task.measure(), 0.0)]
    while len(records) <= recipe.epochs:
        epoch, steps = len(records) - 1, records[-1].steps
        generator = torch.Generator().manual_seed(derive_seed(recipe.seed, "draws", epoch))
        start = time.process_time()
        for batch in task.batches(epoch):
            if isinstance(estimator, GumbelSoftmax):
                a = recipe.annealing
                estimator = build(annealed(a.start, a.rate, steps, a.lowest))
            _step(task, estimator, batch, generator, optimizer, second, own)
            steps += 1
        seconds = records[-1].cpu_seconds + time.process_time() - start
        metrics = task.measure()
        if not all(math.isfinite(v) for v in metrics.values()):
            raise RestudyError(f"{recipe.arm} diverged in epoch {epoch + 1}", remedy="lower its learning rate")
        records.append(Record(epoch + 1, steps, metrics, seconds))
        state.save(checkpoint, recipe, records)
    return records


def _step(
    task: Task,
    estimator: Estimator,
    batch: Any,
    generator: torch.Generator,
    optimizer: torch.optim.Optimizer,
    second: torch.optim.Optimizer | None,
    own: list[nn.Parameter],
) -> None:
    loss = task.loss(batch, estimator, generator)
    optimizer.zero_grad(set_to_none=True)
    if second is not None and isinstance(estimator, Relax):
        for parameter, gradient in zip(own, torch.autograd.grad(estimator.variance_loss, own), strict=True):
            parameter.grad = gradient
        second.step()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


@dataclass
class _State:
    model: nn.Module
    estimator: Estimator
    optimizer: torch.optim.Optimizer
    second: torch.optim.Optimizer | None

    def _parts(self) -> Mapping[str, Any]:
        parts: dict[str, Any] = {"model": self.model, "optimizer": self.optimizer}
        if self.second is not None:
            parts |= {"estimator": self.estimator, "second": self.second}
        return parts

    def save(self, path: Path | None, recipe: Recipe, records: list[Record]) -> None:
        """Write everything that the next epoch depends on."""
        if path is not None:
            content = {name: part.state_dict() for name, part in self._parts().items()}
            save_checkpoint(path, content | {"recipe": asdict(recipe), "records": [asdict(r) for r in records]})

    def load(self, path: Path | None, recipe: Recipe) -> list[Record]:
        """Take up a checkpoint; its records, none where there is none."""
        content = load_checkpoint(path) if path is not None else None
        if content is None:
            return []
        if content["recipe"] != asdict(recipe):
            raise ResultError("the checkpoint is of another run", where=str(path), remedy="delete it")
        for name, part in self._parts().items():
            part.load_state_dict(content[name])
        return [Record(**r) for r in content["records"]]

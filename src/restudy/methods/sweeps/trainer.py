"""Train a stack of trials of one batch size: measured at fixed steps, frozen once diverged, resumed after a kill."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.errors import ConfigError, ResultError
from restudy.methods.models import derive_seed
from restudy.methods.sweeps.measurements import COMPLETE, INFEASIBLE
from restudy.methods.sweeps.programs import Program, Rule, build
from restudy.methods.training import load_checkpoint, save_checkpoint

DIVERGED = 2.0
"""A trial is infeasible when its training loss is above this multiple of the initial one: nets die without NaN."""
METRICS = ("validation_error", "test_error", "train_loss")
SCHEMA = pa.schema(
    [("batch_size", pa.int64()), ("trial_id", pa.int64()), ("step", pa.int64()), ("status", pa.string())]
    + [(name, pa.float64()) for name in METRICS]
)
Look = Callable[[int, Program, Sequence[int]], Sequence[float] | None]


@dataclass(frozen=True)
class Task:
    """Data of a workload: inputs (N, ...) float and labels (N,) int64, four times.

    `train` is trained on; `monitor` is a fixed part of it whose loss decides about divergence; `validation` decides
    about the goal; `test` is only looked at.
    """

    train: tuple[Tensor, Tensor]
    monitor: tuple[Tensor, Tensor]
    validation: tuple[Tensor, Tensor]
    test: tuple[Tensor, Tensor]

    def to(self, device: str) -> Task:
        """The same on a device."""
        parts = (self.train, self.monitor, self.validation, self.test)
        return Task(*((x.to(device), y.to(device)) for x, y in parts))


@dataclass(frozen=True)
class Trial:
    """One trial: its number, learning rate eta, momentum m, and the seed of its initial weights."""

    trial_id: int
    learning_rate: float
    momentum: float
    init_seed: int


@dataclass(frozen=True)
class Run:
    """What a stack does besides its trials.

    Attributes:
        rule: `sgd`, `momentum` or `nesterov`. batch_size, steps: as usual; `steps` is the step budget. seed: of the
            order of the data, which all trials of the stack share. ratio: between neighbouring measured steps, from
            `dense_from` (a share of the budget) on; sparser before. method: see `programs.build`. look_at: steps after
            which `look` is called.
    """

    rule: Rule
    batch_size: int
    steps: int
    seed: int
    ratio: float = 1.05
    dense_from: float = 0.01
    method: str = "auto"
    look_at: tuple[int, ...] = ()


@dataclass
class Result:
    """Measurements of a stack (table `SCHEMA`), and the step at which each trial was frozen (-1: never).

    `looks`: what `look` returned, as (step, numbers).
    """

    measurements: pa.Table
    diverged_at: dict[int, int]
    looks: list[tuple[int, list[float]]] = field(default_factory=list)


def measured_steps(steps: int, ratio: float = 1.05, dense_from: float = 0.01) -> list[int]:
    """Steps after which to measure: 0, then log-spaced: neighbours differ by `ratio` above `dense_from` of the budget.

    Below that they differ by 1.5, to find divergence early; always includes the last step. S is therefore known to
    within one ratio. Raises ConfigError for a ratio of 1 or less, or no steps.
    """
    if ratio <= 1 or steps < 1 or not 0 <= dense_from <= 1:
        raise ConfigError(f"steps {steps}, ratio {ratio:g}, dense_from {dense_from:g}", where="measured_steps")
    found, at = {0, steps}, 1.0
    while at < steps:
        found.add(round(at))
        at = max(at * (ratio if at >= dense_from * steps else max(ratio, 1.5)), 0.0)
    return sorted(found)


class Batches:
    """Batches without replacement: each pass over the data has an order of its own, what does not fill a batch waits.

    The order is determined by the seed and the number of the pass alone, so any step can be had without those before.
    """

    def __init__(self, inputs: Tensor, labels: Tensor, batch_size: int, seed: int) -> None:
        if not 1 <= batch_size <= len(inputs):
            raise ConfigError(f"batches of {batch_size} from {len(inputs)} examples", remedy="lower the batch size")
        self.inputs, self.labels, self.batch_size, self.seed = inputs, labels, batch_size, seed
        self.each = len(inputs) // batch_size
        self._pass, self._x, self._y = -1, inputs, labels

    def at(self, step: int) -> tuple[Tensor, Tensor]:
        """The batch of the step with this number, from 0."""
        number, place = divmod(step, self.each)
        if number != self._pass:
            generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", number))
            order = torch.randperm(len(self.inputs), generator=generator).to(self.labels.device)
            order = order[: self.each * self.batch_size]
            self._pass, self._x, self._y = number, self.inputs[order], self.labels[order]
        own = slice(place * self.batch_size, (place + 1) * self.batch_size)
        return self._x[own], self._y[own]


def train_stack(
    make: Callable[[int], nn.Module],
    trials: Sequence[Trial],
    task: Task,
    run: Run,
    *,
    checkpoint: Path | None = None,
    save_seconds: float = 15.0,
    look: Look | None = None,
) -> Result:
    """Train the trials together and measure them.

    Args:
        make: a module from a seed; all of one architecture. trials: with different `trial_id`. task: on the device to
            train on. checkpoint: file that holds the stack's state, written every `save_seconds` at a measured step
            and at the end; a call that finds it goes on there and gives the same numbers. look: called after the steps
            of `run.look_at` with the step, the program and the `trial_id` of each of its trials.

    Returns:
        Measurements of every trial up to its budget, or up to the step at which it was found to have diverged (not
        finite, or training loss above twice its initial value). Diverged trials leave the stack, the others go on;
        they are `infeasible` in every row, and never drawn again.

    Raises:
        ConfigError: what `build`, `Batches` and `measured_steps` refuse. ResultError: a checkpoint of another run.
    """
    stack = _Stack(make, trials, task, run, checkpoint)
    measure, looks = set(measured_steps(run.steps, run.ratio, run.dense_from)), set(run.look_at)
    batches = Batches(*task.train, run.batch_size, run.seed)
    saved = time.monotonic()
    with _flushed():
        if stack.step == 0 and not stack.rows:
            stack.measure()
        while stack.step < run.steps and stack.alive:
            stack.program.step(*batches.at(stack.step))
            stack.step += 1
            if stack.step in looks and look is not None:
                seen = look(stack.step, stack.program, stack.alive)
                if seen is not None:
                    stack.looks.append((stack.step, [float(v) for v in seen]))
            if stack.step in measure:
                stack.measure()
                if checkpoint is not None and time.monotonic() - saved > save_seconds:
                    stack.save(checkpoint)
                    saved = time.monotonic()
    if checkpoint is not None:
        stack.save(checkpoint, finished=True)
    return stack.result()


class _Stack:
    """The state of a stack: program, which trials are alive, what was measured."""

    def __init__(
        self,
        make: Callable[[int], nn.Module],
        trials: Sequence[Trial],
        task: Task,
        run: Run,
        checkpoint: Path | None,
    ) -> None:
        if len({t.trial_id for t in trials}) < len(trials) or not trials:
            raise ConfigError("no trials, or two of one number", where="train_stack")
        self.task, self.run, self.trials = task, run, list(trials)
        device = task.train[0].device
        rates = torch.tensor([t.learning_rate for t in trials])
        momenta = torch.tensor([t.momentum for t in trials])
        models = [make(t.init_seed).to(device) for t in trials]
        self.program = build(models, run.rule, rates.to(device), momenta.to(device), run.method)
        self.alive = [t.trial_id for t in trials]
        self.step = 0
        self.rows: list[Tensor] = []
        self.first: dict[int, float] = {}
        self.diverged_at = {t.trial_id: -1 for t in trials}
        self.looks: list[tuple[int, list[float]]] = []
        parts = [tensor.detach().cpu().numpy().tobytes() for tensor in task.train]
        digest = hashlib.sha256(b"".join(parts)).hexdigest()
        self.settings = f"{run} {self.trials} {digest}"
        self._resume(checkpoint)

    def measure(self) -> None:
        """Measure all living trials; those that diverged leave the stack."""
        found = [self.program.evaluate(*part) for part in (self.task.monitor, self.task.validation, self.task.test)]
        losses = found[0][0].double().cpu()
        columns = [torch.tensor(self.alive, dtype=torch.float64), torch.full_like(losses, self.step)]
        columns += [found[1][1].double().cpu(), found[2][1].double().cpu(), losses]
        self.rows.append(torch.stack(columns, 1))
        if not self.first:
            self.first = {t: max(float(loss), 1e-12) for t, loss in zip(self.alive, losses, strict=True)}
        fine = [
            math.isfinite(loss) and loss <= DIVERGED * self.first[t]
            for t, loss in zip(self.alive, losses.tolist(), strict=True)
        ]
        if not all(fine):
            index = [i for i, ok in enumerate(fine) if ok]
            for trial in (t for t, ok in zip(self.alive, fine, strict=True) if not ok):
                self.diverged_at[trial] = self.step
            self.alive = [self.alive[i] for i in index]
            if index:
                self.program.keep(torch.tensor(index, device=self.task.train[0].device))

    def save(self, path: Path, finished: bool = False) -> None:
        """Write everything that changes; the weights of a finished stack are no longer needed."""
        content = {"settings": self.settings, "step": self.step, "alive": self.alive, "rows": self.rows}
        content |= {"first": self.first, "diverged_at": self.diverged_at, "looks": self.looks}
        save_checkpoint(path, {**content, "program": {} if finished else self.program.state()})

    def _resume(self, path: Path | None) -> None:
        content = load_checkpoint(path) if path is not None else None
        if content is None:
            return
        if content.get("settings") != self.settings:
            raise ResultError(
                "is a checkpoint of another run", where=str(path), remedy="delete it; training starts anew"
            )
        self.step, self.alive, self.rows = content["step"], content["alive"], content["rows"]
        self.first, self.diverged_at = content["first"], content["diverged_at"]
        self.looks = [(step, list(seen)) for step, seen in content["looks"]]
        if content["program"]:
            self.program.load(content["program"])

    def result(self) -> Result:
        """The measurements as a table, by trial and step."""
        rows: npt.NDArray[np.float64] = torch.cat(self.rows).numpy()
        rows = rows[np.lexsort((rows[:, 1], rows[:, 0]))]
        ids = rows[:, 0].astype(np.int64)
        status = [COMPLETE if self.diverged_at[t] < 0 else INFEASIBLE for t in ids.tolist()]
        columns = [np.full(len(rows), self.run.batch_size, dtype=np.int64), ids, rows[:, 1].astype(np.int64), status]
        table = pa.table([pa.array(c) for c in (*columns, *rows[:, 2:].T)], schema=SCHEMA)
        return Result(table, self.diverged_at, self.looks)


@contextmanager
def _flushed() -> Iterator[None]:
    """Treat denormal numbers as 0: velocities of dead units decay into them, and a CPU is slow there."""
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)

"""What follows a search: the best trials again, trials by rule, squared gradient norms on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from restudy.methods.models import derive_seed
from restudy.methods.sweeps import best_errors, steps_to_result
from restudy.methods.sweeps.gradients import squared_norms
from restudy.methods.sweeps.programs import Program
from restudy.methods.sweeps.search import Range, sobol
from restudy.methods.sweeps.trainer import Task, Trial

RERUN, FROZEN, LINEAR, SQUARE_ROOT = 100, 200, 300, 400
"""First trial number of each kind; searches have lower numbers."""
EXPONENTS = {"linear": 1.0, "square_root": 0.5}


def best_of(measurements: pa.Table, trials: Sequence[Trial], goal: float) -> tuple[Trial, float] | None:
    """The trial of one batch size that reached the goal first, with its steps; else the one of least error, with NaN.

    None when every trial diverged.
    """
    row = steps_to_result(measurements, goal).to_pylist()[0]
    number, steps = row["trial_id"], row["steps"]
    if number is None:
        least = best_errors(measurements).to_pylist()
        if not least:
            return None
        number = least[0]["trial_id"]
    return next(t for t in trials if t.trial_id == number), float(steps)


def follow_ups(
    best: Mapping[int, tuple[Trial, float]],
    smallest: int,
    batch_size: int,
    seed: int,
    reruns: int,
    line_trials: int,
    box: Mapping[str, Range],
) -> dict[int, tuple[str, Trial]]:
    """The trials that follow at a batch size: number -> kind and trial.

    `rerun`: the rates of its best trial, other weights and order of the data. `frozen`: the rates of the best trial of
    the smallest batch. `linear`, `square_root`: the effective learning rate that the rule predicts from the smallest
    batch, with the momentum searched anew (Sobol), as many trials as `line_trials`.
    """
    own, base = best[batch_size][0], best[smallest][0]
    found: dict[int, tuple[str, Trial]] = {}

    def add(kind: str, first: int, i: int, rate: float, momentum: float) -> None:
        number = first + i
        found[number] = (kind, Trial(number, rate, momentum, derive_seed(seed, "init", "follow", i)))

    for i in range(reruns):
        add("rerun", RERUN, i, own.learning_rate, own.momentum)
    if batch_size == smallest:
        return found
    for i in range(reruns):
        add("frozen", FROZEN, i, base.learning_rate, base.momentum)
    if line_trials:
        ranges = {"one_minus_momentum": box["one_minus_momentum"]}
        rest = sobol(ranges, line_trials, derive_seed(seed, "line", batch_size) % 2**32)["one_minus_momentum"]
        for kind, first in (("linear", LINEAR), ("square_root", SQUARE_ROOT)):
            effective = base.learning_rate / (1 - base.momentum) * (batch_size / smallest) ** EXPONENTS[kind]
            for i in range(line_trials):
                add(kind, first, i, effective * float(rest[i]), 1 - float(rest[i]))
    return found


def noise_look(
    model: nn.Module, task: Task, seed: int, batch: int, pieces: int, trial_id: int
) -> Callable[[int, Program, Sequence[int]], tuple[float, float] | None]:
    """A function for `train_stack(look=...)`: |g|^2 of small and big batches at the weights of one trial.

    Examples are drawn with replacement from the training set, which is the population here. None once the trial has
    diverged.
    """
    inputs, labels = task.train

    def look(step: int, program: Program, alive: Sequence[int]) -> tuple[float, float] | None:
        if trial_id not in alive:
            return None
        generator = torch.Generator().manual_seed(derive_seed(seed, "noise", step))
        drawn = torch.randint(len(labels), (batch,), generator=generator).to(labels.device)
        own = program.parameters(alive.index(trial_id))
        norms = squared_norms(model, own, inputs[drawn], labels[drawn], pieces=pieces)
        return norms if all(math.isfinite(n) for n in norms) else (np.nan, np.nan)

    return look

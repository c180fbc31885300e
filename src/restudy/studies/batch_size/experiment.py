"""Search at every batch size, then the best trials again and trials by rule; the noise scale; the time of a step.

Stage `sweep`: `measurements` holds every measured step of every trial, `trials` what each trial came to, `boxes` the
searched ranges, `noise` squared gradient norms along the best trial of the smallest batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import nn

from restudy.bench.context import Context, Outputs
from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.sweeps import best_errors, first_steps, steps_to_result
from restudy.methods.sweeps.gradients import squared_norms
from restudy.methods.sweeps.programs import Program, build
from restudy.methods.sweeps.search import Range, sobol
from restudy.methods.sweeps.trainer import METRICS, Result, Run, Task, Trial, train_stack
from restudy.methods.training import keep_freed_memory

from .models import CLASSES, Workload, draw_trials, load, make_model, parse, searched, step_budget

Row = dict[str, Any]
TIMED = "fashion-mlp64-sgd"
MEASUREMENTS = ("workload", "seed", "kind", "batch_size", "trial_id", "step", "status", *METRICS)
RERUN, FROZEN, LINEAR, SQUARE_ROOT = 100, 200, 300, 400
"""First trial number of each kind; searches have lower numbers."""
EXPONENTS = {"linear": 1.0, "square_root": 0.5}


@dataclass(frozen=True)
class Plan:
    """What all stacks of a replicate share."""

    name: str
    workload: Workload
    seed: int
    task: Task
    box: Mapping[str, Range]
    goals: Mapping[str, float]
    batch_sizes: tuple[int, ...]
    first_budget: int
    least_budget: int
    side: int
    ratio: float
    method: str
    checkpoints: Path

    def budget(self, batch_size: int) -> int:
        """Steps that every trial of a batch size is given."""
        return step_budget(batch_size, self.batch_sizes[0], self.first_budget, self.least_budget)

    def train(
        self, part: str, batch_size: int, trials: Sequence[Trial], looks: tuple[int, ...] = (), look: Any = None
    ) -> Result:
        """Train a stack, from its checkpoint where there is one; `part` names it and its order of the data."""
        seed = derive_seed(self.seed, "order", part, batch_size)
        run = Run(
            self.workload.rule, batch_size, self.budget(batch_size), seed, self.ratio, method=self.method, look_at=looks
        )
        path = self.checkpoints / f"{self.name}-s{self.seed}-{part}-b{batch_size}.pt"
        make = partial(make_model, self.workload, self.side)
        return train_stack(make, trials, self.task, run, checkpoint=path, look=look)


def sweep(
    context: Context,
    *,
    workload: str,
    seeds: Sequence[int],
    trials: int,
    batch_sizes: Mapping[str, Sequence[int]],
    first_budget: Mapping[str, int],
    least_budget: int,
    goals: Mapping[str, float],
    goal_steps: Sequence[float],
    rates: Sequence[float],
    one_minus_momentum: Sequence[float],
    reruns: int,
    line_trials: int,
    noise_looks: int,
    noise_batch: int,
    noise_pieces: int,
    train_images: int,
    validation_images: int,
    test_images: int,
    monitor_images: int,
    side: int,
    ratio: float,
    method: str,
) -> Outputs:
    """Repeat the whole sweep of a workload for every seed.

    Returns `measurements` (every measured step of every trial), `trials` (what each trial came to), `boxes` (the
    searched ranges) and `noise` (squared gradient norms along the best trial of the smallest batch).
    """
    keep_freed_memory()
    chosen = parse(workload)
    if chosen.goal not in goals or chosen.source not in batch_sizes or chosen.source not in first_budget:
        raise ConfigError(f"no goal, batch sizes or budget for {workload}", remedy="add them to study.yaml")
    box = searched((rates[0], rates[1]), (one_minus_momentum[0], one_minus_momentum[1]))
    goal = goals[chosen.goal]
    named = {"easier": goal + goal_steps[0], "stated": goal, "harder": goal - goal_steps[1]}
    found: dict[str, list[Any]] = {"measurements": [], "trials": [], "boxes": [], "noise": []}
    for seed in seeds:
        images = {"train": train_images, "validation": validation_images, "test": test_images}
        task = load(chosen, seed, **images, monitor=monitor_images, side=side).to(context.device)
        sizes = tuple(sorted({min(int(b), len(task.train[0])) for b in batch_sizes[chosen.source]}))
        plan = Plan(
            *(workload, chosen, seed, task, box, named, sizes, int(first_budget[chosen.source]), least_budget),
            *(side, ratio, method, context.checkpoints),
        )
        best = _search(plan, trials, found)
        _follow(plan, best, reruns, line_trials, (noise_looks, noise_batch, noise_pieces), found)
        where = {"workload": workload, "seed": seed}
        found["boxes"] += [{**where, "metric": name, "low": r.low, "high": r.high} for name, r in box.items()]
    columns = {name: [value for part in found["measurements"] for value in part[name]] for name in MEASUREMENTS}
    return {**found, "measurements": columns}


def _search(plan: Plan, count: int, found: dict[str, list[Any]]) -> dict[int, tuple[Trial, float]]:
    """Train the drawn trials at every batch size; return the best of each with its steps (NaN: only its error)."""
    drawn = draw_trials(plan.workload, plan.seed, count, plan.box)
    best: dict[int, tuple[Trial, float]] = {}
    for batch_size in plan.batch_sizes:
        result = plan.train("search", batch_size, drawn)
        _record(plan, result, batch_size, {t.trial_id: ("search", t) for t in drawn}, found)
        own = best_of(result.measurements, drawn, plan.goals["stated"])
        if own is not None:
            best[batch_size] = own
    return best


def _follow(
    plan: Plan,
    best: Mapping[int, tuple[Trial, float]],
    reruns: int,
    line_trials: int,
    noise: tuple[int, int, int],
    found: dict[str, list[Any]],
) -> None:
    """Train best trials again and trials by rule; measure the noise scale at the smallest batch size."""
    smallest = plan.batch_sizes[0]
    for batch_size in plan.batch_sizes:
        if smallest not in best or batch_size not in best:
            continue
        lines = line_trials if plan.workload.rule != "sgd" else 0
        named = follow_ups(best, smallest, batch_size, plan.seed, reruns, lines, plan.box)
        if not named:
            continue
        looks: tuple[int, ...] = ()
        look = None
        if batch_size == smallest and noise[0]:
            until = best[smallest][1]
            until = plan.budget(smallest) if np.isnan(until) else max(until, 1)
            looks = tuple(sorted({max(1, round(s)) for s in np.linspace(until / noise[0], until, noise[0])}))
            model = make_model(plan.workload, plan.side, 0).to(plan.task.train[0].device)
            look = noise_look(model, plan.task, plan.seed, noise[1], noise[2], min(named))
        result = plan.train("follow", batch_size, [t for _, t in named.values()], looks, look)
        _record(plan, result, batch_size, named, found)
        at = {"workload": plan.name, "seed": plan.seed, "batch_size": batch_size, "unit": "1"}
        at |= {"small_batch": noise[1] // max(noise[2], 1), "big_batch": noise[1]}
        for step, seen in result.looks:
            for metric, value in zip(("small_norm", "big_norm"), seen, strict=True):
                found["noise"].append({**at, "step": step, "metric": metric, "value": value})


def _record(
    plan: Plan, result: Result, batch_size: int, named: Mapping[int, tuple[str, Trial]], found: dict[str, list[Any]]
) -> None:
    """Add a stack's measurements, and for each trial its steps to every goal, best error and step of divergence."""
    table = result.measurements
    count = table.num_rows
    ids = table["trial_id"].to_pylist()
    columns = {"workload": [plan.name] * count, "seed": [plan.seed] * count, "kind": [named[i][0] for i in ids]}
    found["measurements"].append(columns | {"batch_size": [batch_size] * count} | table.to_pydict())
    steps = {f"steps_{name}": first_steps(table, goal) for name, goal in plan.goals.items() if name != "stated"}
    steps["steps"] = first_steps(table, plan.goals["stated"])
    steps["steps_test"] = first_steps(table, plan.goals["stated"], metric="test_error")
    for i, (kind, trial) in named.items():
        own = table.filter(pc.equal(table["trial_id"], i))
        least = best_errors(own)
        at = {"workload": plan.name, "seed": plan.seed, "kind": kind, "batch_size": batch_size, "trial_id": i}
        at |= {"learning_rate": trial.learning_rate, "momentum": trial.momentum}
        at |= {"effective_learning_rate": trial.learning_rate / (1 - trial.momentum)}
        at |= {"status": own["status"][0].as_py(), "step_budget": plan.budget(batch_size)}
        values = {name: _of(one, i) for name, one in steps.items()}
        units = dict.fromkeys(values, "steps") | {"best_error": "1", "diverged_at": "steps"}
        values["best_error"] = least["value"][0].as_py() if least.num_rows else float("nan")
        values["diverged_at"] = float(result.diverged_at[i])
        found["trials"] += [{**at, "metric": m, "value": v, "unit": units[m]} for m, v in values.items()]


def _of(table: pa.Table, trial_id: int) -> float:
    return float(table["steps"][table["trial_id"].to_pylist().index(trial_id)].as_py())


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


def timing(
    context: Context, *, seeds: Sequence[int], timed_batch_sizes: Sequence[int], timed_steps: int, side: int
) -> Outputs:
    """Return `timings`: median CPU seconds of a step of one MLP with plain SGD, random inputs, one thread."""
    keep_freed_memory()
    rows: list[Row] = []
    for seed in seeds:
        for batch_size in timed_batch_sizes:
            value = median_step(batch_size, timed_steps, side, seed, context.device)
            at = {"seed": seed, "batch_size": batch_size, "metric": "cpu_per_step", "unit": "seconds"}
            rows.append({**at, "value": value})
    return {"timings": rows}


def median_step(batch_size: int, steps: int, side: int, seed: int, device: str = "cpu") -> float:
    """Median process CPU time of a step, in seconds."""
    model = make_model(parse(TIMED), side, derive_seed(seed, "timing")).to(device)
    program = build([model], "sgd", torch.tensor([0.01]), torch.tensor([0.0]))
    generator = torch.Generator().manual_seed(derive_seed(seed, "timed batch"))
    x = torch.randn(batch_size, side * side, generator=generator).to(device)
    y = torch.randint(CLASSES, (batch_size,), generator=generator).to(device)
    found = []
    for _ in range(steps + 5):
        start = time.process_time()
        program.step(x, y)
        found.append(time.process_time() - start)
    return float(np.median(found[5:]))

"""Stage `sweep`: search at every batch size, then the best trials again and trials by rule, with the noise scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.bench.context import Context, Outputs
from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.sweeps import best_errors, first_steps
from restudy.methods.sweeps.search import Range
from restudy.methods.sweeps.trainer import Result, Run, Task, Trial, train_stack
from restudy.methods.training import keep_freed_memory
from restudy.studies.batch_size.follow import best_of, follow_ups, noise_look
from restudy.studies.batch_size.tidy import BOXES, MEASUREMENTS, NOISE, TRIALS
from restudy.studies.batch_size.workloads import (
    Workload,
    draw_trials,
    load,
    make_model,
    parse,
    searched,
    step_budget,
)


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


def run_sweep(
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
    return {
        "measurements": pa.concat_tables(found["measurements"]),
        "trials": pa.Table.from_pylist(found["trials"], schema=TRIALS),
        "boxes": pa.Table.from_pylist(found["boxes"], schema=BOXES),
        "noise": pa.Table.from_pylist(found["noise"], schema=NOISE),
    }


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
    columns |= {name: table[name] for name in table.column_names}
    found["measurements"].append(pa.table([columns[n] for n in MEASUREMENTS.names], schema=MEASUREMENTS))
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

"""Reading a sweep: steps to the goal by batch size, rules against tuning, errors under budgets, and its soundness."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import comb

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.contrasts import Measure, Values
from restudy.methods.sweeps import (
    COMPLETE,
    INFEASIBLE,
    apply_example_budget,
    apply_step_budget,
    best_errors,
    edge_of,
    feasible_shares,
    fewest_steps,
    outer_advantage,
)  # fmt: skip
from restudy.tables import Array, BySeed, Tables, grouped, levels, where

SGD, MOMENTUM = "fashion-mlp64-sgd", "fashion-mlp64-momentum"
DIGITS, CONVEX = "mnist5k-mlp64-sgd", "fashion-softmax-sgd"
NARROW, DEEP, HALF = "fashion-mlp32-momentum", "fashion-mlp128x3-momentum", "fashion_half-mlp64-momentum"
KINDS = ("search", "rerun", "frozen", "linear", "square_root")
"""How a trial was chosen: by the search; the best trial again; the best of the smallest batch again; by a rule."""
Curve = dict[int, float]
"""Batch size -> steps to the goal, NaN where it was not reached."""

MAY_BEAT = 0.9
"""Steps of the best trial in the outer 5% of the range of 1 - m over those of the best inner one, at least."""
LATE = 0.7
NEVER = 2.0


def outcomes(tables: Tables, workload: str, seed: int, metric: str = "steps", kind: str = "search") -> pa.Table:
    """One row per trial: the outcome `metric` as `steps`, what else `fewest_steps` takes, and the rates."""
    rows = where(tables["trials"], workload=workload, seed=seed, metric=metric, kind=kind)
    return rows.rename_columns(["steps" if name == "value" else name for name in rows.column_names])


def curve(tables: Tables, workload: str, seed: int, metric: str = "steps") -> Curve:
    """S(B) of a replicate: the least over its complete trials."""
    best = fewest_steps(outcomes(tables, workload, seed, metric))
    return dict(zip(best["batch_size"].to_pylist(), best["steps"].to_pylist(), strict=True))


def per_sweep(workload: str, function: Callable[[Tables, int], float], says: str) -> Measure:
    """Apply a function to the sweep of every seed; NaN for a workload that the run does not have."""

    def compute(tables: Tables) -> Values:
        present = workload in levels(tables["trials"], "workload")
        seeds = levels(tables["trials"])
        return {seed: float(function(tables, seed)) if present else math.nan for seed in seeds}

    return Measure(compute, says)


def budgets(tables: Tables, workload: str) -> dict[int, int]:
    """The step budget of each batch size."""
    rows = where(tables["trials"], workload=workload, kind="search", metric="steps")
    pairs = zip(rows["batch_size"].to_pylist(), rows["step_budget"].to_pylist(), strict=True)
    return dict(sorted(set(pairs)))


def best_trials(tables: Tables, workload: str, seed: int) -> dict[int, dict[str, float]]:
    """Rates of the best complete trial of each batch size where one reached the goal."""
    table = outcomes(tables, workload, seed)
    found: dict[int, dict[str, float]] = {}
    for row in fewest_steps(table).to_pylist():
        if row["trial_id"] is not None:
            own = where(table, batch_size=row["batch_size"], trial_id=row["trial_id"]).to_pylist()[0]
            found[row["batch_size"]] = {k: own[k] for k in ("learning_rate", "momentum", "effective_learning_rate")}
    return found


def ends_of(tables: Tables, workload: str, metric: str) -> tuple[float, float]:
    """The searched range of a hyper-parameter."""
    row = where(tables["boxes"], workload=workload, metric=metric).to_pylist()[0]
    return float(row["low"]), float(row["high"])


def column(table: pa.Table, name: str) -> Array:
    """A column as an array, null as NaN."""
    found: Array = table[name].to_numpy()
    return found


# Learning-rate rules against tuning, and halves of a search


def capped_steps(trials: pa.Table, budget: float) -> Array:
    """Steps of each trial, the budget where it never got to the goal or diverged."""
    complete = np.array([status == COMPLETE for status in trials["status"].to_pylist()], dtype=bool)
    steps = column(trials, "steps")
    found: Array = np.where(complete & ~np.isnan(steps), steps, budget)
    return found


def expected_log_least(steps: Array, count: int) -> float:
    """Mean of the log of the least of `count` values drawn without replacement: what so many random trials give."""
    ordered, n = np.log(np.sort(steps)), len(steps)
    count = min(count, n)
    weights = np.array([comb(n - 1 - i, count - 1) for i in range(n)], dtype=np.float64) / comb(n, count)
    return float(weights @ ordered)


def rule_over_tuned(tables: Tables, workload: str, kind: str) -> BySeed:
    """Per seed exp of the median over the batch sizes above the smallest of log S_rule / S_tuned.

    S_rule is the least over the trials of this kind, S_tuned the expected least of as many random trials of the search
    as the rule has; a rerun of the best trials is compared with as many as the rules have.
    """
    limits = budgets(tables, workload)
    found: BySeed = {}
    for seed in levels(tables["trials"]):
        own, searched = outcomes(tables, workload, seed, kind=kind), outcomes(tables, workload, seed)
        lines = outcomes(tables, workload, seed, kind="linear")
        logs = []
        for size in list(limits)[1:]:
            rows = where(own, batch_size=size)
            if not rows.num_rows:
                logs.append(np.nan)
                continue
            count = max(where(lines, batch_size=size).num_rows, 1)
            tuned = expected_log_least(capped_steps(where(searched, batch_size=size), limits[size]), count)
            logs.append(float(np.log(capped_steps(rows, limits[size]).min())) - tuned)
        found[seed] = float(np.exp(np.median(logs))) if logs else float("nan")
    return found


def frozen_over_tuned(tables: Tables, workload: str) -> BySeed:
    """Per seed exp of the median over B of mean log S with frozen rates minus mean log S with the tuned ones."""
    limits = budgets(tables, workload)
    found: BySeed = {}
    for seed in levels(tables["trials"]):
        frozen, again = (outcomes(tables, workload, seed, kind=kind) for kind in ("frozen", "rerun"))
        logs = []
        for size in list(limits)[1:]:
            rows = [where(t, batch_size=size) for t in (frozen, again)]
            means = [np.log(capped_steps(r, limits[size])).mean() if r.num_rows else np.nan for r in rows]
            logs.append(means[0] - means[1])
        found[seed] = float(np.exp(np.median(logs))) if logs else float("nan")
    return found


def parity(tables: Tables, workload: str, remainder: int) -> Tables:
    """The tables with every second trial of a workload's search only."""
    rows = tables["trials"]
    other = pc.not_equal(rows["workload"], workload)
    chosen = pc.equal(pc.bit_wise_and(rows["trial_id"], 1), remainder)
    return {**tables, "trials": rows.filter(pc.or_(other, chosen))}


# The best error that each batch size reaches, with no budget, a step budget and an epoch budget


def shared_budgets(tables: Tables, workload: str) -> tuple[int, int]:
    """The most steps and the most examples that every batch size has been given."""
    limits = budgets(tables, workload)
    return min(limits.values()), min(b * s for b, s in limits.items())


def errors_under(tables: Tables, workload: str, budget: str, seed: int) -> dict[int, float]:
    """Best validation error of each batch size under `none`, `steps` or `epochs`, the largest budget all have."""
    rows = where(tables["measurements"], workload=workload, seed=seed, kind="search")
    steps, examples = shared_budgets(tables, workload)
    if budget == "steps":
        rows = apply_step_budget(rows, steps)
    elif budget == "epochs":
        rows = apply_example_budget(rows, examples)
    best = best_errors(rows)
    return dict(zip(best["batch_size"].to_pylist(), best["value"].to_pylist(), strict=True))


def errors_by_batch(tables: Tables, budget: str, sign: float) -> pa.Table:
    """Return the best error at each batch size under a budget, times `sign`: rises if large batches are better."""
    errors = {seed: errors_under(tables, SGD, budget, seed) for seed in levels(tables["trials"])}
    sizes = budgets(tables, SGD)
    return grouped({float(b): {s: sign * e.get(b, math.nan) for s, e in errors.items()} for b in sizes}, "x")


# Whether a sweep can be believed: the optimum inside the box, enough feasible trials, goals reached in time


def inside_share(tables: Tables, workload: str, seed: int) -> float:
    """Share of the batch sizes whose best effective learning rate lies inside the searched range."""
    low, high = ends_of(tables, workload, "effective_learning_rate")
    trials, found = outcomes(tables, workload, seed), []
    for size in budgets(tables, workload):
        rows = where(trials, batch_size=size)
        feasible = np.array([s != INFEASIBLE for s in rows["status"].to_pylist()], dtype=bool)
        edge = edge_of(column(rows, "effective_learning_rate"), column(rows, "steps"), feasible, low, high)
        found.append(edge.inside)
    return float(np.mean(found))


def inner_share(tables: Tables, workload: str, seed: int) -> float:
    """Share of the batch sizes where no trial at the edge of 1 - m beats the best inner one by more than a tenth."""
    low, high = ends_of(tables, workload, "one_minus_momentum")
    trials, found = outcomes(tables, workload, seed), []
    for size in budgets(tables, workload):
        rows = where(trials, batch_size=size, status=COMPLETE)
        found.append(outer_advantage(1 - column(rows, "momentum"), column(rows, "steps"), low, high) >= MAY_BEAT)
    return float(np.mean(found))


def slowest_share(tables: Tables, workload: str, seed: int) -> float:
    """S over the step budget at the batch size where it is largest; 2 where the goal was never reached."""
    limits = budgets(tables, workload)
    shares = [s / limits[b] for b, s in curve(tables, workload, seed).items()]
    return float(max(NEVER if math.isnan(s) else s for s in shares))


def least_feasible(tables: Tables, workload: str, seed: int) -> float:
    """Share of feasible trials at the batch size where it is smallest."""
    return min(feasible_shares(outcomes(tables, workload, seed)).values())


def late_gain(tables: Tables, workload: str, seed: int) -> float:
    """Return what the best error gains in the last 30% of the steps at the batch size where that is most."""
    rows = where(tables["measurements"], workload=workload, seed=seed, kind="search", status=COMPLETE)
    gains = []
    for size, limit in budgets(tables, workload).items():
        own = where(rows, batch_size=size)
        errors, steps = column(own, "validation_error"), column(own, "step")
        gains.append(errors[steps <= LATE * limit].min() - errors.min() if len(errors) else math.nan)
    return float(max(gains))

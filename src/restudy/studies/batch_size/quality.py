"""The best error that each batch size reaches, with no budget, a step budget and an epoch budget."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.methods.sweeps import apply_example_budget, apply_step_budget, best_errors
from restudy.studies.batch_size.tidy import SGD, Tables, budgets, replicates, seeds_of, where


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


def error_of_largest(tables: Tables) -> pa.Table:
    """Best validation error, no budget: the smallest batch minus the largest, plain SGD; positive is no loss."""
    found = {}
    for seed in seeds_of(tables["trials"]):
        errors = sorted(errors_under(tables, SGD, "none", seed).items())
        found[seed] = errors[0][1] - errors[-1][1]
    return replicates(found)


def _by_batch(tables: Tables, budget: str, sign: float) -> pa.Table:
    rows = []
    for seed in seeds_of(tables["trials"]):
        errors = errors_under(tables, SGD, budget, seed)
        for size in budgets(tables, SGD):
            rows.append({"replicate": seed, "x": float(size), "value": sign * errors.get(size, np.nan)})
    return pa.Table.from_pylist(rows)


def errors_by_step_budget(tables: Tables) -> pa.Table:
    """Minus the best error at the same number of steps, by batch size: rises if large batches are better."""
    return _by_batch(tables, "steps", -1.0)


def errors_by_epoch_budget(tables: Tables) -> pa.Table:
    """The best error after the same number of examples, by batch size: rises if small batches are better."""
    return _by_batch(tables, "epochs", 1.0)

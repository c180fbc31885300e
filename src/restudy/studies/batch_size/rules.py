"""Learning-rate rules against tuning, and halves of a search. numpy and pyarrow only."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from restudy.methods.sweeps import COMPLETE
from restudy.studies.batch_size.tidy import BySeed, Tables, budgets, column, outcomes, seeds_of, where

Array = npt.NDArray[np.float64]


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
    for seed in seeds_of(tables["trials"]):
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
    for seed in seeds_of(tables["trials"]):
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

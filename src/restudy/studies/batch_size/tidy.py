"""The study's tables: their schemas, and reading one number per seed. numpy and pyarrow only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.methods.sweeps import fewest_steps

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]
Curve = dict[int, float]
"""Batch size -> steps to the goal, NaN where it was not reached."""

SGD, MOMENTUM = "fashion-mlp64-sgd", "fashion-mlp64-momentum"
DIGITS, CONVEX = "mnist5k-mlp64-sgd", "fashion-softmax-sgd"
NARROW, DEEP, HALF = "fashion-mlp32-momentum", "fashion-mlp128x3-momentum", "fashion_half-mlp64-momentum"
KINDS = ("search", "rerun", "frozen", "linear", "square_root")
"""How a trial was chosen: by the search; the best trial again; the best of the smallest batch again; by a rule."""

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_WHERE = [("workload", pa.string()), ("seed", pa.int64())]
_TRIAL = [("kind", pa.string()), ("batch_size", pa.int64()), ("trial_id", pa.int64())]
MEASUREMENTS = pa.schema(
    [*_WHERE, *_TRIAL, ("step", pa.int64()), ("status", pa.string())]
    + [("validation_error", pa.float64()), ("test_error", pa.float64()), ("train_loss", pa.float64())]
)
TRIALS = pa.schema(
    [*_WHERE, *_TRIAL, ("learning_rate", pa.float64()), ("momentum", pa.float64())]
    + [("effective_learning_rate", pa.float64()), ("status", pa.string()), ("step_budget", pa.int64()), *_LONG]
)
BOXES = pa.schema([*_WHERE, ("metric", pa.string()), ("low", pa.float64()), ("high", pa.float64())])
NOISE = pa.schema(
    [*_WHERE, ("batch_size", pa.int64()), ("step", pa.int64()), ("small_batch", pa.int64()), ("big_batch", pa.int64())]
    + _LONG
)
IDENTITIES = pa.schema([("claim", pa.string()), ("case", pa.string()), *_LONG])
TIMINGS = pa.schema([("seed", pa.int64()), ("batch_size", pa.int64()), *_LONG])


def where(table: pa.Table, **columns: object) -> pa.Table:
    """The rows whose columns have these values; a tuple allows several."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type)))
    return table


def seeds_of(table: pa.Table) -> list[int]:
    """The seeds of a table, in order."""
    return sorted(set(table["seed"].to_pylist()))


def replicates(values: Mapping[Any, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate and value."""
    return pa.table({"replicate": list(values), "value": pa.array(values.values(), pa.float64())})


def outcomes(tables: Tables, workload: str, seed: int, metric: str = "steps", kind: str = "search") -> pa.Table:
    """One row per trial: the outcome `metric` as `steps`, what else `fewest_steps` takes, and the rates."""
    rows = where(tables["trials"], workload=workload, seed=seed, metric=metric, kind=kind)
    return rows.rename_columns(["steps" if name == "value" else name for name in rows.column_names])


def curve(tables: Tables, workload: str, seed: int, metric: str = "steps") -> Curve:
    """S(B) of a replicate: the least over its complete trials."""
    best = fewest_steps(outcomes(tables, workload, seed, metric))
    return dict(zip(best["batch_size"].to_pylist(), best["steps"].to_pylist(), strict=True))


def per_seed(tables: Tables, workload: str, function: Any) -> BySeed:
    """`function(seed)` for every seed; NaN for a workload that the run does not have."""
    present = workload in set(tables["trials"]["workload"].to_pylist())
    return {seed: float(function(seed)) if present else math.nan for seed in seeds_of(tables["trials"])}


def budgets(tables: Tables, workload: str) -> dict[int, int]:
    """The step budget of each batch size."""
    rows = where(tables["trials"], workload=workload, kind="search", metric="steps")
    pairs = zip(rows["batch_size"].to_pylist(), rows["step_budget"].to_pylist(), strict=True)
    return dict(sorted(set(pairs)))


def with_values(table: pa.Table, name: str, values: object) -> pa.Table:
    """The table with another content of a column."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, type=table.schema.field(index).type))


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


def column(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    """A column as an array, null as NaN."""
    found: np.ndarray[Any, Any] = table[name].to_numpy()
    return found

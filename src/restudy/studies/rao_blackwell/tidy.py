"""The study's long tables: their schemas, writing rows, reading one number per seed. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from restudy.studies.rao_blackwell.fitting import Record

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_RUN = [("seed", pa.int64()), ("arm", pa.string())]
IDENTITIES = pa.schema([("claim", pa.string()), ("case", pa.string()), *_LONG])
VARIANCES = pa.schema(
    [("eta", pa.float64()), ("estimator", pa.string()), ("k", pa.int64()), ("outside", pa.float64()), *_LONG]
)
DRAWS = pa.schema([("eta", pa.float64()), ("k", pa.int64()), ("draw", pa.int64()), ("value", pa.float64())])
TOY = pa.schema([*_RUN, ("run", pa.int64()), *_LONG])
PATHS = pa.schema([*_RUN, ("run", pa.int64()), ("step", pa.int64()), ("loss", pa.float64())])
OPTIMAL = pa.schema(
    [("seed", pa.int64()), ("case", pa.int64()), ("evaluations", pa.int64()), ("alpha", pa.float64())]
    + [("k", pa.int64()), ("k_hat", pa.int64()), ("variance", pa.float64())]
)
VALIDATION = pa.schema(
    [*_RUN, ("start", pa.string()), ("epoch", pa.int64()), ("steps", pa.int64()), ("evaluations", pa.int64()), *_LONG]
)
TIMINGS = pa.schema([*_RUN, ("start", pa.string()), ("epoch", pa.int64()), *_LONG])
ATTENTION = pa.schema(
    [*_RUN, ("image", pa.int64()), ("kind", pa.string()), ("side", pa.int64()), ("values", pa.list_(pa.float32()))]
)


def validation_rows(
    where: Mapping[str, Any], records: Iterable[Record], evaluations: int, units: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Rows of `VALIDATION`: one per epoch and metric; `evaluations` of f per example and step, all added up."""
    return [
        {**where, "epoch": r.epoch, "steps": r.steps, "evaluations": r.steps * evaluations}
        | {"metric": metric, "value": value, "unit": units[metric]}
        for r in records
        for metric, value in r.metrics.items()
    ]


def timing_rows(where: Mapping[str, Any], records: Iterable[Record]) -> list[dict[str, Any]]:
    """Rows of `TIMINGS`: CPU seconds of training up to each epoch."""
    return [{**where, "epoch": r.epoch, "metric": "train", "value": r.cpu_seconds, "unit": "seconds"} for r in records]


def where(table: pa.Table, **columns: object) -> pa.Table:
    """The rows whose columns have these values; a tuple allows several."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type)))
    return table


def by_seed(table: pa.Table, **columns: object) -> BySeed:
    """Mean value of the chosen rows for each seed of the table; NaN where none is left."""
    rows = where(table, **columns)
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    seeds = sorted(set(table["seed"].to_pylist()))
    return {seed: float(values[at == seed].mean()) if (at == seed).any() else float("nan") for seed in seeds}


def final(table: pa.Table, arm: str, metric: str, **more: object) -> BySeed:
    """A validation metric of an arm after its last epoch, by seed."""
    rows = where(table, arm=arm, metric=metric, **({"start": "warm"} | more))
    last = pc.max(rows["epoch"]).as_py() if rows.num_rows else 0
    found = by_seed(where(rows, epoch=last)) if rows.num_rows else {}
    return {seed: found.get(seed, float("nan")) for seed in sorted(set(table["seed"].to_pylist()))}


def replicates(values: Mapping[Any, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate and value."""
    return pa.table({"replicate": list(values), "value": pa.array(values.values(), pa.float64())})


def relabel(table: pa.Table, column: str, names: Mapping[object, object]) -> pa.Table:
    """The table with some values of a column exchanged."""
    new = [names.get(value, value) for value in table[column].to_pylist()]
    index = table.schema.get_field_index(column)
    return table.set_column(index, table.schema.field(index), pa.array(new, type=table.schema.field(index).type))

"""The study's long tables: their schemas, and reading them. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_SEED = [("seed", pa.int64())]
_MAP = [*_SEED, ("method", pa.string()), ("infiller", pa.string()), ("restart", pa.int64()), ("penalty", pa.float64())]
IDENTITIES = pa.schema([("claim", pa.string()), ("case", pa.string()), *_LONG])
TRAINING = pa.schema([*_SEED, ("net", pa.string()), *_LONG])
LOSSES = pa.schema([*_SEED, ("net", pa.string()), ("step", pa.int64()), ("loss", pa.float64())])
FILLS = pa.schema([*_SEED, ("infiller", pa.string()), ("image", pa.int64()), *_LONG])
MAPS = pa.schema([*_MAP, ("image", pa.int64()), ("split", pa.string()), *_LONG])
BOXES = pa.schema(
    [*_MAP, ("image", pa.int64()), ("split", pa.string()), ("threshold", pa.float64()), ("iou", pa.float64())]
)
CURVES = pa.schema([*_MAP, ("fraction", pa.float64()), ("log_odds", pa.float64())])
AGREEMENT = pa.schema([*_SEED, ("penalty", pa.float64()), ("image", pa.int64()), ("pair", pa.string()), *_LONG])
TRACES = pa.schema([*_MAP, ("iteration", pa.int64()), ("objective", pa.float64())])
PICTURES = pa.schema(
    [*_SEED, ("image", pa.int64()), ("row", pa.string()), ("column", pa.string()), ("side", pa.int64())]
    + [("values", pa.list_(pa.float32()))]
)


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


def replicates(values: Mapping[Any, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate and value."""
    return pa.table({"replicate": list(values), "value": pa.array(values.values(), pa.float64())})


def with_values(table: pa.Table, name: str, values: object) -> pa.Table:
    """The table with a column exchanged."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, type=table.schema.field(index).type))

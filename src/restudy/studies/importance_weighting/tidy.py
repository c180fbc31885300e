"""The study's long tables: their schemas, and reading one number per seed. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]
NAN = float("nan")

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_RUN = [("seed", pa.int64()), ("arm", pa.string())]
IDENTITIES = pa.schema([("claim", pa.string()), ("case", pa.string()), *_LONG])
TOY_BOUNDS = pa.schema([("k", pa.int64()), *_LONG])
TOY_GRADIENTS = pa.schema([("seed", pa.int64()), ("objective", pa.string()), ("k", pa.int64()), *_LONG])
TRAINING = pa.schema([*_RUN, ("step", pa.int64()), *_LONG])
TIMINGS = TRAINING
LIKELIHOOD = pa.schema([*_RUN, ("part", pa.string()), ("samples", pa.int64()), *_LONG])
BOUNDS = pa.schema([*_RUN, ("k", pa.int64()), *_LONG])
UNITS = pa.schema([*_RUN, ("layer", pa.int64()), ("unit_index", pa.int64()), *_LONG])
SAMPLES = pa.schema(
    [*_RUN, ("image", pa.int64()), ("kind", pa.string()), ("side", pa.int64()), ("values", pa.list_(pa.float32()))]
)
SIGNAL = pa.schema(
    [*_RUN, ("objective", pa.string()), ("k", pa.int64()), ("parameters", pa.string()), ("draws", pa.int64()), *_LONG]
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
    return {seed: float(values[at == seed].mean()) if (at == seed).any() else NAN for seed in seeds}


def minus(first: BySeed, second: BySeed) -> BySeed:
    """Differences by seed; NaN where the second has none."""
    return {seed: value - second.get(seed, NAN) for seed, value in first.items()}


def arms_of(table: pa.Table) -> set[str]:
    """Names of the arms in a table."""
    return set(pc.unique(table["arm"]).to_pylist())


def replicates(values: Mapping[Any, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate and value."""
    return pa.table({"replicate": list(values), "value": pa.array(values.values(), pa.float64())})


def grouped(values: Mapping[str, BySeed], name: str = "group") -> pa.Table:
    """Replicates of several groups (or, with `name="x"`, numbers): replicate, value and the group."""
    rows = [(seed, value, group) for group, found in values.items() for seed, value in found.items()]
    seeds, numbers, groups = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({"replicate": list(seeds), "value": pa.array(numbers, pa.float64()), name: list(groups)})


def relabel(table: pa.Table, column: str, names: Mapping[object, object]) -> pa.Table:
    """The table with some values of a column exchanged."""
    new = [names.get(value, value) for value in table[column].to_pylist()]
    index = table.schema.get_field_index(column)
    return table.set_column(index, table.schema.field(index), pa.array(new, type=table.schema.field(index).type))


def with_values(table: pa.Table, values: Any, name: str = "value") -> pa.Table:
    """The table with a column replaced."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, type=table.schema.field(index).type))

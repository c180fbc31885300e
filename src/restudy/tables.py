"""Read and change the long results tables: choose rows, one number per seed, the table of replicates. No torch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
"""Results tables of a study by name."""
BySeed = dict[int, float]
"""Seed -> a number, NaN where the seed has none."""
Array = npt.NDArray[Any]


def chosen(table: pa.Table, **columns: object) -> npt.NDArray[np.bool_]:
    """Mark the rows that have these column values, (rows,); a tuple matches any of its members.

    Raises:
        KeyError: the table has no such column.
    """
    mask = np.ones(table.num_rows, dtype=bool)
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        inside = pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type))
        mask &= inside.to_numpy(zero_copy_only=False)
    return mask


def where(table: pa.Table, **columns: object) -> pa.Table:
    """Filter rows by column values; a tuple matches any of its members."""
    return table.filter(pa.array(chosen(table, **columns))) if columns else table


def levels(table: pa.Table, column: str = "seed") -> list[Any]:
    """List the distinct values of a column, sorted."""
    return sorted(pc.unique(table[column]).to_pylist())


def arrays(table: pa.Table, *columns: str) -> tuple[Array, ...]:
    """Return columns as arrays, null as NaN; text as objects."""
    return tuple(table[name].to_numpy() for name in columns)


def ordered(table: pa.Table, x: str, column: str = "value", **columns: object) -> tuple[Array, Array]:
    """Return `x` in rising order and a column beside it, float64 arrays, of the chosen rows."""
    rows = where(table, **columns).sort_by(x)
    return rows[x].to_numpy().astype(float), rows[column].to_numpy().astype(float)


def by_seed(table: pa.Table, column: str = "value", within: Sequence[str] = (), **columns: object) -> BySeed:
    """Average a column over the chosen rows of each seed; NaN for a seed without such rows, never dropped.

    Args:
        table: has a column `seed`.
        column: what is averaged.
        within: names among `columns` that choose an experiment of its own, whose seeds alone are meant.
        columns: values that choose rows, as in `where`.
    """
    rows = where(table, **columns)
    at, values = arrays(rows, "seed", column)
    seeds = levels(where(table, **{name: columns[name] for name in within}))
    return {seed: float(values[at == seed].mean()) if (at == seed).any() else math.nan for seed in seeds}


def with_column(table: pa.Table, column: str, values: object) -> pa.Table:
    """Exchange the content of a column, keeping its place and type."""
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, type=field.type))


def relabel(table: pa.Table, column: str, names: Mapping[Any, Any], **only: object) -> pa.Table:
    """Exchange values of a column by `names`, everywhere or in the chosen rows."""
    here = chosen(table, **only)
    old = table[column].to_pylist()
    return with_column(table, column, [names.get(v, v) if inside else v for v, inside in zip(old, here, strict=True)])


def replicates(values: Mapping[Any, float], **columns: Sequence[object]) -> pa.Table:
    """Build the (replicate, value) table that the verdict engine expects.

    Args:
        values: replicate (seed, or the name of a case) -> number; NaN where the replicate failed.
        columns: further columns in the order of `values`: `group`, `x` or `cluster`.
    """
    kind = pa.int64() if all(isinstance(name, int) for name in values) else pa.string()
    found = pa.table({"replicate": pa.array(list(values), kind), "value": pa.array(values.values(), pa.float64())})
    for name, content in columns.items():
        found = found.append_column(name, pa.array(content))
    return found


def grouped(values: Mapping[Any, Mapping[Any, float]], level: str = "group") -> pa.Table:
    """Build the engine's table of several groups, or of several `x` with `level="x"`: replicate, value and level."""
    rows = [(seed, value, name) for name, found in values.items() for seed, value in found.items()]
    seeds, numbers, names = zip(*rows, strict=True) if rows else ((), (), ())
    return pa.table({"replicate": list(seeds), "value": pa.array(numbers, pa.float64()), level: list(names)})

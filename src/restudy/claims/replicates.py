"""From a replicate table to effects on the test scale: reading, checking, pairing.

A replicate table has columns ``replicate`` and ``value`` (NaN or null: the replicate failed), and where the
claim needs them ``group`` (arms, or adjacent pairs of an ordering), ``x`` (trends), ``cluster`` (items).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ClaimError
from . import scales
from .schema import Statement

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Grid:
    """Values of one table: rows are replicates (sorted), columns are levels of ``group`` or ``x``.

    ``values`` has shape (replicates, levels), in the metric's unit, NaN where a replicate failed.
    ``absent`` tells cells that had no row in the table from those whose row was NaN.
    """

    replicates: tuple[Any, ...]
    levels: tuple[Any, ...]
    values: Array
    absent: npt.NDArray[np.bool_]


def _fail(where: str, field: str, what: str, remedy: str) -> ClaimError:
    return ClaimError(f"{field}: {what}", where=where, remedy=remedy)


def _column(table: pa.Table, name: str, where: str) -> list[Any]:
    try:
        return list(table.column(name).to_pylist())
    except KeyError:
        raise _fail(
            where, name, f"the table has no such column, only {', '.join(table.column_names) or 'none'}",
            "the statistic must return replicate and value (and group, x or cluster where the kind needs them)",
        ) from None  # fmt: skip


def _values(table: pa.Table, where: str, nan_as: float | None) -> Array:
    """Column ``value`` as float64; null and NaN become NaN, or ``nan_as`` where the claim declares it."""
    raw = _column(table, "value", where)
    try:
        values = np.array([np.nan if v is None else v for v in raw], dtype=np.float64)
    except (TypeError, ValueError):
        raise _fail(where, "value", "holds something that is not a number", "return float64") from None
    if np.isinf(values).any():
        raise _fail(where, "value", "holds an infinite value", "return NaN for a failed replicate")
    if nan_as is not None:
        values = np.where(np.isnan(values), nan_as, values)
    return values


def check_table(table: Any, where: str) -> None:
    """Refuse (ClaimError) what is not a table, and a table without rows."""
    if not isinstance(table, pa.Table):
        raise _fail(where, "replicates", f"a pyarrow Table is needed, not {type(table).__name__}", "see judge()")
    if table.num_rows == 0:
        raise _fail(where, "replicates", "the table is empty", "run the study, or look at the statistic's filter")


def _keys(table: pa.Table, where: str) -> list[Any]:
    """What counts as a replicate: ``cluster`` where the table has one, else ``replicate``."""
    keys = _column(table, "replicate", where)
    if _clustered(table):
        clusters = _column(table, "cluster", where)
        if any(cluster is None for cluster in clusters):
            raise _fail(where, "cluster", "is null for some rows", "name the cluster of every item")
        _refuse_twice(list(zip(keys, *_levels_of(table), strict=True)), where)
        return clusters
    if any(key is None for key in keys):
        raise _fail(where, "replicate", "is null for some rows", "name the replicate of every row")
    return keys


def _levels_of(table: pa.Table) -> list[list[Any]]:
    return [table.column(name).to_pylist() for name in ("group", "x") if name in table.column_names]


def _refuse_twice(keys: list[Any], where: str) -> None:
    seen: set[Any] = set()
    for key in keys:
        if key in seen:
            named = ", ".join(str(k) for k in key if k is not None)
            raise _fail(where, "replicate", f"{named} stands twice", "return one row per replicate: average within it")
        seen.add(key)


def grid(table: pa.Table, statement: Statement, where: str, level: str | None) -> Grid:
    """The table as a grid of replicates by levels (``level``: "group", "x" or None for a single column).

    Cluster means become the replicates. A cell without a row is NaN: its replicate counts as failed.
    Raises ClaimError for an empty table, a missing column, a replicate that stands twice, infinite values.
    """
    values = _values(table, where, statement.nan_as)
    keys = _keys(table, where)
    levels = _column(table, level, where) if level else [None] * len(keys)
    if any(name is None for name in levels) and level:
        raise _fail(where, level, "is null for some rows", f"name the {level} of every row")
    if not _clustered(table):
        _refuse_twice(list(zip(keys, levels, strict=True)), where)
    rows = {key: i for i, key in enumerate(_sorted(keys))}
    columns = {name: j for j, name in enumerate(_sorted(levels))}
    total = np.zeros((len(rows), len(columns)))
    count = np.zeros((len(rows), len(columns)))
    at = ([rows[key] for key in keys], [columns[name] for name in levels])
    np.add.at(total, at, values)
    np.add.at(count, at, 1.0)
    with np.errstate(invalid="ignore"):
        means = np.where(count > 0, total / np.where(count > 0, count, 1.0), np.nan)
    return Grid(tuple(rows), tuple(columns), means, count == 0)


def has(table: pa.Table, name: str) -> bool:
    """True when the table has a column of that name with anything in it."""
    return name in table.column_names and bool(table.column(name).null_count < table.num_rows)


def _clustered(table: pa.Table) -> bool:
    return has(table, "cluster")


def _sorted(keys: list[Any]) -> list[Any]:
    unique = set(keys)
    try:
        return sorted(unique)
    except TypeError:
        return sorted(unique, key=lambda key: (type(key).__name__, str(key)))


def to_scale(values: Array, statement: Statement, where: str) -> Array:
    """Values in the metric's unit -> the test scale; refuses what the scale cannot take."""
    if statement.scale == "identity":
        return values
    good = scales.inside(statement.scale, values)
    if not good.all():
        low, high = scales.DOMAIN[statement.scale]
        worst = float(values[~good].flat[0])
        raise _fail(
            where, "scale", f"{statement.scale} takes values inside ({low:g}, {high:g}), got {worst:g}",
            "use scale identity, or let the statistic shrink the value, as (k + .5)/(n + 1) for a proportion",
        )  # fmt: skip
    return scales.forward(statement.scale, values)

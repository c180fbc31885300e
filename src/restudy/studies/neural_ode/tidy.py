"""The study's long tables: their schemas, and reading one number per seed from them. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_ARM = [("seed", pa.int64()), ("arm", pa.string())]
SCHEMAS: dict[str, pa.Schema] = {
    "identities": pa.schema([("claim", pa.string()), ("case", pa.string()), *_LONG]),
    "gradients": pa.schema(
        [("problem", pa.int64()), ("method", pa.string()), ("tolerance", pa.float64()), ("error", pa.float64())]
    ),
    "memory": pa.schema([("method", pa.string()), ("steps", pa.int64()), ("bytes", pa.int64())]),
    "refinement": pa.schema([("problem", pa.int64()), ("steps", pa.int64()), ("distance", pa.float64())]),
    "training": pa.schema([*_ARM, *_LONG]),
    "curves": pa.schema([*_ARM, ("step", pa.int64()), *_LONG]),
    "train_timings": pa.schema([*_ARM, ("step", pa.int64()), ("seconds", pa.float64())]),
    "tolerances": pa.schema([("seed", pa.int64()), ("tolerance", pa.float64()), *_LONG]),
    "solver_timings": pa.schema([("seed", pa.int64()), ("tolerance", pa.float64()), ("seconds", pa.float64())]),
    "exchanges": pa.schema([*_ARM, ("solver", pa.string()), *_LONG]),
    "densities": pa.schema([*_ARM, ("target", pa.string()), ("width", pa.int64()), *_LONG]),
    "density_curves": pa.schema([*_ARM, ("target", pa.string()), ("width", pa.int64()), ("step", pa.int64()), *_LONG]),
    "density_panels": pa.schema(
        [
            *_ARM,
            ("target", pa.string()),
            ("width", pa.int64()),
            ("side", pa.int64()),
            ("values", pa.list_(pa.float32())),
        ]
    ),
    "forecasts": pa.schema([*_ARM, ("points", pa.int64()), *_LONG]),
    "spiral_curves": pa.schema([*_ARM, ("points", pa.int64()), ("step", pa.int64()), *_LONG]),
    "spiral_paths": pa.schema(
        [*_ARM, ("points", pa.int64()), ("spiral", pa.int64()), ("kind", pa.string())]
        + [("first", pa.list_(pa.float32())), ("second", pa.list_(pa.float32()))]
    ),
    "intensities": pa.schema([("seed", pa.int64()), *_LONG]),
    "intensity_curves": pa.schema(
        [
            ("seed", pa.int64()),
            ("kind", pa.string()),
            ("time", pa.list_(pa.float32())),
            ("values", pa.list_(pa.float32())),
        ]
    ),
    "trace_timings": pa.schema(
        [("seed", pa.int64()), ("method", pa.string()), ("dimensions", pa.int64()), ("seconds", pa.float64())]
    ),
}


def table(name: str, rows: list[dict[str, Any]]) -> pa.Table:
    """Rows as the table of that name."""
    return pa.Table.from_pylist(rows, schema=SCHEMAS[name])


def where(rows: pa.Table, **columns: object) -> pa.Table:
    """The rows whose columns have these values; a tuple allows several."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        rows = rows.filter(pc.is_in(rows[name], value_set=pa.array(values, type=rows.schema.field(name).type)))
    return rows


def by_seed(rows: pa.Table, value: str = "value", **columns: object) -> BySeed:
    """Mean of the chosen rows for each seed of the table; NaN where none is left."""
    chosen = where(rows, **columns)
    at, values = chosen["seed"].to_numpy(), chosen[value].to_numpy()
    seeds = sorted(set(rows["seed"].to_pylist()))
    return {seed: float(values[at == seed].mean()) if (at == seed).any() else float("nan") for seed in seeds}


def series(rows: pa.Table, x: str, value: str = "value", **columns: object) -> tuple[Any, Any]:
    """x (sorted) and values of the chosen rows, float64 arrays."""
    chosen = where(rows, **columns).sort_by(x)
    return chosen[x].to_numpy().astype(float), chosen[value].to_numpy().astype(float)


def slope(x: Any, y: Any) -> float:
    """Least-squares slope of log y against log x; NaN where fewer than two points or a value is not positive."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 2 or (x <= 0).any() or not (y > 0).all():
        return float("nan")
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def determination(x: Any, y: Any) -> float:
    """R^2 of the straight line through the points."""
    return float(np.corrcoef(x, y)[0, 1] ** 2) if len(x) > 2 else float("nan")


def replicates(values: Mapping[Any, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate and value."""
    return pa.table({"replicate": list(values), "value": pa.array(values.values(), pa.float64())})


def minus(first: BySeed, second: BySeed) -> BySeed:
    """Difference by seed."""
    return {seed: first[seed] - second.get(seed, float("nan")) for seed in first}


def over(first: BySeed, second: BySeed) -> BySeed:
    """Ratio by seed."""
    return {seed: first[seed] / second.get(seed, float("nan")) for seed in first}


def with_values(rows: pa.Table, name: str, values: object) -> pa.Table:
    """The table with a column exchanged."""
    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    return rows.set_column(index, field, pa.array(values, type=field.type))


def relabel(rows: pa.Table, column: str, names: Mapping[object, object]) -> pa.Table:
    """The table with some values of a column exchanged."""
    return with_values(rows, column, [names.get(value, value) for value in rows[column].to_pylist()])

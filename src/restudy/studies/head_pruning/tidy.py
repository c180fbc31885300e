"""The study's long tables: their schemas, and reading one number per seed. numpy and pyarrow only."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]
Array = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
Statistic = Callable[[Tables], pa.Table]

_LONG = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_HEAD = [("layer", pa.int64()), ("head", pa.int64())]
_COUNTS = [("half", pa.int64()), ("offset", pa.int64()), ("hits", pa.float64()), ("count", pa.float64())]
IDENTITIES = pa.schema([("check", pa.string()), ("case", pa.string()), *_LONG])
SIZES = ("sentences", "held_out", "batch_tokens", "d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")
SETUP = pa.schema(
    [
        ("seed", pa.int64()),
        ("track", pa.string()),
        *((name, pa.int64()) for name in SIZES),
        ("dropout", pa.float64()),
        ("steps", pa.int64()),
    ]
    + [("max_distance", pa.int64()), ("learning_rate", pa.float64()), ("warmup", pa.int64())]
)
TRAINING = pa.schema([("seed", pa.int64()), ("arm", pa.string()), ("step", pa.int64()), ("loss_nats", pa.float64())])
_ARM = [("seed", pa.int64()), ("arm", pa.string()), ("penalty", pa.float64())]
GATES = pa.schema([*_ARM, ("kind", pa.string()), *_HEAD, ("log_alpha", pa.float64()), ("gate", pa.float64())])
GATE_PATHS = pa.schema([*_ARM, ("kind", pa.string()), *_HEAD, ("step", pa.int64()), ("shut", pa.float64())])
SCORES = pa.schema([*_ARM, ("mask", pa.int64()), ("tuned", pa.bool_()), ("kept", pa.int64()), *_LONG])
HEADS = pa.schema([("seed", pa.int64()), ("arm", pa.string()), ("kind", pa.string()), *_HEAD, *_LONG])
QUALITY = pa.schema([("seed", pa.int64()), ("arm", pa.string()), *_LONG])
POSITIONS = pa.schema([("seed", pa.int64()), ("arm", pa.string()), ("weighting", pa.string()), *_HEAD, *_COUNTS])
_RELATION = [("trees", pa.string()), ("relation", pa.string()), ("direction", pa.string())]
RELATIONS = pa.schema(
    [("seed", pa.int64()), ("arm", pa.string()), *_RELATION, *_HEAD]
    + [("half", pa.int64()), ("hits", pa.float64()), ("count", pa.float64())]
)
RARE = pa.schema(
    [("seed", pa.int64()), ("arm", pa.string()), ("frequencies", pa.string()), *_HEAD, ("within", pa.int64())]
    + [("hits", pa.float64()), ("count", pa.float64()), ("expected", pa.float64())]
)
BASELINES = pa.schema([("seed", pa.int64()), *_RELATION, *_COUNTS])


def where(table: pa.Table, **columns: object) -> pa.Table:
    """The rows whose columns have these values; a tuple allows several."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type)))
    return table


def seeds_of(table: pa.Table) -> list[int]:
    """The seeds of a table, sorted."""
    return sorted(set(table["seed"].to_pylist()))


def by_seed(table: pa.Table, **columns: object) -> BySeed:
    """Mean value of the chosen rows for each seed of the table; NaN where a seed has none."""
    rows = where(table, **columns)
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    return {s: float(values[at == s].mean()) if (at == s).any() else math.nan for s in seeds_of(table)}


def minus(first: BySeed, second: BySeed) -> BySeed:
    """Differences seed by seed; NaN where one is missing."""
    return {seed: first[seed] - second.get(seed, math.nan) for seed in first}


def replicates(values: Mapping[int, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate (the seed) and value."""
    columns = {"replicate": pa.array(list(values), pa.int64()), "value": pa.array(values.values(), pa.float64())}
    return pa.table(columns)


def statistic(measure: Callable[[Tables], BySeed], says: str) -> Statistic:
    """A statistic from a measure by seed; `says` becomes its docstring."""

    def found(tables: Tables) -> pa.Table:
        return replicates(measure(tables))

    found.__doc__ = says
    return found


TEXT = "text_"
"""What the names of the tables of the track `text` start with."""


def of_text(tables: Tables) -> dict[str, pa.Table]:
    """The tables of real text under the names of the synthetic ones."""
    return {name.removeprefix(TEXT): table for name, table in tables.items() if name.startswith(TEXT)}


def on_text(found: Statistic) -> Statistic:
    """A statistic of the synthetic track, on real text."""

    def twin(tables: Tables) -> pa.Table:
        return found(of_text(tables))

    twin.__doc__ = f"{found.__doc__} On real text."
    return twin


def set_values(table: pa.Table, name: str, values: object) -> pa.Table:
    """The table with a column replaced."""
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, type=table.schema.field(index).type))

"""Tables of the study and how they are read: one number per seed for a choice of rows. numpy and pyarrow only."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]

_PLACE = [("pair", pa.string()), ("seed", pa.int64())]
_NUMBER = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
_PICTURE = [("height", pa.int64()), ("width", pa.int64()), ("values", pa.list_(pa.float32()))]

TRAINING = pa.schema([*_PLACE, ("arm", pa.string()), *_NUMBER])
AOPC = pa.schema(
    [*_PLACE, ("region", pa.int64()), ("fill", pa.string()), ("method", pa.string()), ("order", pa.string())]
    + [("score", pa.string()), ("share", pa.float64()), ("steps", pa.int64()), ("images", pa.int64())]
    + [("start", pa.float64()), ("value", pa.float64()), ("unit", pa.string()), ("values", pa.list_(pa.float32()))]
)
"""AOPC over the first `steps` regions, mean over the images of a seed (`value`) and image by image (`values`). `start`
is the mean score of the unperturbed images. Method `random` is the mean over the random orders."""
CURVES = pa.schema(
    [*_PLACE, ("region", pa.int64()), ("fill", pa.string()), ("method", pa.string()), ("order", pa.string())]
    + [("score", pa.string()), ("unit", pa.string()), ("values", pa.list_(pa.float64()))]
)
"""Mean over the images of f(x^k) - f(x^0) for k = 0, 1, ..."""
MEASURES = pa.schema([*_PLACE, ("method", pa.string()), ("condition", pa.string()), *_NUMBER, ("images", pa.int64())])
EPSILONS = pa.schema(
    [*_PLACE, ("epsilon", pa.float64()), ("image", pa.int64()), ("metric", pa.string()), ("value", pa.float64())]
    + [("unit", pa.string())]
)
MAPS = pa.schema([*_PLACE, ("image", pa.int64()), ("method", pa.string()), *_PICTURE])
"""Heatmaps of a few images of seed 0 for the figures; method `input` is the image itself."""
STRIPS = pa.schema(
    [*_PLACE, ("fill", pa.string()), ("method", pa.string()), ("order", pa.string()), ("step", pa.int64()), *_PICTURE]
)
IDENTITIES = pa.schema(
    [("claim", pa.string()), ("model", pa.string()), ("rule", pa.string()), ("case", pa.string()), *_NUMBER]
)
PHOTO_AOPC = pa.schema(
    [("kind", pa.string()), ("photo", pa.string()), ("scene", pa.string()), ("region", pa.int64())]
    + [("fill", pa.string()), ("method", pa.string()), ("order", pa.string()), ("score", pa.string())]
    + [("share", pa.float64()), ("steps", pa.int64()), ("start", pa.float64()), ("value", pa.float64())]
    + [("unit", pa.string())]
)
PHOTO_MEASURES = pa.schema(
    [("kind", pa.string()), ("photo", pa.string()), ("scene", pa.string()), ("method", pa.string()), *_NUMBER]
)
PHOTO_MAPS = pa.schema([("scene", pa.string()), ("method", pa.string()), *_PICTURE])


def where(table: pa.Table, **columns: object) -> pa.Table:
    """The rows whose columns have these values; a tuple allows several."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type)))
    return table


def by_seed(table: pa.Table, column: str = "value", **columns: object) -> BySeed:
    """Mean of a column over the chosen rows for each seed of the table; NaN where none is left."""
    rows = where(table, **columns)
    at, values = rows["seed"].to_numpy(), rows[column].to_numpy(zero_copy_only=False)
    pair = {name: value for name, value in columns.items() if name == "pair"}
    seeds = sorted(set(where(table, **pair)["seed"].to_pylist()))
    return {seed: float(values[at == seed].mean()) if (at == seed).any() else math.nan for seed in seeds}


def minus(first: BySeed, second: BySeed) -> BySeed:
    """Differences of two arms, seed by seed."""
    return {seed: first[seed] - second.get(seed, math.nan) for seed in first}


def over(first: BySeed, second: BySeed) -> BySeed:
    """Ratios of two arms, seed by seed."""
    return {seed: first[seed] / second.get(seed, math.nan) for seed in first}


def replicates(values: Mapping[Any, float]) -> pa.Table:
    """The table that the verdict engine reads: replicate and value."""
    kind = pa.int64() if all(isinstance(name, int) for name in values) else pa.string()
    return pa.table({"replicate": pa.array(list(values), kind), "value": pa.array(values.values(), pa.float64())})


def ranks(values: np.ndarray) -> np.ndarray:
    """Ranks within each row of (M, N), 1 for the smallest, ties averaged."""
    array = np.asarray(values, dtype=np.float64)
    below = (array[:, :, None] > array[:, None, :]).sum(2)
    equal = (array[:, :, None] == array[:, None, :]).sum(2)
    found: np.ndarray = below + (equal + 1) / 2
    return found


def spearman(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's rank correlation of two vectors; NaN where one is constant."""
    a, b = (ranks(np.asarray(v)[None])[0] for v in (first, second))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / size if size > 0 else math.nan


def relabel(table: pa.Table, column: str, names: Mapping[Any, Any], **only: object) -> pa.Table:
    """The table with some values of a column exchanged, everywhere or only in the rows chosen."""
    chosen = np.ones(table.num_rows, dtype=bool)
    for name, wanted in only.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        inside = pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type))
        chosen &= inside.to_numpy(zero_copy_only=False)
    old = table[column].to_pylist()
    new = [names.get(value, value) if here else value for value, here in zip(old, chosen, strict=True)]
    index = table.schema.get_field_index(column)
    return table.set_column(index, table.schema.field(index), pa.array(new, type=table.schema.field(index).type))


def with_values(table: pa.Table, column: str, values: object) -> pa.Table:
    """The table with a column replaced."""
    index = table.schema.get_field_index(column)
    return table.set_column(index, table.schema.field(index), pa.array(values, type=table.schema.field(index).type))

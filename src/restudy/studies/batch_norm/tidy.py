"""Reading the study's long tables: values by seed for a run, a metric, a layer. numpy and pyarrow only."""

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
Statistic = Callable[[Tables], pa.Table]

RATE = "0.1"
"""The paper's learning rate, at which the four arms are compared."""
STD, BN, NOISY, STD_NOISE = (f"{arm}-{RATE}" for arm in ("std", "bn", "noisy", "std_noise"))
LAST_FINITE = 1e300


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
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy(zero_copy_only=False)
    return {s: float(values[at == s].mean()) if (at == s).any() else math.nan for s in seeds_of(table)}


def final(tables: Tables, run: str, metric: str = "train_accuracy") -> BySeed:
    """A number of the table `training` by seed."""
    return by_seed(tables["training"], run=run, metric=metric)


def curve(table: pa.Table, run: str, seed: int, column: str = "accuracy") -> tuple[Array, Array]:
    """Steps and a column of a run's curve, in the order of steps."""
    rows = where(table, run=run, seed=seed).sort_by("step")
    return rows["step"].to_numpy().astype(float), rows[column].to_numpy(zero_copy_only=False).astype(float)


def smoothed(values: Array) -> Array:
    """Mean over a window and its two neighbours; the ends have one."""
    padded = np.concatenate([[np.nan], values, [np.nan]])
    return np.asarray(np.nanmean(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0), dtype=np.float64)


def over_time(table: pa.Table, run: str, seed: int, metric: str, layer: str = "") -> dict[int, float]:
    """Values of a metric at one layer ("" where it has none) by step."""
    rows = where(table, run=run, seed=seed, metric=metric, layer=layer)
    return dict(zip(rows["step"].to_pylist(), rows["value"].to_pylist(), strict=True))


def layers_of(table: pa.Table, metric: str) -> list[str]:
    """Layers that have a metric, lowest first."""
    found = set(where(table, metric=metric)["layer"].to_pylist())
    return sorted(found, key=lambda name: int("".join(c for c in name if c.isdigit()) or 0))


def first_third(table: pa.Table, run: str) -> float:
    """The step that ends the first third of a run, from its curve."""
    steps = where(table, run=run)["step"]
    return float(pc.max(steps).as_py() or 0) / 3


def log10(value: float) -> float:
    """The logarithm; NaN where there is none."""
    return math.log10(value) if 0 < value < LAST_FINITE else math.nan


def minus(first: BySeed, second: BySeed) -> BySeed:
    """Differences of two arms, seed by seed (the same seed means the same data, order and initial weights)."""
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


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

"""Reading the study's long tables: one number per seed for a choice of rows. numpy and pyarrow only."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]
BySeed = dict[int, float]

CNN, MLP, CNN_PAPER_INIT = "cnn-fashion_mnist", "mlp-mnist5k", "cnn_paper_init-fashion_mnist"
MAX_UNDEFINED = 0.10
"""A method with a larger share of undefined maps in an arm has no value there: the rest would be another sample."""


def where(table: pa.Table, **columns: object) -> pa.Table:
    """The rows whose columns have these values; a tuple allows several."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type)))
    return table


def by_seed(table: pa.Table, **columns: object) -> BySeed:
    """Mean value of the chosen rows for each seed of the table; NaN where none is left or too many are undefined.

    Re-draws and depths that are left in the choice are averaged within the seed, images counting alike.
    """
    rows = where(table, **columns)
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy(zero_copy_only=False)
    weights = np.ones(len(values))
    share = np.zeros(len(values))
    if "undefined" in rows.column_names:
        weights = rows["images"].to_numpy() - rows["undefined"].to_numpy().astype(float)
        share = rows["undefined"].to_numpy() / rows["images"].to_numpy()
    seeds = sorted(set(where(table, **{k: v for k, v in columns.items() if k == "pair"})["seed"].to_pylist()))
    found = {}
    for seed in seeds:
        mine = at == seed
        fine = mine.any() and share[mine].mean() <= MAX_UNDEFINED
        defined = mine & (weights > 0)
        found[seed] = float(np.average(values[defined], weights=weights[defined])) if fine else math.nan
    return found


def similarity(tables: Tables, pair: str, method: str, metric: str, state: str, **more: object) -> BySeed:
    """Similarity of a method's maps on a state's net to those of the trained net, the class held fixed."""
    chosen = {"pair": pair, "method": method, "metric": metric, "state": state, "target": "fixed"}
    return by_seed(tables["similarity"], **(chosen | {"against": "trained"} | more))


def layers(tables: Tables, pair: str) -> int:
    """Number of layers of a pair's net: the largest depth of the cascade from the top."""
    depths = where(tables["similarity"], pair=pair, state="top_down")["depth"]
    return int(pc.max(depths).as_py() or 0)


def minus(first: BySeed, second: BySeed) -> BySeed:
    """Differences of two arms, seed by seed (the same seed means the same nets and images)."""
    return {seed: first[seed] - second[seed] for seed in first if seed in second}


def replicates(values: BySeed) -> pa.Table:
    """The table that the verdict engine reads: replicate (the seed) and value."""
    columns = {"replicate": pa.array(list(values), pa.int64()), "value": pa.array(values.values(), pa.float64())}
    return pa.table(columns)


def relabel(table: pa.Table, column: str, names: Mapping[object, object], **only: object) -> pa.Table:
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

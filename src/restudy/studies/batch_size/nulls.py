"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.nulls import Null, changed, in_turn, replaced
from restudy.tables import Tables, levels, relabel, where, with_column

from .trials import DEEP, DIGITS, HALF, MOMENTUM, NARROW, SGD, budgets


def exchanged(one: str, other: str) -> Null:
    """Exchange two workloads in the trials."""
    return replaced("trials", lambda rows: relabel(rows, "workload", {one: other, other: one}))


def power_law(workload: str, exponent: float) -> Null:
    """Let every trial take the steps of its namesake at the smallest batch, times a power of the batch: no regions."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["trials"]
        smallest = min(budgets(tables, workload)) if where(table, workload=workload).num_rows else 1
        rows = table.to_pylist()
        wanted = [r["workload"] == workload and r["kind"] == "search" and r["unit"] == "steps" for r in rows]
        names = ("seed", "trial_id", "metric")
        base = {
            tuple(r[n] for n in names): r["value"]
            for r, inside in zip(rows, wanted, strict=True)
            if inside and r["batch_size"] == smallest
        }
        values = [
            base[tuple(r[n] for n in names)] * (r["batch_size"] / smallest) ** exponent if inside else r["value"]
            for r, inside in zip(rows, wanted, strict=True)
        ]
        return {**tables, "trials": with_column(table, "value", values)}

    return null


def as_tuned(*kinds: str) -> Null:
    """Replace trials by a rule with the best trials trained again: the rule is as good as tuning."""

    def take(table: pa.Table) -> pa.Table:
        rest = table.filter(pa.array(~np.isin(np.array(table["kind"].to_pylist()), kinds)))
        again = where(table, kind="rerun")
        return pa.concat_tables([rest, *(with_column(again, "kind", [kind] * again.num_rows) for kind in kinds)])

    return replaced("trials", take)


def batches_reversed(table: pa.Table) -> pa.Table:
    """Put the largest batch size of a workload in the place of the smallest, and so on."""
    for workload in levels(table, "workload"):
        sizes = levels(where(table, workload=workload), "batch_size")
        table = relabel(table, "batch_size", dict(zip(sizes, reversed(sizes), strict=True)), workload=workload)
    return table


def dearer(table: pa.Table) -> pa.Table:
    """Exchange examples per second and seconds per example: larger batches cost more."""
    sizes, seconds = (table[name].to_numpy() for name in ("batch_size", "value"))
    return with_column(table, "value", 1e-12 * sizes**2 / seconds)


SAME_RATES = replaced("trials", lambda rows: with_column(rows, "effective_learning_rate", np.ones(rows.num_rows)))
planted_nulls = {
    "B1": power_law(SGD, -0.5),
    "B2": exchanged(SGD, MOMENTUM),
    "B3": exchanged(NARROW, DEEP),
    "B4": exchanged(HALF, SGD),
    "B5": as_tuned("linear", "square_root"),
    "B6": replaced("measurements", batches_reversed),
    # gradient noise a thousand times as large: small batches' norms grow by it
    "B7": changed("noise", lambda norm: 1e3 * norm, metric="small_norm"),
    "B8": power_law(DIGITS, -0.5),
    "B9": in_turn(as_tuned("frozen"), SAME_RATES),
    "B10": power_law(SGD, -0.5),
    "B11": power_law(DIGITS, -1.0),
    "B12": exchanged(SGD, MOMENTUM),
    "B13": replaced("timings", dearer),
}

"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa

from restudy.studies.batch_size.tidy import (
    DEEP,
    DIGITS,
    HALF,
    MOMENTUM,
    NARROW,
    SGD,
    Tables,
    budgets,
    where,
    with_values,
)

Null = Callable[[Tables], dict[str, pa.Table]]


def _renamed(column: str, names: Mapping[str, str]) -> Null:
    """Values of a column exchanged in the trials (workloads swapped, kinds taken for others)."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["trials"]
        new = [names.get(value, value) for value in table[column].to_pylist()]
        return {**tables, "trials": with_values(table, column, new)}

    return null


def _power_law(workload: str, exponent: float) -> Null:
    """Every trial takes as many steps as its namesake at the smallest batch, times a power of the batch: no regions."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["trials"]
        smallest = min(budgets(tables, workload)) if where(table, workload=workload).num_rows else 1
        rows = table.to_pylist()
        wanted = [r["workload"] == workload and r["kind"] == "search" and r["unit"] == "steps" for r in rows]
        base = {
            (r["seed"], r["trial_id"], r["metric"]): r["value"]
            for r, ok in zip(rows, wanted, strict=True)
            if ok and r["batch_size"] == smallest
        }
        values = [
            base[r["seed"], r["trial_id"], r["metric"]] * (r["batch_size"] / smallest) ** exponent if ok else r["value"]
            for r, ok in zip(rows, wanted, strict=True)
        ]
        return {**tables, "trials": with_values(table, "value", values)}

    return null


def _as_tuned(*kinds: str) -> Null:
    """Trials by a rule replaced by the best trials trained again: the rule is as good as tuning."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["trials"]
        rest = table.filter(~np.isin(np.array(table["kind"].to_pylist()), kinds))
        again = where(table, kind="rerun")
        copies = [with_values(again, "kind", [kind] * again.num_rows) for kind in kinds]
        return {**tables, "trials": pa.concat_tables([rest, *copies])}

    return null


def _same_rates(tables: Tables) -> dict[str, pa.Table]:
    """Every trial has the same rate at every batch size, and frozen rates do as well as tuned ones."""
    changed = _as_tuned("frozen")(tables)
    table = changed["trials"]
    return {**changed, "trials": with_values(table, "effective_learning_rate", np.ones(table.num_rows))}


def _batches_reversed(name: str) -> Null:
    """The largest batch size takes the place of the smallest, and so on."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables[name]
        keys = list(zip(table["workload"].to_pylist(), table["batch_size"].to_pylist(), strict=True))
        new: dict[tuple[str, int], int] = {}
        for workload in {w for w, _ in keys}:
            sizes = sorted({b for w, b in keys if w == workload})
            new |= {(workload, b): other for b, other in zip(sizes, reversed(sizes), strict=True)}
        return {**tables, name: with_values(table, "batch_size", [new[k] for k in keys])}

    return null


def _dearer(tables: Tables) -> dict[str, pa.Table]:
    """Examples per second and seconds per example exchanged: larger batches cost more."""
    table = tables["timings"]
    sizes, seconds = (table[n].to_numpy() for n in ("batch_size", "value"))
    return {**tables, "timings": with_values(table, "value", 1e-12 * sizes**2 / seconds)}


def _spoiled(claim: str) -> Null:
    """Every deviation of a claim made 10 larger: a program that errs."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["identities"]
        wrong = np.array([c == claim for c in table["claim"].to_pylist()])
        return {**tables, "identities": with_values(table, "value", table["value"].to_numpy() + 10.0 * wrong)}

    return null


def _far_noise(tables: Tables) -> dict[str, pa.Table]:
    """Gradient noise a thousand times as large: small batches' norms grow by it."""
    table = tables["noise"]
    small = np.array(table["metric"].to_pylist()) == "small_norm"
    return {**tables, "noise": with_values(table, "value", table["value"].to_numpy() * np.where(small, 1e3, 1.0))}


_SWAPPED = _renamed("workload", {SGD: MOMENTUM, MOMENTUM: SGD})

planted_nulls: dict[str, Null] = {
    "B1": _power_law(SGD, -0.5),
    "B2": _SWAPPED,
    "B3": _renamed("workload", {NARROW: DEEP, DEEP: NARROW}),
    "B4": _renamed("workload", {HALF: SGD, SGD: HALF}),
    "B5": _as_tuned("linear", "square_root"),
    "B6": _batches_reversed("measurements"),
    "B7": _far_noise,
    "B8": _power_law(DIGITS, -0.5),
    "B9": _same_rates,
    "B10": _power_law(SGD, -0.5),
    "B11": _power_law(DIGITS, -1.0),
    "B12": _SWAPPED,
    "B13": _dearer,
    "X1": _spoiled("X1"),
    "X2": _spoiled("X2"),
    "X3": _spoiled("X3"),
}
"""Claim -> a function from results to results without the effect."""

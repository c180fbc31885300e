"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.rao_blackwell.tidy import Tables, relabel

Null = Callable[[Tables], dict[str, pa.Table]]


def _exchanged(one: str, other: str, *names: str) -> Null:
    """Two arms exchanged in these tables, where the run has them."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        changed = {n: relabel(tables[n], "arm", {one: other, other: one}) for n in names if n in tables}
        return {**tables, **changed}

    return null


def _mixed(one: str, other: str) -> Null:
    """Two arms of the toy exchanged in every second run: both are then a mixture of the two."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["toy"]
        names, runs = table["arm"].to_pylist(), table["run"].to_pylist()
        exchanged = {one: other, other: one}
        new = [exchanged.get(name, name) if run % 2 else name for name, run in zip(names, runs, strict=True)]
        return {**tables, "toy": _with_values(table, "arm", new)}

    return null


def _spoiled(claim: str) -> Null:
    """Every deviation of a claim made 10 larger: an estimator that errs."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["identities"]
        wrong = np.array([c == claim for c in table["claim"].to_pylist()])
        return {**tables, "identities": _with_values(table, "value", table["value"].to_numpy() + 10.0 * wrong)}

    return null


def _equal_variances(tables: Tables) -> dict[str, pa.Table]:
    """Summing has no effect: every k has the variance of k = 0."""
    table = tables["variances"]
    return {**tables, "variances": _with_values(table, "value", np.ones(table.num_rows))}


def _worst_k(tables: Tables) -> dict[str, pa.Table]:
    """k_hat replaced by the k of the largest variance in every second case."""
    table = tables["optimal"]
    seed, case, n, k, variance = (table[c].to_numpy() for c in ("seed", "case", "evaluations", "k", "variance"))
    _, at = np.unique((seed * (case.max() + 1) + case) * 100 + n, return_inverse=True)
    largest = np.zeros(at.max() + 1)
    np.maximum.at(largest, at, variance)
    worst = np.zeros(at.max() + 1, dtype=np.int64)
    hit = variance == largest[at]
    worst[at[hit]] = k[hit]
    chosen = np.where(case % 2 == 0, worst[at], table["k_hat"].to_numpy())
    return {**tables, "optimal": _with_values(table, "k_hat", chosen)}


def _equal_steps(tables: Tables) -> dict[str, pa.Table]:
    """Summing has no effect on a step: RB follows REINFORCE+ step by step, at its own cost."""
    if "moving_validation" not in tables:
        return dict(tables)
    table = tables["moving_validation"]
    rows = table.select(["seed", "arm", "epoch", "metric", "value"]).to_pylist()
    plus = {(r["seed"], r["epoch"], r["metric"]): r["value"] for r in rows if r["arm"] == "reinforce_plus"}
    values = [
        plus.get((r["seed"], r["epoch"], r["metric"]), r["value"]) if r["arm"] == "rb5_plus" else r["value"]
        for r in rows
    ]
    return {**tables, "moving_validation": _with_values(table, "value", values)}


def _with_values(table: pa.Table, name: str, values: object) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), pa.array(values, type=table.schema.field(index).type))


_TOY = _exchanged("rb1", "reinforce", "toy")
_SEMI = _exchanged("rb1", "reinforce2", "semi_validation")
_PLUS = _exchanged("rb5_plus", "reinforce_plus", "moving_validation", "moving_timings")

planted_nulls: dict[str, Null] = {
    "R1": _spoiled("R1"),
    "R2": _spoiled("R2"),
    "R3": _equal_variances,
    "R4": _TOY,
    "R5": _worst_k,
    "X1": _worst_k,
    "R6": _SEMI,
    "R7": _spoiled("R7"),
    "R8": _spoiled("R8"),
    "R9": _spoiled("R9"),
    "R10": _PLUS,
    "R11": _exchanged("rb5_plus", "gumbel", "moving_validation"),
    "E1": _mixed("rb1_plus", "reinforce_plus"),
    "E2": _exchanged("rb1", "reinforce_plus", "semi_validation"),
    "E3": _equal_steps,
    "E4": _PLUS,
    "E5": _SEMI,
}
"""Claim -> a function from results to results without the effect."""

"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.nulls import next_seed, replaced
from restudy.tables import arrays, chosen, with_column


def equal_variances(table: pa.Table) -> pa.Table:
    """Give every number of summed categories the variance of none: summing has no effect."""
    return with_column(table, "value", np.ones(table.num_rows))


def worst_k(table: pa.Table) -> pa.Table:
    """Replace k_hat by the k of the largest variance in every second case."""
    seed, case, n, k, k_hat, variance = arrays(table, "seed", "case", "evaluations", "k", "k_hat", "variance")
    _, at = np.unique((seed * (case.max() + 1) + case) * 100 + n, return_inverse=True)
    largest = np.zeros(at.max() + 1)
    np.maximum.at(largest, at, variance)
    worst = np.zeros(at.max() + 1, dtype=np.int64)
    hit = variance == largest[at]
    worst[at[hit]] = k[hit]
    return with_column(table, "k_hat", np.where(case % 2 == 0, worst[at], k_hat))


def equal_steps(table: pa.Table) -> pa.Table:
    """Let RB follow REINFORCE with a second draw step by step, at its own cost in evaluations."""
    keys = list(zip(*(table[name].to_pylist() for name in ("seed", "epoch", "metric")), strict=True))
    arms, values = table["arm"].to_pylist(), table["value"].to_pylist()
    plus = {key: value for key, arm, value in zip(keys, arms, values, strict=True) if arm == "reinforce_plus"}
    rb = chosen(table, arm="rb5_plus")
    taken = [plus.get(key, value) if here else value for key, value, here in zip(keys, values, rb, strict=True)]
    return with_column(table, "value", taken)


planted_nulls = {
    "R3": replaced("variances", equal_variances),
    "R5": replaced("optimal", worst_k),
    "X1": replaced("optimal", worst_k),
    "R11": next_seed("arm", "gumbel", "rb5_plus", "moving_validation"),
    "E3": replaced("moving_validation", equal_steps),
    "E4": next_seed("arm", "rb5_plus", "reinforce_plus", "moving_validation", "moving_timings"),
}

"""Planted nulls: results from which the effect of a claim was removed."""

from __future__ import annotations

import pyarrow as pa

from restudy.nulls import Null, replaced
from restudy.tables import relabel, where

from .statistics import METRICS


def exchanged(column: str, one: str, other: str, table: str = "similarity", **only: object) -> Null:
    """Exchange two values of a column: the arms swapped."""
    return replaced(table, lambda rows: relabel(rows, column, {one: other, other: one}, **only))


def cascade_reversed(rows: pa.Table) -> pa.Table:
    """Count the steps of the cascade from its end: randomising more layers brings the maps back."""
    deepest = max(where(rows, state="top_down")["depth"].to_pylist(), default=0)
    names = {d: deepest + 1 - d for d in range(1, deepest + 1)}
    return relabel(rows, "depth", {**names, deepest: deepest // 2, deepest // 2: deepest}, state="top_down")


def metrics_agree(rows: pa.Table) -> pa.Table:
    """Let every metric read what the absolute rank correlation read."""
    one = where(rows, metric="spearman_abs")
    rest = rows.filter(pa.array([metric not in METRICS for metric in rows["metric"].to_pylist()]))
    return pa.concat_tables([rest, *(relabel(one, "metric", {"spearman_abs": name}) for name in METRICS)])


def noise_for_guided_backprop(rows: pa.Table) -> pa.Table:
    """Let guided backprop on randomised nets be noise."""
    return relabel(rows, "method", {"noise": "guided_backprop", "guided_backprop": ""}, state="top_down")


def one_undecided(rows: pa.Table) -> pa.Table:
    """Leave one method without a decision from the data test."""
    nothing = dict.fromkeys(("accepted", "rejected"), "")
    return relabel(rows, "decision", nothing, method="smoothgrad", test="data")


# The cascade leaves the net as alike as an honest retraining: randomisation without effect.
RETRAINED = exchanged("state", "top_down", "seed_retrain")
METHODS = exchanged("method", "guided_backprop", "gradient")
DATA = exchanged("state", "seed_retrain", "permuted_labels")

planted_nulls: dict[str, Null] = {
    "A1": RETRAINED,
    "A2": METHODS,
    "A3": replaced("similarity", cascade_reversed),
    "A4": exchanged("metric", "ssim", "spearman"),
    "A5": exchanged("method", "gradient_x_input", "gradient"),
    "A6": DATA,
    "A7": replaced("similarity", metrics_agree),
    "A8": exchanged("decision", "accepted", "rejected", "decisions"),
    "A9": replaced("similarity", noise_for_guided_backprop),
    "A10": DATA,
    "A11": METHODS,
    "A12": replaced("decisions", one_undecided),
    "G2": exchanged("method", "guided_backprop", "gradient_x_input", state="two_random_nets", metric="spearman_abs"),
    "E1": RETRAINED,
    "E2": METHODS,
    "E3": DATA,
    "E4": DATA,
    "E5": DATA,
    "E6": DATA,
    "G1": exchanged("method", "guided_gradcam", "gradient"),
    "L1": exchanged("method", "guided_gradcam", "gradient", "photo_similarity"),
    "L2": exchanged("method", "guided_backprop", "gradient", "photo_similarity"),
}

"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from restudy.studies.saliency_sanity.tidy import Tables, relabel, where

Null = Callable[[Tables], dict[str, pa.Table]]


def _exchanged(column: str, one: str, other: str, table: str = "similarity", **only: object) -> Null:
    """Two values of a column exchanged: the arms swapped."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        if table not in tables:
            return dict(tables)
        return {**tables, table: relabel(tables[table], column, {one: other, other: one}, **only)}

    return null


def _replaced(taken: str, given: str, **only: object) -> Null:
    """A method's rows taken from another method."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["similarity"]
        chosen = relabel(table, "method", {given: taken, taken: ""}, **only)
        return {**tables, "similarity": chosen}

    return null


def _retrained_as_randomized(tables: Tables) -> dict[str, pa.Table]:
    """The cascade leaves the net as alike as an honest retraining: randomisation without effect."""
    return {**tables, "similarity": relabel(tables["similarity"], "state", _swap("top_down", "seed_retrain"))}


def _cascade_reversed(tables: Tables) -> dict[str, pa.Table]:
    """The steps of the cascade counted from its end: randomising more layers brings the maps back."""
    table = tables["similarity"]
    deepest = max(where(table, state="top_down")["depth"].to_pylist(), default=0)
    names: Mapping[object, object] = {d: deepest + 1 - d for d in range(1, deepest + 1)}
    half = {**names, deepest: deepest // 2, deepest // 2: deepest}
    return {**tables, "similarity": relabel(table, "depth", half, state="top_down")}


def _metrics_agree(tables: Tables) -> dict[str, pa.Table]:
    """Every metric reads what the absolute rank correlation read."""
    table = tables["similarity"]
    one = where(table, metric="spearman_abs")
    rest = table.filter(pa.array([m not in METRICS_OF_RANKING for m in table["metric"].to_pylist()]))
    copies = [relabel(one, "metric", {"spearman_abs": name}) for name in METRICS_OF_RANKING]
    return {**tables, "similarity": pa.concat_tables([rest, *copies])}


def _decisions_turned(tables: Tables) -> dict[str, pa.Table]:
    """Accepted for rejected and the other way round, for every map."""
    return {**tables, "decisions": relabel(tables["decisions"], "decision", _swap("accepted", "rejected"))}


def _decision_missing(tables: Tables) -> dict[str, pa.Table]:
    """One method left without a decision from the data test."""
    changed = relabel(
        tables["decisions"], "decision", dict.fromkeys(("accepted", "rejected"), ""), method="smoothgrad", test="data"
    )
    return {**tables, "decisions": changed}


def _swap(one: object, other: object) -> dict[object, object]:
    return {one: other, other: one}


METRICS_OF_RANKING = ("spearman", "spearman_abs", "ssim", "hog")
_METHODS = _exchanged("method", "guided_backprop", "gradient")
_DATA = _exchanged("state", "seed_retrain", "permuted_labels")

planted_nulls: dict[str, Null] = {
    "A1": _retrained_as_randomized,
    "A2": _METHODS,
    "A3": _cascade_reversed,
    "A4": _exchanged("metric", "ssim", "spearman"),
    "A5": _exchanged("method", "gradient_x_input", "gradient"),
    "A6": _DATA,
    "A7": _metrics_agree,
    "A8": _decisions_turned,
    "A9": _replaced("guided_backprop", "noise", state="top_down"),
    "A10": _DATA,
    "A11": _METHODS,
    "A12": _decision_missing,
    "G2": _exchanged("method", "guided_backprop", "gradient_x_input", state="two_random_nets", metric="spearman_abs"),
    "E1": _retrained_as_randomized,
    "E2": _METHODS,
    "E3": _DATA,
    "E4": _DATA,
    "E5": _DATA,
    "E6": _DATA,
    "G1": _exchanged("method", "guided_gradcam", "gradient"),
    "L1": _exchanged("method", "guided_gradcam", "gradient", table="photo_similarity"),
    "L2": _exchanged("method", "guided_backprop", "gradient", table="photo_similarity"),
}
"""Claim -> a function from results to results without the effect."""

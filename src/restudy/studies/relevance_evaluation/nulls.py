"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.relevance_evaluation.tidy import Tables, relabel, where, with_values

Null = Callable[[Tables], dict[str, pa.Table]]
LRP, SENSITIVITY, DECONVOLUTION = "lrp_alpha_beta", "sensitivity", "deconvolution"


def _exchanged(column: str, one: str, other: str, *tables: str, **only: object) -> Null:
    """Two values of a column exchanged in some tables: the arms swapped."""

    def null(given: Tables) -> dict[str, pa.Table]:
        names = {one: other, other: one}
        return {**given, **{t: relabel(given[t], column, names, **only) for t in tables if t in given}}

    return null


def _random_methods(given: Tables) -> dict[str, pa.Table]:
    """Every method is as good as the random order."""
    table = given["aopc"]
    at = {
        (r["pair"], r["seed"], r["region"], r["fill"], r["score"], r["share"]): r["value"]
        for r in where(table, method="random")
        .select(["pair", "seed", "region", "fill", "score", "share", "value"])
        .to_pylist()
    }
    rows = table.select(["pair", "seed", "region", "fill", "score", "share", "value"]).to_pylist()
    values = [at[r["pair"], r["seed"], r["region"], r["fill"], r["score"], r["share"]] for r in rows]
    return {**given, "aopc": with_values(table, "value", values)}


def _spoiled(claim: str, by: float = 10.0) -> Null:
    """Every deviation of a claim made larger: a rule that errs."""

    def null(given: Tables) -> dict[str, pa.Table]:
        table = given["identities"]
        wrong = np.array([c == claim for c in table["claim"].to_pylist()])
        return {**given, "identities": with_values(table, "value", table["value"].to_numpy() + by * wrong)}

    return null


def _fills_turned(given: Tables) -> dict[str, pa.Table]:
    """LRP and sensitivity exchanged under every fill but the uniform one: the sign depends on the fill."""
    others = ("mean", "blur", "dataset")
    table = relabel(given["aopc"], "method", {LRP: SENSITIVITY, SENSITIVITY: LRP}, fill=others)
    table = relabel(table, "method", {LRP: DECONVOLUTION, DECONVOLUTION: LRP}, fill="dataset")
    return {**given, "aopc": table}


def _epsilon_reversed(given: Tables) -> dict[str, pa.Table]:
    """The smallest epsilon exchanged with the largest, and so on."""
    found = sorted(set(given["epsilons"]["epsilon"].to_pylist()))
    names: dict[object, object] = dict(zip(found, reversed(found), strict=True))
    return {**given, "epsilons": relabel(given["epsilons"], "epsilon", names)}


def _never_negative(given: Tables) -> dict[str, pa.Table]:
    """LRP without negative pixels."""
    table = given["measures"]
    zero = [
        0.0 if m == "negative_share" else v
        for m, v in zip(*(table[c].to_pylist() for c in ("metric", "value")), strict=True)
    ]
    return {**given, "measures": with_values(table, "value", zero)}


def _agreeing(given: Tables) -> dict[str, pa.Table]:
    """Every image ranks the methods as the first one does."""
    table = given["aopc"]
    values = [[row[0]] * len(row) for row in table["values"].to_pylist()]
    return {**given, "aopc": with_values(table, "values", values)}


_METHODS = _exchanged("method", LRP, SENSITIVITY, "aopc", "measures", "photo_aopc", "photo_measures")
_DECONVOLUTION = _exchanged("method", LRP, DECONVOLUTION, "aopc", "measures", "photo_aopc")
_OUTSIDE = _exchanged("method", LRP, "random", "measures", "photo_measures", metric="outside_aopc")

planted_nulls: dict[str, Null] = {
    "S1": _METHODS,
    "S2": _DECONVOLUTION,
    "S3": _random_methods,
    "S4": _METHODS,
    "S5": _fills_turned,
    "S6": _METHODS,
    "S1'": _METHODS,
    "S7": _spoiled("S7"),
    "S8": _spoiled("S8"),
    "S9": _epsilon_reversed,
    "S10": _exchanged("method", LRP, SENSITIVITY, "measures", metric="jump"),
    "S11": _exchanged("order", "morf", "lerf", "curves"),
    "S12": _DECONVOLUTION,
    "S13": _OUTSIDE,
    "S14": _exchanged("condition", "own", "class_average", "measures"),
    "S15": _METHODS,
    "S16": _METHODS,
    "I1": _spoiled("I1"),
    "X1": _exchanged("pair", "garments", "fashion_mnist", "aopc"),
    "X2": _spoiled("S9", by=1e3),
    "X3": _never_negative,
    "T1": _agreeing,
    "E1": _DECONVOLUTION,
    "E2": _METHODS,
    "E3": _METHODS,
    "E4": _METHODS,
    "L1": _METHODS,
    "L2": _DECONVOLUTION,
    "L3": _exchanged("method", LRP, "random", "photo_aopc"),
    "L4": _METHODS,
    "L5": _OUTSIDE,
    "L6": _METHODS,
    "L7": _METHODS,
}
"""Claim -> a function from results to results without the effect."""

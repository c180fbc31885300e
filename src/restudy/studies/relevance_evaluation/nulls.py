"""Planted nulls: results from which the effect of a claim was removed."""

from __future__ import annotations

import pyarrow as pa

from restudy.nulls import Null, changed, in_turn, replaced, spoiled
from restudy.tables import levels, relabel, where, with_column

from .statistics import DECONVOLUTION, LRP, SENSITIVITY


def exchanged(column: str, one: str, other: str, *tables: str, **only: object) -> Null:
    """Exchange two values of a column in some tables: the arms swapped."""

    def swap(rows: pa.Table) -> pa.Table:
        return relabel(rows, column, {one: other, other: one}, **only)

    return in_turn(*(replaced(table, swap) for table in tables))


def as_random(rows: pa.Table) -> pa.Table:
    """Make every method as good as the random order."""
    key = ("pair", "seed", "region", "fill", "score", "share")
    chance = {tuple(r[name] for name in key): r["value"] for r in where(rows, method="random").to_pylist()}
    return with_column(rows, "value", [chance[tuple(r[name] for name in key)] for r in rows.select(key).to_pylist()])


def fill_decides(rows: pa.Table) -> pa.Table:
    """Exchange LRP and sensitivity under every fill but the uniform one: the sign depends on the fill."""
    turned = relabel(rows, "method", {LRP: SENSITIVITY, SENSITIVITY: LRP}, fill=("mean", "blur", "dataset"))
    return relabel(turned, "method", {LRP: DECONVOLUTION, DECONVOLUTION: LRP}, fill="dataset")


def epsilon_reversed(rows: pa.Table) -> pa.Table:
    """Exchange the smallest epsilon with the largest, and so on."""
    found = levels(rows, "epsilon")
    return relabel(rows, "epsilon", dict(zip(found, reversed(found), strict=True)))


def agreeing(rows: pa.Table) -> pa.Table:
    """Let every image rank the methods as the first one does."""
    return with_column(rows, "values", [[values[0]] * len(values) for values in rows["values"].to_pylist()])


def ranked_by_chance(rows: pa.Table) -> pa.Table:
    """Exchange the order by LRP with the random one."""
    mine = relabel(where(rows, method=LRP, order="morf"), "order", {"morf": "random"})
    chance = relabel(where(rows, method="random"), "order", {"random": "morf"})
    rest = rows.filter(pa.array([m != "random" and (m, o) != (LRP, "morf") for m, o in _named(rows)]))
    swapped = [relabel(mine, "method", {LRP: "random"}), relabel(chance, "method", {"random": LRP})]
    return pa.concat_tables([rest, *swapped])


def _named(rows: pa.Table) -> list[tuple[str, str]]:
    return list(zip(rows["method"].to_pylist(), rows["order"].to_pylist(), strict=True))


METHODS = exchanged("method", LRP, SENSITIVITY, "aopc", "measures", "photo_aopc", "photo_measures")
RIVALS = exchanged("method", LRP, DECONVOLUTION, "aopc", "measures", "photo_aopc")
OUTSIDE = exchanged("method", LRP, "random", "measures", "photo_measures", metric="outside_aopc")

planted_nulls: dict[str, Null] = {
    "S1": METHODS,
    "S2": RIVALS,
    "S3": replaced("aopc", as_random),
    "S4": METHODS,
    "S5": replaced("aopc", fill_decides),
    "S6": METHODS,
    "S1'": METHODS,
    "S7": spoiled("identities", claim="S7"),
    "S8": spoiled("identities", claim="S8"),
    "S9": replaced("epsilons", epsilon_reversed),
    "S10": exchanged("method", LRP, SENSITIVITY, "measures", metric="jump"),
    "S11": exchanged("order", "morf", "lerf", "curves"),
    "S12": RIVALS,
    "S13": OUTSIDE,
    "S14": exchanged("condition", "own", "class_average", "measures"),
    "S15": METHODS,
    "S16": METHODS,
    "I1": spoiled("identities", claim="I1"),
    "X1": exchanged("pair", "garments", "fashion_mnist", "aopc"),
    "X2": spoiled("identities", 1e3, claim="S9"),
    "X3": changed("measures", lambda share: 0.0, metric="negative_share"),
    "T1": replaced("aopc", agreeing),
    "E1": RIVALS,
    "E2": METHODS,
    "E3": METHODS,
    "E4": METHODS,
    "L1": METHODS,
    "L2": RIVALS,
    "L3": replaced("photo_aopc", ranked_by_chance),
    "L4": METHODS,
    "L5": OUTSIDE,
    "L6": METHODS,
    "L7": METHODS,
}

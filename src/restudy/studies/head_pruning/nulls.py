"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from restudy.nulls import Null, changed, in_turn, replaced
from restudy.tables import Array, arrays, relabel, with_column

from .statistics import TEXT, of_text


def renamed(table: str, one: str, other: str) -> Null:
    """Exchange two models in a table."""
    return replaced(table, lambda rows: relabel(rows, "arm", {one: other, other: one}))


def same_scores(arm: str, other: str) -> Null:
    """Give an arm of `scores` the other's numbers with a little noise: no difference on average."""

    def take(table: pa.Table) -> pa.Table:
        rows = table.to_pylist()
        names = ("seed", "penalty", "metric", "tuned")
        known = {tuple(r[n] for n in names): r["value"] for r in rows if r["arm"] == other}
        noise = np.random.default_rng(0).choice([-0.01, 0.01], len(rows))
        values = [
            known.get(tuple(r[n] for n in names), r["value"]) * (1 + noise[i]) if r["arm"] == arm else r["value"]
            for i, r in enumerate(rows)
        ]
        return with_column(table, "value", values)

    return replaced("scores", take)


def permuted_gates(table: pa.Table) -> pa.Table:
    """Permute log_alpha over the heads of each model: survival knows nothing of functions."""
    keys: Array = np.array([str(key) for key in zip(*arrays(table, "arm", "seed", "penalty"), strict=True)])
    values = table["log_alpha"].to_numpy().copy()
    generator = np.random.default_rng(1)
    for key in np.unique(keys):
        values[keys == key] = generator.permutation(values[keys == key])
    return with_column(table, "log_alpha", values)


def kinds_alike(table: pa.Table) -> pa.Table:
    """Shut every second gate of each kind: the kinds are pruned alike."""
    head, layer, seed = arrays(table, "head", "layer", "seed")
    noise = np.random.default_rng(3).uniform(0, 0.05, len(head))
    return with_column(table, "gate", np.abs((head + layer + seed) % 2 - noise))


def shuffled_heads(table: pa.Table) -> pa.Table:
    """Replace the trained model's importance by the untrained one's, and confidence by chance."""
    names = ("seed", "kind", "layer", "head", "metric")
    rows = table.to_pylist()
    known = {tuple(r[n] for n in names): r["value"] for r in rows if r["arm"] == "untrained"}
    generator = np.random.default_rng(2)

    def value(row: dict[str, Any]) -> float:
        if row["arm"] != "relative":
            return float(row["value"])
        if row["metric"] == "confidence":
            return float(generator.random())
        return float(known.get(tuple(row[n] for n in names), row["value"]) * generator.uniform(0.9, 1.1))

    return with_column(table, "value", [value(row) for row in rows])


def blind(table: pa.Table) -> pa.Table:
    """Let every head look at rare tokens as often as chance has it."""
    noise = np.random.default_rng(4).uniform(0.9, 1.1, table.num_rows)
    return with_column(table, "hits", table["expected"].to_numpy() * noise)


def on_text(null: Null) -> Null:
    """Plant a null of the synthetic track in the tables of real text."""
    return lambda tables: {**tables, **{TEXT + name: table for name, table in null(of_text(tables)).items()}}


WORSE_PRUNED = in_turn(same_scores("random", "l0"), changed("scores", lambda bleu: 0.9 * bleu, arm="l0", metric="bleu"))
NOT_BETTER_THAN_SCRATCH = same_scores("l0", "scratch")
synthetic = {
    "H1": renamed("positions", "relative", "untrained"),
    "H2": renamed("relations", "relative", "untrained"),
    "H3": replaced("heads", shuffled_heads),
    "H4": WORSE_PRUNED,
    "H5": replaced("gates", permuted_gates),
    "H6": NOT_BETTER_THAN_SCRATCH,
    "H9": changed("gates", lambda value: value / 10, column="log_alpha"),  # gates stay between 0 and 1
}
planted_nulls = {
    **synthetic,
    "H7": replaced("gates", kinds_alike),
    "H11": NOT_BETTER_THAN_SCRATCH,
    "E1": renamed("positions", "relative", "sinusoid"),
    **{name.replace("H", "T"): on_text(null) for name, null in synthetic.items()},
    "H10": on_text(replaced("rare", blind)),
}

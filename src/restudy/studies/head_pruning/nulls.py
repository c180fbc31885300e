"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.nulls import Null, changed, in_turn, next_seed, replaced
from restudy.tables import Array, arrays, relabel, with_column

from .statistics import TEXT, of_text


def renamed(table: str, one: str, other: str) -> Null:
    """Exchange two models in a table."""
    return replaced(table, lambda rows: relabel(rows, "arm", {one: other, other: one}))


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


def blind(table: pa.Table) -> pa.Table:
    """Let every head look at rare tokens as often as chance has it."""
    noise = np.random.default_rng(4).uniform(0.9, 1.1, table.num_rows)
    return with_column(table, "hits", table["expected"].to_numpy() * noise)


def on_text(null: Null) -> Null:
    """Plant a null of the synthetic track in the tables of real text."""
    return lambda tables: {**tables, **{TEXT + name: table for name, table in null(of_text(tables)).items()}}


NOT_BETTER_THAN_SCRATCH = next_seed("arm", "l0", "scratch", "scores", tuned=True)
synthetic = {
    "H1": renamed("positions", "relative", "untrained"),
    "H2": renamed("relations", "relative", "untrained"),
    "H3": next_seed("arm", "relative", "untrained", "heads"),
    "H4": in_turn(
        next_seed("arm", "random", "l0", "scores"),
        changed("scores", lambda bleu: 0.9 * bleu, arm="l0", metric="bleu"),
    ),
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

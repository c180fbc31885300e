"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.nulls import Null, in_turn, next_seed, replaced
from restudy.tables import Tables, relabel, with_column

from .statistics import (
    FEW,
    FEW_FIXED,
    FIXED,
    IWAE,
    STAYED,
    STAYED_IWAE,
    TO_IWAE,
    TO_VAE,
    VAE,
    resolved,
)  # fmt: skip


def as_other(treatment: str, reference: str, *tables: str) -> Null:
    """Give an arm the rows of another one of the next seed; names may hold `k*` and `n*`."""

    def null(found: Tables) -> dict[str, pa.Table]:
        return next_seed("arm", resolved(found, treatment), resolved(found, reference), *tables)(found)

    return null


def flat_bounds(table: pa.Table) -> pa.Table:
    """Let L_k not depend on k: each is L_1, and the sampling errors alternate in sign."""
    rows = table.to_pylist()
    first = min(row["k"] for row in rows)
    start = {(r["seed"], r["arm"]): r["value"] for r in rows if r["k"] == first and r["metric"] == "bound"}
    errors = {(r["seed"], r["arm"], r["k"]): r["value"] for r in rows if r["metric"] == "error_over_images"}
    flat = [
        start[r["seed"], r["arm"]] + 0.05 * errors[r["seed"], r["arm"], r["k"]] * (-1) ** (r["seed"] + r["k"])
        if r["metric"] == "bound"
        else r["value"]
        for r in rows
    ]
    return with_column(table, "value", flat)


def noise_of_one_sample(table: pa.Table) -> pa.Table:
    """Let the signal-to-noise ratio not depend on k: every one is that of the smallest k, with a little noise."""
    rows = table.to_pylist()
    first = min(row["k"] for row in rows)
    key = ("seed", "arm", "objective", "parameters", "metric")
    start = {tuple(r[c] for c in key): r["value"] for r in rows if r["k"] == first}
    flat = [
        start[tuple(r[c] for c in key)] + 0.01 * (r["seed"] % 3) * float(np.log(r["k"]))
        if r["metric"] == "signal_to_noise"
        else r["value"]
        for r in rows
    ]
    return with_column(table, "value", flat)


SWAPS_WITHOUT_EFFECT = ((TO_IWAE, STAYED), (TO_VAE, STAYED_IWAE))
RESAMPLED = in_turn(
    *(as_other(one, other, "likelihood") for one, other in ((FIXED, VAE), (f"{IWAE}_fixed", IWAE), (FEW_FIXED, FEW)))
)
planted_nulls = {
    "W1": replaced("bounds", flat_bounds),
    "W2": in_turn(as_other(IWAE, VAE, "likelihood"), as_other("iwae_k5", IWAE, "likelihood")),
    "W3": as_other(IWAE, VAE, "units", "training"),
    "W4": in_turn(*(as_other(one, other, "likelihood") for one, other in SWAPS_WITHOUT_EFFECT)),
    "W5": in_turn(*(as_other(f"{name}_two_layers", name, "likelihood") for name in (VAE, IWAE))),
    "W6": replaced("signal", noise_of_one_sample),
    "W7": RESAMPLED,
    "W11": RESAMPLED,
    "E1": replaced("toy_gradients", lambda rows: relabel(rows, "objective", {"iwae": "dreg", "dreg": "iwae"})),
    "E2": in_turn(*(as_other(one, other, "units") for one, other in SWAPS_WITHOUT_EFFECT)),
    "E3": RESAMPLED,
}

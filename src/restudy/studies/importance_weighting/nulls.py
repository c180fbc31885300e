"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.importance_weighting.arms import largest_k
from restudy.studies.importance_weighting.tidy import Tables, arms_of, relabel, with_values

Null = Callable[[Tables], dict[str, pa.Table]]


def _spoiled(claim: str) -> Null:
    """Every deviation of a claim made 10 larger."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["identities"]
        wrong = np.array([c == claim for c in table["claim"].to_pylist()])
        return {**tables, "identities": with_values(table, table["value"].to_numpy() + 10.0 * wrong)}

    return null


def _flat_bounds(tables: Tables) -> dict[str, pa.Table]:
    """L_k does not depend on k: each is L_1, and the sampling errors alternate in sign."""
    table = tables["bounds"]
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
    return {**tables, "bounds": with_values(table, flat)}


def _alternating(pairs: Callable[[Tables], list[tuple[str, str]]], *names: str) -> Null:
    """Pairs of arms exchanged in every second seed: both are then the same mixture of the two."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        changed = {}
        for name in names:
            if name not in tables:
                continue
            table = tables[name]
            exchanged = {a: b for one, other in pairs(tables) for a, b in ((one, other), (other, one))}
            new = [
                exchanged.get(arm, arm) if seed % 2 else arm
                for arm, seed in zip(table["arm"].to_pylist(), table["seed"].to_pylist(), strict=True)
            ]
            changed[name] = with_values(table, new, "arm")
        return {**tables, **changed}

    return null


def _objectives(tables: Tables) -> list[tuple[str, str]]:
    return [("vae_k1", f"iwae_k{largest_k(arms_of(tables['likelihood']))}")]


def _swaps(tables: Tables) -> list[tuple[str, str]]:
    iwae = f"iwae_k{largest_k(arms_of(tables['likelihood']))}"
    return [(f"{start}_then_vae_k1", f"{start}_then_{iwae}") for start in ("vae_k1", iwae)]


def _layers(tables: Tables) -> list[tuple[str, str]]:
    iwae = f"iwae_k{largest_k(arms_of(tables['likelihood']))}"
    return [(name, f"{name}_two_layers") for name in ("vae_k1", iwae)]


def _pixels(tables: Tables) -> list[tuple[str, str]]:
    """Arms with fixed pixels and their counterparts with resampled ones."""
    fixed = sorted(name for name in arms_of(tables["likelihood"]) if "_fixed" in name)
    return [(name, name.replace("_fixed", "")) for name in fixed]


def _exchanged_estimators(name: str, one: str, other: str) -> Null:
    """Two estimators exchanged in a table of gradients, where the run has it."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        if name not in tables:
            return dict(tables)
        return {**tables, name: relabel(tables[name], "objective", {one: other, other: one})}

    return null


def _noise_of_one_sample(tables: Tables) -> dict[str, pa.Table]:
    """The signal-to-noise ratio does not depend on k: every one is that of the smallest k."""
    if "signal" not in tables:
        return dict(tables)
    table = tables["signal"]
    rows = table.to_pylist()
    first = min(row["k"] for row in rows)
    key = ("seed", "arm", "objective", "parameters", "metric")
    start = {tuple(r[c] for c in key): r["value"] for r in rows if r["k"] == first}
    flat = [start[tuple(r[c] for c in key)] if r["metric"] == "signal_to_noise" else r["value"] for r in rows]
    jitter = np.array([0.01 * (r["seed"] % 3) * np.log(r["k"]) * (r["metric"] == "signal_to_noise") for r in rows])
    return {**tables, "signal": with_values(table, np.array(flat) + jitter)}


planted_nulls: dict[str, Null] = {
    "W1": _flat_bounds,
    "W2": _alternating(_objectives, "likelihood"),
    "W3": _alternating(_objectives, "units", "training"),
    "W4": _alternating(_swaps, "likelihood"),
    "W5": _alternating(_layers, "likelihood"),
    "W6": _noise_of_one_sample,
    "W7": _alternating(_pixels, "likelihood"),
    "W8": _spoiled("W8"),
    "W9": _spoiled("W9"),
    "W11": _alternating(_pixels, "likelihood"),
    "X1": _spoiled("W1"),
    "E1": _exchanged_estimators("toy_gradients", "iwae", "dreg"),
    "E2": _alternating(_swaps, "units"),
    "E3": _alternating(_pixels, "likelihood"),
}
"""Claim -> a function from results to results without the effect."""

"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.head_pruning.tidy import TEXT, Tables, of_text, set_values

Null = Callable[[Tables], dict[str, pa.Table]]


def _column(table: pa.Table, name: str) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
    return np.array(table[name].to_pylist(), dtype=object)


def _renamed(table: str, **names: str) -> Null:
    """Arms exchanged in a table."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        arms = [names.get(arm, arm) for arm in tables[table]["arm"].to_pylist()]
        return {**tables, table: set_values(tables[table], "arm", arms)}

    return null


def _same_scores(arm: str, other: str) -> Null:
    """An arm of `scores` gets the other's numbers, with a little noise around them: no difference on average."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["scores"]
        rows = table.to_pylist()
        known = {(r["seed"], r["penalty"], r["metric"], r["tuned"]): r["value"] for r in rows if r["arm"] == other}
        noise = np.random.default_rng(0).choice([-0.01, 0.01], len(rows))
        values = [
            known.get((r["seed"], r["penalty"], r["metric"], r["tuned"]), r["value"]) * (1 + noise[i])
            if r["arm"] == arm
            else r["value"]
            for i, r in enumerate(rows)
        ]
        return {**tables, "scores": set_values(table, "value", values)}

    return null


def _worse_pruned(tables: Tables) -> dict[str, pa.Table]:
    """Pruning costs a tenth of the BLEU, and random masks are as good as the learned one."""
    changed = _same_scores("random", "l0")(tables)
    table = changed["scores"]
    hit = (_column(table, "arm") == "l0") & (_column(table, "metric") == "bleu")
    values = np.where(hit, 0.9, 1.0) * table["value"].to_numpy()
    return {**changed, "scores": set_values(table, "value", values)}


def _reversed_gates(tables: Tables) -> dict[str, pa.Table]:
    """log_alpha permuted over the heads of each model: survival knows nothing of functions."""
    table = tables["gates"]
    arm, seed, penalty = (_column(table, n) for n in ("arm", "seed", "penalty"))
    values = table["log_alpha"].to_numpy().copy()
    generator = np.random.default_rng(1)
    for key in sorted({(a, s, p) for a, s, p in zip(arm, seed, penalty, strict=True)}):
        own = (arm == key[0]) & (seed == key[1]) & (penalty == key[2])
        values[own] = generator.permutation(values[own])
    return {**tables, "gates": set_values(table, "log_alpha", values)}


def _kinds_alike(tables: Tables) -> dict[str, pa.Table]:
    """Every second gate of each kind shut: the kinds are pruned alike."""
    table = tables["gates"]
    head, layer, seed = (table[name].to_numpy() for name in ("head", "layer", "seed"))
    noise = np.random.default_rng(3).uniform(0, 0.05, len(head))
    return {**tables, "gates": set_values(table, "gate", np.abs((head + layer + seed) % 2 - noise))}


def _half_open(tables: Tables) -> dict[str, pa.Table]:
    """log_alpha a tenth of what it was: gates stay between 0 and 1."""
    table = tables["gates"]
    return {**tables, "gates": set_values(table, "log_alpha", table["log_alpha"].to_numpy() / 10)}


def _spoiled(*checks: str) -> Null:
    """Deviations of an identity made 10 larger."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        table = tables["identities"]
        wrong = np.isin(_column(table, "check").astype(str), checks)
        return {**tables, "identities": set_values(table, "value", table["value"].to_numpy() + 10.0 * wrong)}

    return null


def _shuffled_heads(tables: Tables) -> dict[str, pa.Table]:
    """The trained model's importance replaced by the untrained one's; confidence permuted over heads."""
    table = tables["heads"]
    names = ("seed", "kind", "layer", "head", "metric")
    rows = table.to_pylist()
    known = {tuple(r[n] for n in names): r["value"] for r in rows if r["arm"] == "untrained"}
    generator = np.random.default_rng(2)
    values = []
    for r in rows:
        value = r["value"]
        if r["arm"] == "relative" and r["metric"] == "confidence":
            value = float(generator.random())
        elif r["arm"] == "relative":
            value = known.get(tuple(r[n] for n in names), value) * float(generator.uniform(0.9, 1.1))
        values.append(value)
    return {**tables, "heads": set_values(table, "value", values)}


def _on_text(null: Null) -> Null:
    """A null of the synthetic track, planted in the tables of real text."""

    def twin(tables: Tables) -> dict[str, pa.Table]:
        return {**tables, **{TEXT + name: table for name, table in null(of_text(tables)).items()}}

    return twin


def _blind(tables: Tables) -> dict[str, pa.Table]:
    """Every head looks at rare tokens as often as chance has it."""
    noise = np.random.default_rng(4).uniform(0.9, 1.1, tables["rare"].num_rows)
    return {**tables, "rare": set_values(tables["rare"], "hits", tables["rare"]["expected"].to_numpy() * noise)}


_UNTRAINED = {"relative": "untrained", "untrained": "relative"}
planted_nulls: dict[str, Null] = {
    "H1": _renamed("positions", **_UNTRAINED),
    "H2": _renamed("relations", **_UNTRAINED),
    "H3": _shuffled_heads,
    "H4": _worse_pruned,
    "H5": _reversed_gates,
    "H6": _same_scores("l0", "scratch"),
    "H7": _kinds_alike,
    "H8": _spoiled("torch attention", "sum over heads", "gate 0 and deletion"),
    "H9": _half_open,
    "H11": _same_scores("l0", "scratch"),
    "X1": _spoiled("gate mean", "P(open)"),
    "X2": _spoiled("relevance conserved"),
    "E1": _renamed("positions", relative="sinusoid", sinusoid="relative"),
}
planted_nulls |= {f"T{name[1:]}": _on_text(planted_nulls[name]) for name in ("H1", "H2", "H3", "H4", "H5", "H6", "H9")}
planted_nulls["H10"] = _on_text(_blind)

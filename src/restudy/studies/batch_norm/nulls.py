"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from restudy.studies.batch_norm.tidy import BN, NOISY, STD, STD_NOISE, Tables, seeds_of, where

Null = Callable[[Tables], dict[str, pa.Table]]


def _with(table: pa.Table, column: str, values: list[object]) -> pa.Table:
    index = table.schema.get_field_index(column)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, type=field.type))


def copied(given: str, taken: str) -> Null:
    """A run's rows taken from another run of the next seed: as if the treatment did nothing."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        return {name: _copied(table, given, taken) for name, table in tables.items()}

    return null


def _copied(table: pa.Table, given: str, taken: str) -> pa.Table:
    if "run" not in table.column_names or not where(table, run=taken).num_rows:
        return table
    rest = table.filter(pc.not_equal(table["run"], given))
    rows, seeds = where(table, run=taken), seeds_of(table)
    after = {seed: seeds[(place + 1) % len(seeds)] for place, seed in enumerate(seeds)}
    rows = _with(rows, "run", [given] * rows.num_rows)
    rows = _with(rows, "arm", [given.partition("-")[0]] * rows.num_rows)
    return pa.concat_tables([rest, _with(rows, "seed", [after[seed] for seed in rows["seed"].to_pylist()])])


def changed(name: str, change: Callable[[float], float], **chosen: object) -> Null:
    """Values of some rows of a table changed."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        if name not in tables:
            return dict(tables)
        rows = tables[name].to_pylist()
        here: Iterable[bool] = (all(row[k] == v for k, v in chosen.items()) for row in rows)
        values = [change(row["value"]) if inside else row["value"] for row, inside in zip(rows, here, strict=True)]
        return {**tables, name: _with(tables[name], "value", values)}

    return null


def _nearer_to_one(cosine: float) -> float:
    """The covariate shift nearly gone: the cosine a tenth as far from 1."""
    return 1 - 0.1 * (1 - cosine)


def _in_turn(*nulls: Null) -> Null:
    def null(tables: Tables) -> dict[str, pa.Table]:
        found: Mapping[str, pa.Table] = tables
        for one in nulls:
            found = one(found)
        return dict(found)

    return null


_NO_BN = copied(BN, STD)
_EXACT_OFF: dict[str, Null] = {
    "N7": changed("identities", lambda value: value + 1e-6, check="theorem_error"),
    "N10": changed("identities", lambda value: value + 1e-6, check="gradient_excess"),
    "E1": changed("identities", lambda value: 1.0, check="printed_bound_holds"),
    "E2": changed("identities", lambda value: value + 1e-9, check="shift_without_lower_step"),
}

planted_nulls: dict[str, Null] = {
    **_EXACT_OFF,
    "N1": _NO_BN,
    "N2": copied(NOISY, STD),
    "N3": copied(STD_NOISE, STD),
    "N4": changed("probes", _nearer_to_one, run=BN, metric="shift_cosine"),
    "N5": _NO_BN,
    "N6": _in_turn(copied("l1-0.1", STD), copied("l2-0.1", STD), copied("linf-0.1", STD)),
    "N8": changed("drift", lambda value: 5 * value, run=STD, metric="wasserstein"),
    "N9": copied(NOISY, STD),
    "N11": _NO_BN,
    "N12": _NO_BN,
    "A1": copied(NOISY, STD),
    "C1": _NO_BN,
    "S1": _NO_BN,
    "B1": changed("drift", lambda value: 5 * value, run=STD, metric="wasserstein"),
    "R1": _NO_BN,
    "D1": copied("bn-1e-7", "std-1e-7"),
    "D2": copied("bn-1e-6", "std-1e-6"),
    "D3": copied("bn-1e-7", "std-1e-7"),
    "D4": copied("bn-1e-6", "std-1e-6"),
}

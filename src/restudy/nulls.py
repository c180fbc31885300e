"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`.

A null maps results tables to results tables; tables that a run lacks are left out. `derived` makes the null of a claim
from the formulas of its statistics; a study writes only those that formulas do not give. No torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from restudy.contrasts import Leaf, Measure
from restudy.errors import ClaimError
from restudy.tables import Tables, chosen, levels, where, with_column

if TYPE_CHECKING:
    from restudy.claims import Claim

Null = Callable[[Tables], dict[str, pa.Table]]
Names = str | tuple[str, ...]


def replaced(table: str, function: Callable[[pa.Table], pa.Table]) -> Null:
    """Put another table in the place of one."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        return {**tables, table: function(tables[table])} if table in tables else dict(tables)

    return null


def changed(table: str, function: Callable[[float], float], column: str = "value", **only: Any) -> Null:
    """Apply a function to a column of the chosen rows."""

    def change(rows: pa.Table) -> pa.Table:
        here = chosen(rows, **only)
        values = [function(v) if inside else v for v, inside in zip(rows[column].to_pylist(), here, strict=True)]
        return with_column(rows, column, values)

    return replaced(table, change)


def spoiled(table: str, by: float = 10.0, column: str = "value", **only: Any) -> Null:
    """Add `by` to every deviation (simulates a wrong implementation)."""
    return changed(table, lambda value: value + by, column=column, **only)


def shifted(column: str, treatment: object, by: float, *tables: str) -> Null:
    """Add `by` to the values of a treatment: an effect of that size."""
    only: dict[str, Any] = {column: treatment}
    return in_turn(*(changed(name, lambda value: value + by, **only) for name in tables))


def in_turn(*nulls: Null) -> Null:
    """Apply several changes, one after the other."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        found = dict(tables)
        for one in nulls:
            found = one(found)
        return found

    return null


def copied(column: Names, given: object, taken: object, *tables: str, **only: Any) -> Null:
    """Give one condition the rows of another, seed by seed: as if the two did not differ."""
    return _taking_over(_chooser(column, given), _chooser(column, taken), 0, tables, only)


def next_seed(column: Names, treatment: object, reference: object, *tables: str, **only: Any) -> Null:
    """Give the treatment the reference's rows of the next seed, cyclically: over all seeds the mean difference is 0.

    Args:
        column: the column that tells the two apart, or several, with tuples as values.
        treatment: its value or values for the treatment.
        reference: its value or values for the reference.
        tables: names of the tables.
        only: the rows that are exchanged, among those of the treatment and the reference.
    """
    return _taking_over(_chooser(column, treatment), _chooser(column, reference), 1, tables, only)


def _chooser(column: Names, value: object) -> dict[str, object]:
    """Column -> value for one column, or for several with a tuple of values."""
    if isinstance(column, str):
        return {column: value}
    assert isinstance(value, tuple)
    return dict(zip(column, value, strict=True))


def _taking_over(
    given: dict[str, object], taken: dict[str, object], step: int, tables: tuple[str, ...], only: dict[str, Any]
) -> Null:
    """Replace the rows of `given` by those of `taken` from `step` seeds later."""

    def take(table: pa.Table) -> pa.Table:
        rows = where(table, **taken, **only)
        if not rows.num_rows:
            return table
        seeds = levels(table)
        before = {seed: seeds[place - step] for place, seed in enumerate(seeds)}
        for name, value in given.items():
            rows = with_column(rows, name, [value] * rows.num_rows)
        rows = with_column(rows, "seed", [before[seed] for seed in rows["seed"].to_pylist()])
        return pa.concat_tables([table.filter(pa.array(~chosen(table, **given, **only))), rows])

    return in_turn(*(replaced(name, take) for name in tables))


def derived(*statistics: Measure) -> Null:
    """Make the null of a claim from its statistics' formulas.

    Deviations from an identity are spoiled. In a difference or quotient the next seed's reference takes the
    treatment's place, for each of the treatment's rows.

    Raises:
        ClaimError: a formula does not tell treatment and reference apart; write the null by hand.
    """
    return in_turn(*(_of(statistic) for statistic in statistics))


def null_of(claim: Claim, statistics: ModuleType, own: Mapping[str, Null]) -> Null:
    """Return a claim's null: its entry in `own`, else the one that follows from the statistics of claim and parts.

    Raises:
        ClaimError: there is no entry and none follows.
    """
    if claim.id in own:
        return own[claim.id]
    names = [name for one in (claim, *claim.parts) if (name := one.statistic) is not None]
    measures = [getattr(statistics, name) for name in names]
    if plain := [name for name, m in zip(names, measures, strict=True) if not isinstance(m, Measure)]:
        raise ClaimError(
            f"no null follows from {', '.join(plain)}", where=f"claim {claim.id}", remedy="write one in nulls.py"
        )
    return derived(*measures)


def planted(claims: Sequence[Claim], statistics: ModuleType, own: Mapping[str, Null]) -> dict[str, Null]:
    """Return claim -> null for every claim that has one: its own, or one that follows from its statistics."""
    found = {}
    for claim in claims:
        if claim.statistic is None and not claim.parts:
            continue
        with suppress(ClaimError):
            found[claim.id] = null_of(claim, statistics, own)
    return found


def _of(statistic: Measure) -> Null:
    raises, lowers = ([leaf for leaf in statistic.leaves if leaf.sign == sign] for sign in (1, -1))
    if statistic.deviation:
        return in_turn(*(spoiled(leaf.table, column=leaf.column, **dict(leaf.only)) for leaf in raises))
    pairs = [(one, _partner(one, lowers)) for one in raises]
    if not pairs or any(other is None for _, other in pairs):
        raise ClaimError("no null follows from it", where=statistic.formula, remedy="write one in nulls.py")
    return in_turn(*(_exchange(one, other) for one, other in pairs if other is not None))


def _partner(leaf: Leaf, others: list[Leaf]) -> Leaf | None:
    """The first leaf of the same table that differs in values, not in the columns that it chooses by."""
    same = [o for o in others if o.table == leaf.table and dict(o.only).keys() == dict(leaf.only).keys()]
    return min(same, key=lambda o: len(_differing(leaf, o)), default=None)


def _differing(one: Leaf, other: Leaf) -> list[str]:
    theirs = dict(other.only)
    return [name for name, value in one.only if theirs[name] != value]


def _exchange(one: Leaf, other: Leaf) -> Null:
    names = tuple(_differing(one, other))
    mine, theirs = dict(one.only), dict(other.only)
    rest = {name: value for name, value in one.only if name not in names}
    return next_seed(names, tuple(mine[n] for n in names), tuple(theirs[n] for n in names), one.table, **rest)

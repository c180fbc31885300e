"""Tidy tables as MLflow metrics: names, values and steps."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

STEPS = ("step", "epoch", "iteration")
MAX_NAMES = 600  # of one table in one run; columns are averaged over until it is kept
MAX_NUMBERS = 20  # a column with more different numbers holds items, and is averaged over
MAX_NAME = 250
MAX_POINTS = 1000  # of one curve; longer ones are thinned, the last point is kept
_NOT_ALLOWED = re.compile(r"[^\w./ :-]+", re.ASCII)


@dataclass(frozen=True, order=True)
class Point:
    """One value of one metric at one step."""

    name: str
    step: int
    value: float


def clean(name: object) -> str:
    """A name that MLflow takes: other characters become `_`; no empty, absolute or upward path."""
    parts = [p for p in _NOT_ALLOWED.sub("_", str(name)).split("/") if p not in ("", ".", "..")]
    return ("/".join(parts) or "_")[:MAX_NAME]


def tidied(table: pa.Table) -> pa.Table | None:
    """A table with the columns `metric` and `value`; None where there are no such numbers in it.

    A table with a step column and one column a metric (floating point) is made long.
    """
    if {"metric", "value"} <= set(table.column_names):
        return table if _numeric(table, "value") else None
    wide = [c for c in table.column_names if c not in STEPS and pa.types.is_floating(table[c].type)]
    if not wide or not set(STEPS) & set(table.column_names):
        return None
    keys = table.select([c for c in table.column_names if c not in wide])
    parts = []
    for column in wide:
        part = keys.append_column("metric", pa.repeat(pa.scalar(column), table.num_rows))
        parts.append(part.append_column("value", table[column].cast(pa.float64())))
    return pa.concat_tables(parts)


def split_by_seed(table: pa.Table) -> dict[int | None, pa.Table]:
    """The part of each seed; one part under None where there is no seed column."""
    if "seed" not in table.column_names:
        return {None: table}
    seeds = sorted(s for s in pc.unique(table["seed"]).to_pylist() if s is not None)
    return {int(seed): table.filter(pc.equal(table["seed"], seed)) for seed in seeds}


def conditions(table: pa.Table, fixed: Iterable[str] = (), most: int = MAX_NAMES) -> list[str]:
    """The columns that metric names are made of, the same for every run of a study.

    Args:
        table: tidy, merged over all jobs.
        fixed: columns that tell runs apart or are averaged over (seed, axes).
        most: where more names than this would come out, columns are averaged over, those of numbers first.
    """
    left_out = {"metric", "value", "unit", *STEPS, *fixed}
    kept = [c for c in table.column_names if c not in left_out and _tells(table, c)]
    kept.sort(key=lambda c: not pa.types.is_string(table[c].type))  # words first: MLflow groups charts by them
    names = _names(table, kept)
    for column in [c for c in kept if not pa.types.is_string(table[c].type)]:
        if _names(table, others := [c for c in kept if c != column]) == names:  # it says what another one says
            kept = others
    while kept and names > most:
        numeric = [c for c in kept if not pa.types.is_string(table[c].type)]
        without = {c: _names(table, [k for k in kept if k != c]) for c in numeric or kept}
        fitting = {c: n for c, n in without.items() if n <= most}
        column = max(fitting, key=lambda c: fitting[c]) if fitting else min(without, key=lambda c: without[c])
        kept, names = [k for k in kept if k != column], without[column]
    return kept


def points(table: pa.Table, prefix: str, by: Sequence[str]) -> list[Point]:
    """The metrics of a tidy table: `prefix/metric/condition/...`, averaged over what has no place in a name.

    Args:
        table: tidy; a column `step` or `epoch` makes curves.
        prefix: first part of every name, the table's.
        by: the condition columns in names, from `conditions`.
    """
    if not table.num_rows:
        return []
    step = next((name for name in STEPS if name in table.column_names and _numeric(table, name)), None)
    keys = ["metric", *by, *([step] if step else [])]
    means = table.select([*keys, "value"]).group_by(keys, use_threads=False).aggregate([("value", "mean")])
    steps = _whole(means[step].to_pylist()) if step else [0] * means.num_rows
    columns = [means[key].to_pylist() for key in ["metric", *by]]
    names = [clean("/".join([prefix, *map(_word, parts)])) for parts in zip(*columns, strict=True)]
    # Names that only differ in characters that MLflow does not take, or beyond its length, are averaged too.
    merged: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name, at, value in zip(names, steps, means["value_mean"].to_pylist(), strict=True):
        merged[name][at].append(math.nan if value is None else float(value))
    found = []
    for name in sorted(merged):
        curve = [Point(name, at, sum(v) / len(v)) for at, v in sorted(merged[name].items())]
        found += curve[:: -(-len(curve) // MAX_POINTS)] if len(curve) > MAX_POINTS else curve
        if found[-1] != curve[-1]:
            found.append(curve[-1])
    return found


def last(found: Sequence[Point]) -> dict[str, float]:
    """The final value of every metric."""
    return {point.name: point.value for point in sorted(found, key=lambda p: (p.name, p.step))}


def numbers(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, float]:
    """The finite numbers of a row among some columns."""
    found = {name: row.get(name) for name in names}
    return {n: float(v) for n, v in found.items() if isinstance(v, int | float) and math.isfinite(v)}


def _tells(table: pa.Table, column: str) -> bool:
    """Words always stand in names, so that presets compare; a few different numbers do; items and lists do not."""
    kind = table[column].type
    return not pa.types.is_nested(kind) and (pa.types.is_string(kind) or 1 < _distinct(table, column) <= MAX_NUMBERS)


def _names(table: pa.Table, by: list[str]) -> int:
    return int(table.group_by(["metric", *by]).aggregate([]).num_rows)


def _distinct(table: pa.Table, column: str) -> int:
    return int(pc.count_distinct(table[column], mode="all").as_py())


def _word(value: object) -> str:
    """A part of a name; what is missing keeps its place."""
    if value is None or value == "":
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value).replace("/", "_")


def _whole(steps: list[Any]) -> list[int]:
    """Steps as integers; fractions of an epoch are replaced by their rank."""
    if all(s is not None and float(s).is_integer() for s in steps):
        return [int(s) for s in steps]
    rank = {s: i for i, s in enumerate(sorted({s for s in steps if s is not None}))}
    return [rank.get(s, 0) for s in steps]


def _numeric(table: pa.Table, column: str) -> bool:
    kind = table[column].type
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

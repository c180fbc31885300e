"""Statistics as expressions: a measure gives one number per replicate and knows its formula and its rows. No torch.

    reached = partial(mean, "toy", metric="reached")
    reached_rb_minus_plain = reached(arm="rb1") - reached(arm="reinforce")

A measure is called with the results tables by name and returns the table that the verdict engine reads. `str(measure)`
is its formula, printed beside the claim; `measure.leaves` the rows that it reads, from which planted nulls follow.
Numbers are combined replicate by replicate; where one side has none or a quotient is undefined the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.errors import ClaimError
from restudy.tables import Array, Tables, arrays, by_seed, grouped, levels, ordered, replicates, where

Values = dict[Any, float]
Number = int | float


@dataclass(frozen=True)
class Leaf:
    """Rows that a measure reads.

    `sign` is +1 where a larger number raises the measure, -1 where it lowers it, 0 where that depends.
    """

    table: str
    column: str
    only: tuple[tuple[str, Any], ...]
    sign: int = 1


@dataclass(frozen=True)
class Measure:
    """One number per replicate, computed from the results tables.

    Attributes:
        compute: tables -> replicate -> number, or the engine's own table where it has groups or clusters.
        formula: what is computed, in words and symbols.
        leaves: the rows read, with the sign in which they count; empty where the formula does not tell.
        linear: whether the measure is a linear function of its leaves.
        clusters: tables -> item -> cluster, for measures per item.
        deviation: whether the numbers are deviations from an identity, 0 where it holds.
    """

    compute: Callable[[Tables], Values | pa.Table]
    formula: str
    leaves: tuple[Leaf, ...] = ()
    linear: bool = False
    clusters: Callable[[Tables], Mapping[Any, Any]] | None = None
    deviation: bool = False

    def __call__(self, tables: Tables) -> pa.Table:
        """Return the table that the verdict engine reads: replicate, value (and group, x or cluster)."""
        found = self.compute(tables)
        if isinstance(found, pa.Table):
            return found
        if self.clusters is None:
            return replicates(found)
        names = self.clusters(tables)
        return replicates(found, cluster=[names[item] for item in found])

    def values(self, tables: Tables) -> Values:
        """Return replicate -> number.

        Raises:
            ClaimError: the measure has groups, so no single number per replicate.
        """
        found = self.compute(tables)
        if isinstance(found, pa.Table):
            raise ClaimError("has several numbers per replicate", where=self.formula, remedy="combine its parts")
        return found

    def __str__(self) -> str:
        return self.formula

    def __add__(self, other: Measure | Number) -> Measure:
        return _combine(self, "+", other, lambda a, b: a + b)

    def __radd__(self, other: Number) -> Measure:
        return _combine(other, "+", self, lambda a, b: a + b)

    def __sub__(self, other: Measure | Number) -> Measure:
        return _combine(self, "-", other, lambda a, b: a - b, sign=-1)

    def __rsub__(self, other: Number) -> Measure:
        return _combine(other, "-", self, lambda a, b: a - b, sign=-1)

    def __truediv__(self, other: Measure | Number) -> Measure:
        linear = not isinstance(other, Measure)
        return _combine(self, "/", other, lambda a, b: a / b if b else math.nan, sign=-1, linear=linear)

    def __rmul__(self, factor: Number) -> Measure:
        return _combine(factor, "*", self, lambda a, b: a * b, sign=-1 if factor < 0 else 1)

    def __neg__(self) -> Measure:
        flipped = tuple(replace(leaf, sign=-leaf.sign) for leaf in self.leaves)
        return replace(self.map(lambda v: -v, f"-{_braced(self)}"), leaves=flipped, linear=self.linear)

    def __abs__(self) -> Measure:
        return replace(self.map(abs, f"|{self.formula}|"), leaves=tuple(replace(leaf, sign=0) for leaf in self.leaves))

    def log10(self) -> Measure:
        """Take the logarithm; NaN where there is none."""
        return self.map(lambda v: math.log10(v) if v > 0 else math.nan, f"log10({self.formula})")

    def map(self, function: Callable[[float], float], formula: str) -> Measure:
        """Apply a rising function to every number; NaN stays NaN. `formula` describes the result."""

        def compute(tables: Tables) -> Values:
            return {key: v if math.isnan(v) else function(v) for key, v in self.values(tables).items()}

        return Measure(compute, formula, self.leaves, clusters=self.clusters)


def _combine(
    first: Measure | Number,
    symbol: str,
    second: Measure | Number,
    operation: Callable[[float, float], float],
    sign: int = 1,
    linear: bool = True,
) -> Measure:
    """Combine two measures, or a measure and a number, replicate by replicate; `sign` is that of the second's rows."""

    def compute(tables: Tables) -> Values:
        if not isinstance(first, Measure):
            return {key: operation(first, value) for key, value in _measure(second).values(tables).items()}
        left = first.values(tables)
        if not isinstance(second, Measure):
            return {key: operation(value, second) for key, value in left.items()}
        right = second.values(tables)
        return {key: operation(value, right.get(key, math.nan)) for key, value in left.items()}

    measures = [m for m in (first, second) if isinstance(m, Measure)]
    leaves = first.leaves if isinstance(first, Measure) else ()
    if isinstance(second, Measure):
        leaves += tuple(replace(leaf, sign=leaf.sign * sign) for leaf in second.leaves)
    left = _braced(first) if symbol in "*/" else _text(first)
    right = _text(second) if symbol == "+" else _braced(second)
    return Measure(
        compute,
        f"{left} {symbol} {right}",
        leaves,
        linear and all(m.linear for m in measures),
        next((m.clusters for m in measures if m.clusters), None),
    )


def _measure(operand: Measure | Number) -> Measure:
    assert isinstance(operand, Measure)
    return operand


def _text(operand: Measure | Number) -> str:
    return operand.formula if isinstance(operand, Measure) else f"{operand:.10g}"


def _braced(operand: Measure | Number) -> str:
    """Put a sum, difference or quotient in parentheses."""
    text = _text(operand)
    plain = not isinstance(operand, Measure) or not any(f" {symbol} " in text for symbol in "+-*/")
    return text if plain else f"({text})"


def measure(function: Callable[[Tables], Values | pa.Table]) -> Measure:
    """Make a measure of a function of the tables; the first line of its docstring is the formula."""
    says = (function.__doc__ or function.__name__).strip().splitlines()[0]
    return Measure(function, says.rstrip("."))


def _selection(table: str, column: str, only: Mapping[str, Any]) -> str:
    chosen = ", ".join(f"{name}={'|'.join(map(str, v)) if isinstance(v, tuple) else v}" for name, v in only.items())
    return f"{table}{'' if column == 'value' else '.' + column}[{chosen}]"


def _leaf(table: str, column: str, only: Mapping[str, Any]) -> tuple[Leaf, ...]:
    return (Leaf(table, column, tuple(only.items())),)


def table_of(tables: Tables, name: str) -> pa.Table:
    """Return a results table.

    Raises:
        ClaimError: the preset has no such table.
    """
    if name not in tables:
        raise ClaimError(f"needs the table {name}", where="statistic", remedy="judge the claim where its stage runs")
    return tables[name]


def mean(table: str, column: str = "value", within: tuple[str, ...] = (), **columns: Any) -> Measure:
    """Average the chosen rows of each seed (see `restudy.tables.by_seed`)."""

    def compute(tables: Tables) -> Values:
        return dict(by_seed(table_of(tables, table), column, within, **columns))

    return Measure(compute, _selection(table, column, columns), _leaf(table, column, columns), linear=True)


def last(table: str, by: str = "epoch", column: str = "value", **columns: Any) -> Measure:
    """Average the chosen rows at the largest `by`, for each seed; NaN for a seed that ends before."""

    def compute(tables: Tables) -> Values:
        whole = table_of(tables, table)
        rows = where(whole, **columns)
        end = pc.max(rows[by]).as_py() if rows.num_rows else 0
        found = by_seed(where(rows, **{by: end}), column) if rows.num_rows else {}
        return {seed: found.get(seed, math.nan) for seed in levels(whole)}

    formula = _selection(table, column, columns | {by: "last"})
    return Measure(compute, formula, _leaf(table, column, columns), linear=True)


def each(table: str, key: str | tuple[str, ...] = "case", column: str = "value", **columns: Any) -> Measure:
    """Take every chosen row, a deviation from an identity, as a replicate named by its `key` columns."""
    names = (key,) if isinstance(key, str) else key

    def compute(tables: Tables) -> Values:
        rows = where(table_of(tables, table), **columns)
        keys = zip(*(rows[name].to_pylist() for name in names), strict=True)
        return {", ".join(map(str, k)): v for k, v in zip(keys, rows[column].to_pylist(), strict=True)}

    formula = f"{_selection(table, column, columns)} for each {', '.join(names)}"
    return Measure(compute, formula, _leaf(table, column, columns), linear=True, deviation=True)


def _fold(name: str, measures: tuple[Measure | Number, ...], function: Callable[[list[float]], float]) -> Measure:
    def compute(tables: Tables) -> Values:
        found = [m.values(tables) if isinstance(m, Measure) else m for m in measures]
        keys = next(f for f in found if isinstance(f, dict))
        rows = {k: [f.get(k, math.nan) if isinstance(f, dict) else float(f) for f in found] for k in keys}
        return {k: math.nan if any(map(math.isnan, row)) else function(row) for k, row in rows.items()}

    leaves = tuple(leaf for m in measures if isinstance(m, Measure) for leaf in m.leaves)
    return Measure(compute, f"{name}({', '.join(map(_text, measures))})", leaves)


def largest(*measures: Measure | Number) -> Measure:
    """Take the largest of several numbers for each replicate; NaN where one is."""
    return _fold("max", measures, max)


def smallest(*measures: Measure | Number) -> Measure:
    """Take the smallest of several numbers for each replicate; NaN where one is."""
    return _fold("min", measures, min)


def median(*measures: Measure) -> Measure:
    """Take the median of several numbers for each replicate; NaN where one is."""
    return _fold("median", measures, lambda row: float(np.median(row)))


def average(*measures: Measure) -> Measure:
    """Take the mean of several numbers for each replicate; NaN where one is."""
    return replace(_fold("mean", measures, lambda row: sum(row) / len(row)), linear=all(m.linear for m in measures))


def per_seed(
    table: str, function: Callable[[pa.Table], float], formula: str, key: str = "seed", **columns: Any
) -> Measure:
    """Apply a function to the chosen rows of each seed that has any; `formula` names the function."""

    def compute(tables: Tables) -> Values:
        rows = where(table_of(tables, table), **columns)
        return {name: float(function(where(rows, **{key: name}))) for name in levels(rows, key)}

    return Measure(compute, f"{formula} of {_selection(table, 'value', columns)}", _leaf(table, "value", columns))


def along(
    table: str,
    x: str,
    function: Callable[[Array, Array], float],
    formula: str,
    column: str = "value",
    key: str = "seed",
    **columns: Any,
) -> Measure:
    """Apply a function to each seed's curve: `x` in rising order and a column beside it, float64 (n,) and (n,).

    `formula` names the function; `key` another column than the seed that tells the curves apart.
    """

    def compute(tables: Tables) -> Values:
        whole = table_of(tables, table)
        curves = {name: ordered(whole, x, column, **{key: name}, **columns) for name in levels(whole, key)}
        return {name: float(function(*curve)) for name, curve in curves.items()}

    return Measure(compute, f"{formula} of {_selection(table, column, columns)}", _leaf(table, column, columns))


def slope(table: str, x: str, column: str = "value", key: str = "seed", **columns: Any) -> Measure:
    """Fit log(column) on log(x) for each seed; NaN with fewer than two points or a value that is not positive."""
    return along(table, x, loglog_slope, f"slope in log {x} of log", column, key, **columns)


def loglog_slope(x: Any, y: Any) -> float:
    """Least-squares slope of log y on log x, (n,) and (n,); NaN where it is undefined."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(x) < 2 or (x <= 0).any() or not (y > 0).all():
        return math.nan
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def groups(measures: Mapping[Any, Measure], level: str = "group") -> Measure:
    """Put several measures side by side: groups of an ordering, or with `level="x"` the points of a trend."""

    def compute(tables: Tables) -> pa.Table:
        return grouped({name: m.values(tables) for name, m in measures.items()}, level)

    leaves = tuple(leaf for m in measures.values() for leaf in m.leaves)
    return Measure(compute, "; ".join(f"{name}: {m}" for name, m in measures.items()), leaves)


def paired_items(table: str, key: str, cluster: str | None = None, column: str = "value", **columns: Any) -> Measure:
    """Average the chosen rows of each item (image, sentence) of one fixed model.

    Args:
        key: column that names the item.
        cluster: column that names what belongs together; the item itself by default.
    """

    def compute(tables: Tables) -> Values:
        rows = where(table_of(tables, table), **columns)
        items, values = arrays(rows, key, column)
        return {item: float(values[items == item].mean()) for item in dict.fromkeys(rows[key].to_pylist())}

    def clusters(tables: Tables) -> Mapping[Any, Any]:
        whole = tables[table]
        return dict(zip(whole[key].to_pylist(), whole[cluster or key].to_pylist(), strict=True))

    formula = f"{_selection(table, column, columns)} for each {key}"
    return Measure(compute, formula, _leaf(table, column, columns), linear=True, clusters=clusters)

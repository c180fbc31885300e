from __future__ import annotations

import math

import pyarrow as pa
import pytest

from restudy.tracking.curves import Point, clean, conditions, last, points, split_by_seed


def table(**columns: list) -> pa.Table:
    return pa.table(columns)


def test_names_hold_words_always_and_numbers_where_they_differ() -> None:
    found = table(metric=["m"] * 2, value=[1.0, 2.0], method=["a"] * 2, size=[3, 3], depth=[1, 2], seed=[0, 0])
    assert conditions(found, ["seed"]) == ["method", "depth"]
    assert points(found, "t", ["method", "depth"]) == [Point("t/m/a/1", 0, 1.0), Point("t/m/a/2", 0, 2.0)]


def test_widest_condition_is_averaged_over() -> None:
    found = table(
        metric=["m"] * 40,
        value=[float(i) for i in range(40)],
        image=list(range(40)),
        method=["a"] * 20 + ["b"] * 20,
    )
    by = conditions(found, [], most=10)
    assert by == ["method"]
    assert points(found, "t", by) == [Point("t/m/a", 0, 9.5), Point("t/m/b", 0, 29.5)]


def test_curves_have_steps_and_a_last_value() -> None:
    found = table(metric=["m"] * 3, value=[3.0, 1.0, 2.0], step=[200, 0, 100])
    curve = points(found, "t", [])
    assert [(p.step, p.value) for p in curve] == [(0, 1.0), (100, 2.0), (200, 3.0)]
    assert last(curve) == {"t/m": 3.0}
    fractions = table(metric=["m"] * 3, value=[3.0, 1.0, 2.0], epoch=[0.5, 0.0, 0.25])
    assert [p.step for p in points(fractions, "t", [])] == [0, 1, 2]


def test_long_curves_are_thinned_and_keep_their_end() -> None:
    n = 12_345
    found = table(metric=["m"] * n, value=[float(i) for i in range(n)], step=list(range(n)))
    curve = points(found, "t", [])
    assert len(curve) <= 1001
    assert (curve[0].step, curve[-1].step) == (0, n - 1)


def test_tables_that_are_not_tidy_have_no_metrics() -> None:
    assert points(table(metric=["m"], value=["a"]), "t", []) == []
    assert points(table(seed=[0], counts=[[1, 2]]), "t", []) == []
    empty = pa.table({"metric": pa.array([], pa.string()), "value": pa.array([], pa.float64())})
    assert points(empty, "t", []) == []


def test_seeds_and_missing_values() -> None:
    found = table(metric=["m", "m"], value=[None, 2.0], seed=[1, 0])
    assert list(split_by_seed(found)) == [0, 1]
    (point,) = points(split_by_seed(found)[1], "t", [])
    assert math.isnan(point.value)


@pytest.mark.parametrize(
    ("given", "taken"),
    [("a=b", "a_b"), ("/a//b/../c", "a/b/c"), ("", "_"), ("ümlaut", "_mlaut"), ("x" * 400, "x" * 250)],
)
def test_names_that_mlflow_takes(given: str, taken: str) -> None:
    assert clean(given) == taken

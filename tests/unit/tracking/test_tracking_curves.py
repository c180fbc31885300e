from __future__ import annotations

import math

import pyarrow as pa
import pytest

from restudy.tracking.curves import Point, clean, conditions, last, points, split_by_seed, tidied


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


def test_wide_curves_are_made_long() -> None:
    found = tidied(table(arm=["a", "b"], seed=[0, 0], epoch=[1, 2], loss_nats=[0.5, 0.25], accuracy=[0.1, 0.2]))
    assert conditions(found, ["seed"]) == ["arm"]
    assert [(p.name, p.step, p.value) for p in points(found, "t", ["arm"])] == [
        ("t/accuracy/a", 1, 0.1),
        ("t/accuracy/b", 2, 0.2),
        ("t/loss_nats/a", 1, 0.5),
        ("t/loss_nats/b", 2, 0.25),
    ]


def test_tables_that_hold_no_metrics() -> None:
    assert tidied(table(metric=["m"], value=["a"])) is None
    assert tidied(table(seed=[0], counts=[[1, 2]])) is None
    assert tidied(table(seed=[0], width=[1.5])) is None
    empty = pa.table({"metric": pa.array([], pa.string()), "value": pa.array([], pa.float64())})
    assert points(tidied(empty), "t", conditions(empty)) == []


def test_numbers_go_before_words() -> None:
    rows = [(m, d, i) for m in "abc" for d in range(4) for i in range(3)]
    found = table(metric=["m"] * 36, value=[1.0] * 36, depth=[r[1] for r in rows], method=[r[0] for r in rows])
    found = found.append_column("twin", found["depth"])
    assert conditions(found) in (["method", "depth"], ["method", "twin"])
    assert conditions(found, most=5) == ["method"]


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

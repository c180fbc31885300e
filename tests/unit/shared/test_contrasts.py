"""Measures against plain loops over rows, their formulas, and the nulls that follow from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy import nulls
from restudy.contrasts import (
    average,
    each,
    groups,
    largest,
    last,
    mean,
    measure,
    median,
    paired_items,
    slope,
    smallest,
)  # fmt: skip
from restudy.errors import ClaimError
from restudy.tables import BySeed, Tables, by_seed, chosen, ordered, relabel, replicates, where, with_column

ARMS = ("a", "b", "c")


@st.composite
def tables(draw: st.DrawFn) -> dict[str, pa.Table]:
    """A long table of a few seeds, arms and epochs with gaps, in any order of rows."""
    keys = [(s, arm, e) for s in range(3) for arm in ARMS for e in range(3)]
    kept = draw(st.lists(st.sampled_from(keys), min_size=1, max_size=30))
    numbers = st.floats(-1e6, 1e6)
    rows = [{"seed": s, "arm": arm, "epoch": e, "value": draw(numbers)} for s, arm, e in kept]
    return {"t": pa.Table.from_pylist(rows)}


def loop(table: pa.Table, **columns: object) -> BySeed:
    """Average by seed in plain Python; NaN for a seed without rows."""
    rows = table.to_pylist()
    found = {}
    for seed in sorted({r["seed"] for r in rows}):
        mine = [r["value"] for r in rows if r["seed"] == seed and all(r[k] == v for k, v in columns.items())]
        found[seed] = float(np.array(mine).mean()) if mine else math.nan
    return found


def same(one: Mapping[Any, float], other: Mapping[Any, float]) -> bool:
    """Whether two mappings agree to the last bit, NaN with NaN."""
    return list(one) == list(other) and np.array_equal(list(one.values()), list(other.values()), equal_nan=True)


@settings(deadline=None)
@given(tables())
def test_a_difference_is_that_of_the_means_seed_by_seed_and_keeps_seeds_without_rows(found: Tables) -> None:
    a, b = loop(found["t"], arm="a"), loop(found["t"], arm="b")
    assert same((mean("t", arm="a") - mean("t", arm="b")).values(found), {s: a[s] - b[s] for s in a})
    assert same((0.5 * mean("t", arm="a") + 1).values(found), {s: 0.5 * v + 1 for s, v in a.items()})
    assert same((1 - mean("t", arm="a")).values(found), {s: 1 - v for s, v in a.items()})
    expected = {s: a[s] / b[s] if b[s] else math.nan for s in a}
    assert same((mean("t", arm="a") / mean("t", arm="b")).values(found), expected)
    assert same((-mean("t", arm="a")).values(found), {s: -v for s, v in a.items()})


@settings(deadline=None)
@given(tables())
def test_last_takes_the_largest_epoch_of_the_chosen_rows(found: Tables) -> None:
    end = max((r["epoch"] for r in found["t"].to_pylist() if r["arm"] == "a"), default=0)
    assert same(last("t", arm="a").values(found), loop(found["t"], arm="a", epoch=end))


@settings(deadline=None)
@given(tables())
def test_folds_agree_with_numpy_and_hand_nan_on(found: Tables) -> None:
    arms = [mean("t", arm=arm) for arm in ARMS]
    by_hand = [loop(found["t"], arm=arm) for arm in ARMS]
    for fold, reference in ((largest, np.max), (smallest, np.min), (median, np.median)):
        expected = {s: float(reference([h[s] for h in by_hand])) for s in by_hand[0]}
        assert same(fold(*arms).values(found), expected)
    for seed, value in average(*arms).values(found).items():
        assert value == pytest.approx(np.mean([h[seed] for h in by_hand]), nan_ok=True)


@settings(deadline=None)
@given(tables(), st.sampled_from(ARMS))
def test_where_keeps_the_order_and_a_tuple_matches_any(found: Tables, arm: str) -> None:
    rows = found["t"].to_pylist()
    assert where(found["t"], arm=(arm, "c")).to_pylist() == [r for r in rows if r["arm"] in (arm, "c")]
    assert chosen(found["t"], arm=arm).tolist() == [r["arm"] == arm for r in rows]
    only = relabel(found["t"], "arm", {"a": "b"}, epoch=0).to_pylist()
    assert only == [r | {"arm": "b"} if r["arm"] == "a" and r["epoch"] == 0 else r for r in rows]


def test_a_slope_finds_the_exponent_and_is_nan_where_there_is_none() -> None:
    rows = [{"seed": 0, "n": n, "value": 3.0 * n**1.7} for n in (8, 2, 4)]
    rows += [{"seed": 1, "n": n, "value": -1.0} for n in (2, 4)]
    found = slope("t", "n").values({"t": pa.Table.from_pylist(rows)})
    assert found[0] == pytest.approx(1.7)
    assert math.isnan(found[1])
    assert ordered(pa.Table.from_pylist(rows), "n", seed=0)[0].tolist() == [2, 4, 8]


def test_a_formula_says_what_is_computed() -> None:
    a, b = mean("t", metric="loss", arm="a"), mean("t", metric="loss", arm=("b", "c"))
    assert str(0.5 * (a - b)) == "0.5 * (t[metric=loss, arm=a] - t[metric=loss, arm=b|c])"
    assert str(largest(0.0, a / b)) == "max(0, t[metric=loss, arm=a] / t[metric=loss, arm=b|c])"
    assert [(leaf.sign, dict(leaf.only)["arm"]) for leaf in (b - 2 * a).leaves] == [(1, ("b", "c")), (-1, "a")]
    assert (a - 2 * b).linear and not (a / b).linear and (a / 2).linear


def test_a_measure_of_a_function_says_its_first_line_and_may_hold_groups() -> None:
    @measure
    def odd(tables: Tables) -> pa.Table:
        """Two groups of one seed."""
        return replicates({0: 1.0, 1: 2.0}, group=["x", "y"])

    assert str(odd) == "Two groups of one seed"
    assert odd({})["group"].to_pylist() == ["x", "y"]
    with pytest.raises(ClaimError, match="several numbers per replicate"):
        odd.values({})
    side = groups({1.0: mean("t", arm="a"), 2.0: mean("t", arm="b")}, level="x")
    rows = [{"seed": s, "arm": arm, "value": float(s)} for s in (0, 1) for arm in "ab"]
    assert side({"t": pa.Table.from_pylist(rows)})["x"].to_pylist() == [1.0, 1.0, 2.0, 2.0]


def test_items_are_paired_by_name_and_carry_their_cluster() -> None:
    rows = [
        {"crop": c, "photo": c[0], "method": m, "value": v}
        for c, m, v in (("p1", "x", 3.0), ("p2", "x", 5.0), ("q1", "x", 7.0), ("p1", "y", 1.0), ("q1", "y", 1.0))
    ]
    found = {"t": pa.Table.from_pylist(rows)}
    gap = paired_items("t", "crop", "photo", method="x") - paired_items("t", "crop", "photo", method="y")
    table = gap(found).to_pylist()
    assert [(r["replicate"], r["cluster"]) for r in table] == [("p1", "p"), ("p2", "p"), ("q1", "q")]
    assert table[0]["value"] == 2.0 and math.isnan(table[1]["value"])


def test_a_missing_table_is_refused_in_one_line() -> None:
    with pytest.raises(ClaimError, match="needs the table t"):
        mean("t", arm="a")({})


@pytest.fixture
def full() -> dict[str, pa.Table]:
    rng = np.random.default_rng(0)
    rows = [
        {"seed": s, "arm": arm, "metric": m, "value": float(rng.normal())}
        for s in range(5)
        for arm in ARMS
        for m in ("loss", "error")
    ]
    return {"t": pa.Table.from_pylist(rows)}


def test_the_derived_null_of_a_difference_has_mean_zero_and_leaves_other_rows(full: Tables) -> None:
    gap = mean("t", metric="loss", arm="a") - mean("t", metric="loss", arm="b")
    null = nulls.derived(gap)(full)
    values = list(gap.values(null).values())
    assert abs(np.mean(values)) < 1e-12 and np.std(values) > 0.1
    assert by_seed(null["t"], metric="loss", arm="b") == by_seed(full["t"], metric="loss", arm="b")
    assert by_seed(null["t"], metric="error", arm="a") == by_seed(full["t"], metric="error", arm="a")
    ratio = mean("t", metric="loss", arm="a") / mean("t", metric="loss", arm="b")
    swapped = nulls.derived(ratio)(full)
    assert sorted(by_seed(swapped["t"], metric="loss", arm="a").values()) == sorted(
        by_seed(full["t"], metric="loss", arm="b").values()
    )


def test_a_treatment_moved_by_two_moves_the_difference_by_two(full: Tables) -> None:
    gap = mean("t", metric="loss", arm="a") - mean("t", metric="loss", arm="b")
    before, after = gap.values(full), gap.values(nulls.shifted("arm", "a", 2.0, "t")(full))
    assert after == pytest.approx({s: v + 2.0 for s, v in before.items()})


def test_identities_are_spoiled_and_other_formulas_need_a_null_of_their_own(full: Tables) -> None:
    exact = each("t", ("seed", "arm"), metric="loss")
    before, after = exact.values(full), nulls.derived(exact)(full)
    assert exact.values(after) == pytest.approx({k: v + 10 for k, v in before.items()})
    assert mean("t", metric="error").values(after) == mean("t", metric="error").values(full)
    with pytest.raises(ClaimError, match="write one in nulls.py"):
        nulls.derived(mean("t", arm="a"))
    claim = SimpleNamespace(id="A1", statistic="gap", parts=())
    study = SimpleNamespace(gap=lambda tables: tables)
    with pytest.raises(ClaimError, match="claim A1: no null follows from gap; write one in nulls.py"):
        nulls.null_of(claim, study, {})  # type: ignore[arg-type]


def test_nulls_leave_absent_tables_out(full: Tables) -> None:
    null = nulls.in_turn(nulls.copied("arm", "a", "b", "absent", "t"), nulls.spoiled("absent"))
    assert set(null(full)) == {"t"}
    assert by_seed(null(full)["t"], arm="a") == by_seed(full["t"], arm="b")
    assert with_column(full["t"], "seed", [0] * 30)["seed"].type == full["t"]["seed"].type

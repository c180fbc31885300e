"""Steps to a result and budgets on hand-made tables, and against loops over the definition."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.errors import ConfigError
from restudy.methods.sweeps import (
    apply_example_budget,
    apply_step_budget,
    best_errors,
    feasible_shares,
    fewest_steps,
    first_steps,
    steps_to_result,
)

SCHEMA = pa.schema(
    [("batch_size", pa.int64()), ("trial_id", pa.int64()), ("step", pa.int64()), ("status", pa.string())]
    + [("validation_error", pa.float64())]
)


def measured(*rows: tuple[int, int, int, str, float | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def answer(table: pa.Table, goal: float = 0.2, **options: Any) -> dict[int, tuple[int | None, float]]:
    return {r["batch_size"]: (r["trial_id"], r["steps"]) for r in steps_to_result(table, goal, **options).to_pylist()}


def test_the_first_measured_step_past_the_goal_counts_even_if_the_error_rises_again() -> None:
    table = measured((8, 0, 30, "complete", 0.5), (8, 0, 10, "complete", 0.1), (8, 0, 20, "complete", 0.4))
    assert answer(table) == {8: (0, 10.0)}


def test_meeting_the_goal_exactly_is_not_past_it() -> None:
    table = measured((8, 0, 10, "complete", 0.2), (8, 0, 20, "complete", 0.19))
    assert answer(table) == {8: (0, 20.0)}
    assert answer(table, better="higher") == {8: (None, pytest.approx(math.nan, nan_ok=True))}


def test_ties_go_to_the_smaller_trial() -> None:
    table = measured((8, 5, 10, "complete", 0.1), (8, 2, 10, "complete", 0.15), (8, 1, 11, "complete", 0.0))
    assert answer(table) == {8: (2, 10.0)}


def test_missing_measurements_are_not_past_the_goal() -> None:
    rows = [(8, 0, 5, "complete", None), (8, 0, 6, "complete", math.nan), (8, 0, 9, "complete", 0.1)]
    assert answer(measured(*rows)) == {8: (0, 9.0)}


def test_trials_that_are_not_complete_never_count_though_they_were_faster() -> None:
    rows = [(8, 0, 1, "infeasible", 0.0), (8, 1, 2, "incomplete", 0.0), (8, 2, 50, "complete", 0.1)]
    assert answer(measured(*rows)) == {8: (2, 50.0)}
    assert first_steps(measured(*rows), 0.2)["steps"].to_pylist() == [1.0, 2.0, 50.0]


def test_a_goal_that_was_never_reached_is_nan_without_a_trial_and_keeps_its_row() -> None:
    table = measured((8, 0, 1, "infeasible", 0.0), (16, 0, 1, "complete", 0.3), (32, 0, 4, "complete", 0.1))
    found = answer(table)
    assert list(found) == [8, 16, 32] and found[32] == (0, 4.0)
    assert all(found[b][0] is None and math.isnan(found[b][1]) for b in (8, 16))


def test_an_empty_table_has_no_rows() -> None:
    assert steps_to_result(measured(), 0.2).num_rows == 0


@pytest.mark.parametrize(
    "table",
    [
        measured((8, 0, 1, "finished", 0.1)),
        measured((8, 0, 1, "complete", 0.1), (8, 0, 2, "infeasible", 0.1)),
        measured((8, 0, 1, "complete", 0.1)).drop_columns(["step"]),
    ],
)
def test_tables_that_say_nothing_clear_are_refused(table: pa.Table) -> None:
    with pytest.raises(ConfigError):
        steps_to_result(table, 0.2)


def test_budgets_are_inclusive_and_count_steps_or_examples() -> None:
    rows = [(8, 0, s, "complete", 1 / s) for s in (1, 2, 4)] + [(16, 0, s, "complete", 1 / s) for s in (1, 2, 4)]
    table = measured(*rows)
    assert best_errors(apply_step_budget(table, 2))["value"].to_pylist() == [0.5, 0.5]
    assert best_errors(apply_example_budget(table, 32))["value"].to_pylist() == [0.25, 0.5]
    assert best_errors(table)["value"].to_pylist() == [0.25, 0.25]


def test_best_errors_leave_out_what_does_not_count() -> None:
    rows = [
        (8, 0, 1, "infeasible", 0.0),
        (8, 1, 1, "complete", 0.3),
        (8, 2, 1, "complete", 0.3),
        (4, 0, 1, "complete", None),
    ]
    assert best_errors(measured(*rows)).to_pylist() == [{"batch_size": 8, "trial_id": 1, "value": 0.3}]


def test_feasible_shares_ignore_trials_that_were_stopped() -> None:
    rows = [(8, i, 1, s, 0.1) for i, s in enumerate(("complete", "infeasible", "incomplete", "complete"))]
    assert feasible_shares(first_steps(measured(*rows), 0.2)) == {8: pytest.approx(2 / 3)}


ROW = st.tuples(
    st.sampled_from([4, 8]), st.integers(0, 3), st.integers(1, 6), st.sampled_from([0.1, 0.2, 0.3, None, math.nan])
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(ROW, max_size=30),
    st.lists(st.sampled_from(["complete", "infeasible", "incomplete"]), min_size=8, max_size=8),
)
def test_agrees_with_loops(rows: list[Any], statuses: list[str]) -> None:
    whole = [(b, t, s, statuses[t + 4 * (b == 8)], e) for b, t, s, e in rows]
    expected: dict[int, tuple[int | None, float]] = {}
    for batch in sorted({row[0] for row in whole}):
        passed = [
            (s, t) for b, t, s, status, e in whole if b == batch and status == "complete" and e is not None and e < 0.25
        ]
        expected[batch] = (min(passed)[1], float(min(passed)[0])) if passed else (None, math.nan)
    table = measured(*whole)
    assert str(answer(table, 0.25)) == str(expected)
    assert str(fewest_steps(first_steps(table, 0.25)).to_pylist()) == str(steps_to_result(table, 0.25).to_pylist())

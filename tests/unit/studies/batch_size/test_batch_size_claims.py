"""What stops the study's claims: a sweep that cannot be believed; and statistics by hand."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from tests.examples import tables, verdict
from tests.examples.batch_size import SGD

from restudy.bench.planting import nulls_of
from restudy.nulls import changed
from restudy.studies.batch_size import trials
from restudy.studies.batch_size.trials import curve
from restudy.tables import Tables, where, with_column

SLUG = "batch_size"
MOMENTUM = "fashion-mlp64-momentum"
TABLES = tables(SLUG)


def set_to(value: Any, column: str, **only: Any) -> Tables:
    return changed("trials", lambda _: value, column, **only)(TABLES)


def columns(*names: str) -> list[np.ndarray]:  # type: ignore[type-arg]
    return [np.array(TABLES["trials"][n].to_pylist()) for n in names]


def test_an_optimum_on_the_edge_of_the_box_stops_the_claims() -> None:
    """The box ends where the best trial lies and nothing above it diverged: a plateau that nobody should believe."""
    workload, size, rate = columns("workload", "batch_size", "effective_learning_rate")
    here = (workload == SGD) & (size == 4096)
    best = min(r for r in rate[here] if r > 0.3)
    boxes = changed("boxes", lambda _: best * 1.01, "high", metric="effective_learning_rate")(TABLES)
    edge = {**boxes, "trials": TABLES["trials"].filter(~(here & (rate > best)))}
    assert {verdict(SLUG, name, edge).text for name in ("B1", "B2")} == {"inconclusive (gate)"}


def test_a_goal_that_comes_too_late_stops_the_claims() -> None:
    late = set_to(2100, "step_budget", workload=SGD, batch_size=4)
    assert verdict(SLUG, "B1", late).text == "inconclusive (gate)"
    assert verdict(SLUG, "B8", late).text == "reproduced", "other workloads are judged by their own gates"


def test_few_feasible_trials_stop_the_claims() -> None:
    lost = set_to("infeasible", "status", workload=MOMENTUM, kind="search", batch_size=4, trial_id=tuple(range(4, 16)))
    assert verdict(SLUG, "B5", lost).text == "inconclusive (gate)"


def test_unfinished_training_stops_the_claim_about_quality() -> None:
    table = TABLES["measurements"]
    late = 1e-5 * np.maximum(400 - table["step"].to_numpy(), 0) * (table["batch_size"].to_numpy() == 4096)
    errors = with_column(table, "validation_error", table["validation_error"].to_numpy() + 5 * late)
    assert verdict(SLUG, "B6", {**TABLES, "measurements": errors}).text == "inconclusive (gate)"


def test_a_rule_that_fails_as_the_best_again_is_stopped_by_its_control() -> None:
    found = verdict(SLUG, "B5", changed("trials", lambda v: 3 * v, kind="rerun", metric="steps")(TABLES))
    assert found.verdict == "inconclusive", found.text


def test_expected_least_of_random_trials_is_that_of_all_subsets() -> None:
    steps = np.array([3.0, 10, 4, 50, 7, 7])
    for count in (1, 3, 6):
        every = np.mean([np.log(min(c)) for c in combinations(steps, count)])
        assert trials.expected_log_least(steps, count) == pytest.approx(every)


def test_trials_that_never_came_count_with_their_budget() -> None:
    rows = where(TABLES["trials"], workload=MOMENTUM, seed=0, kind="linear", batch_size=4096, metric="steps")
    rows = rows.rename_columns(["steps" if n == "value" else n for n in rows.column_names])
    assert (trials.capped_steps(rows, 400.0) == 400).all()


def test_the_curve_leaves_out_diverged_trials() -> None:
    assert curve(set_to(1.0, "value", status="infeasible"), SGD, 0) == curve(TABLES, SGD, 0)


def test_noisy_power_laws_are_refuted() -> None:
    """The planted null of B1 and B8 with noise between replicates: a verdict, and not an error for equal replicates."""
    for name in ("B1", "B8"):
        noise = np.random.default_rng(0)
        noisy = changed("trials", lambda v, noise=noise: v * float(np.exp(noise.normal(0, 0.05))))
        found = verdict(SLUG, name, noisy(nulls_of(SLUG)[name](TABLES)))
        assert found.verdict in ("not reproduced", "inconclusive"), found.text


def test_outcomes_exchanged_between_optimizers_refute_what_momentum_does() -> None:
    """As the planted null of B2, but the rates stay, so that no gate is what stops the claim."""
    rows = TABLES["trials"].to_pylist()
    other = {SGD: MOMENTUM, MOMENTUM: SGD}

    def key(row: dict, workload: str) -> tuple:  # type: ignore[type-arg]
        return (workload, row["seed"], row["kind"], row["batch_size"], row["trial_id"], row["metric"])

    values = {key(row, row["workload"]): row["value"] for row in rows}
    new = [values.get(key(row, other.get(row["workload"], row["workload"])), row["value"]) for row in rows]
    exchanged = {**TABLES, "trials": with_column(TABLES["trials"], "value", new)}
    for name in ("B2", "B12"):
        assert verdict(SLUG, name, exchanged).verdict == "not reproduced", name

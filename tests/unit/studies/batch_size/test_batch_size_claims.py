"""Every claim can come out reproduced, and does not where its effect was removed or its sweep cannot be believed."""

from __future__ import annotations

import numpy as np
import pytest
from batch_size_tables import FOLDER, everything, judged

from restudy.bench.planting import nulls_of
from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.batch_size import statistics, trials
from restudy.studies.batch_size.tidy import MOMENTUM, SGD
from restudy.studies.batch_size.trials import curve
from restudy.tables import where, with_column

NULLS = nulls_of("batch_size")
CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()
JUDGED = [claim.id for claim in CLAIMS if claim.kind != "qualitative"]


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts} == dict.fromkeys(JUDGED, "reproduced")


@pytest.mark.parametrize("name", sorted(NULLS))
def test_planted_null(name: str) -> None:
    verdict = judged(NULLS[name](TABLES))[name]
    assert verdict.verdict != "reproduced", verdict.text


def changed(where_: object, column: str, values: object) -> dict:  # type: ignore[type-arg]
    table = TABLES["trials"]
    kept = np.array(table[column].to_pylist(), dtype=object)
    return {**TABLES, "trials": with_column(table, column, np.where(where_, values, kept).tolist())}


def columns(*names: str) -> list[np.ndarray]:  # type: ignore[type-arg]
    return [np.array(TABLES["trials"][n].to_pylist()) for n in names]


def test_an_optimum_on_the_edge_of_the_box_stops_the_claims() -> None:
    """The box ends where the best trial lies and nothing above it diverged: a plateau that nobody should believe."""
    workload, size, rate = columns("workload", "batch_size", "effective_learning_rate")
    best = {b: min(r for r in rate[(workload == SGD) & (size == b)] if r > 0.3) for b in (4096,)}
    beyond = (workload == SGD) & (size == 4096) & (rate > best[4096])
    table = TABLES["trials"].filter(~beyond)
    boxes = TABLES["boxes"]
    high = np.where(np.array(boxes["metric"].to_pylist()) == "effective_learning_rate", best[4096] * 1.01, 0.5)
    stopped = judged({**TABLES, "trials": table, "boxes": with_column(boxes, "high", high)})
    assert stopped["B1"].text == "inconclusive (gate)" and stopped["B2"].text == "inconclusive (gate)"


def test_a_goal_that_comes_too_late_stops_the_claims() -> None:
    workload, size = columns("workload", "batch_size")
    stopped = judged(changed((workload == SGD) & (size == 4), "step_budget", 2100))
    assert stopped["B1"].text == "inconclusive (gate)"
    assert stopped["B8"].text == "reproduced", "other workloads are judged by their own gates"


def test_few_feasible_trials_stop_the_claims() -> None:
    workload, kind, size, number = columns("workload", "kind", "batch_size", "trial_id")
    lost = (workload == MOMENTUM) & (kind == "search") & (size == 4) & (number > 3)
    assert judged(changed(lost, "status", "infeasible"))["B5"].text == "inconclusive (gate)"


def test_unfinished_training_stops_the_claim_about_quality() -> None:
    table = TABLES["measurements"]
    late = 1e-5 * np.maximum(400 - table["step"].to_numpy(), 0) * (table["batch_size"].to_numpy() == 4096)
    errors = with_column(table, "validation_error", table["validation_error"].to_numpy() + 5 * late)
    assert judged({**TABLES, "measurements": errors})["B6"].text == "inconclusive (gate)"


def test_a_rule_that_fails_as_the_best_again_is_stopped_by_its_control() -> None:
    kind, metric = columns("kind", "metric")
    value = TABLES["trials"]["value"].to_numpy()
    slow = with_column(TABLES["trials"], "value", np.where((kind == "rerun") & (metric == "steps"), 3 * value, value))
    verdict = judged({**TABLES, "trials": slow})["B5"]
    assert verdict.verdict == "inconclusive", verdict.text


def test_expected_least_of_random_trials_is_that_of_all_subsets() -> None:
    from itertools import combinations

    steps = np.array([3.0, 10, 4, 50, 7, 7])
    for count in (1, 3, 6):
        every = np.mean([np.log(min(c)) for c in combinations(steps, count)])
        assert trials.expected_log_least(steps, count) == pytest.approx(every)


def test_trials_that_never_came_count_with_their_budget() -> None:
    rows = where(TABLES["trials"], workload=MOMENTUM, seed=0, kind="linear", batch_size=4096, metric="steps")
    rows = rows.rename_columns(["steps" if n == "value" else n for n in rows.column_names])
    assert (trials.capped_steps(rows, 400.0) == 400).all()


def test_the_curve_leaves_out_diverged_trials() -> None:
    table = TABLES["trials"]
    fast = with_column(
        table, "value", np.where(np.array(table["status"].to_pylist()) == "infeasible", 1.0, table["value"])
    )
    assert curve({**TABLES, "trials": fast}, SGD, 0) == curve(TABLES, SGD, 0)


def test_smoke_gives_no_scientific_verdict() -> None:
    exact = {c.id for c in CLAIMS if not c.statistical}
    for verdict in judged(TABLES, "smoke").verdicts:
        assert (verdict.verdict == "reproduced") == (verdict.claim in exact)


def test_noisy_power_laws_are_refuted() -> None:
    """The planted null of B1 and B8 with noise between replicates: a verdict, and not an error for equal replicates."""
    for name in ("B1", "B8"):
        table = NULLS[name](TABLES)["trials"]
        value = table["value"].to_numpy()
        noise = np.exp(np.random.default_rng(0).normal(0, 0.05, len(value)))
        verdict = judged({**TABLES, "trials": with_column(table, "value", value * noise)})[name]
        assert verdict.verdict in ("not reproduced", "inconclusive"), verdict.text
        assert "error" not in verdict.text


def test_outcomes_exchanged_between_optimizers_refute_what_momentum_does() -> None:
    """As the planted null of B2, but the rates stay, so that no gate is what stops the claim."""
    rows = TABLES["trials"].to_pylist()
    other = {SGD: MOMENTUM, MOMENTUM: SGD}

    def key(row: dict, workload: str) -> tuple:  # type: ignore[type-arg]
        return (workload, row["seed"], row["kind"], row["batch_size"], row["trial_id"], row["metric"])

    values = {key(row, row["workload"]): row["value"] for row in rows}
    new = [values.get(key(row, other.get(row["workload"], row["workload"])), row["value"]) for row in rows]
    found = judged({**TABLES, "trials": with_column(TABLES["trials"], "value", new)})
    for name in ("B2", "B12"):
        assert found[name].verdict == "not reproduced", found[name].text

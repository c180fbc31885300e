"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.examples import tables, verdict

from restudy.nulls import changed, next_seed
from restudy.studies.neural_ode import statistics
from restudy.studies.neural_ode.statistics import determination
from restudy.tables import where, with_column

SLUG = "neural_ode"
TABLES = tables(SLUG)


def test_a_tolerance_without_effect_is_not_reproduced() -> None:
    generator = np.random.default_rng(1)
    flat = changed("tolerances", lambda _: 1e-3 * float(np.exp(0.1 * generator.normal())), metric="state_error")
    counts = changed("tolerances", lambda _: 26.0 + float(generator.normal()), metric="evaluations")
    assert verdict(SLUG, "O3", counts(flat(TABLES))).text.startswith("not reproduced")


def test_an_exchanged_solver_that_changes_little_does_not_reproduce_v2() -> None:
    still = {"arm": "tied6", "solver": "euler-12", "metric": "accuracy"}
    assert verdict(SLUG, "V2", changed("exchanges", lambda _: 0.851, **still)(TABLES)).verdict != "reproduced"


@pytest.mark.parametrize(
    ("claim", "table", "value", "chosen"),
    [
        ("O4", "training", 0.6, {"arm": "resnet6", "metric": "test_error"}),
        ("O7", "densities", 0.5, {"arm": "cnf", "metric": "mass_error"}),
        ("O8", "forecasts", 1.2, {"arm": "rnn", "metric": "future"}),
        ("O9", "intensities", -190.0, {"metric": "true_log_likelihood"}),
    ],
)
def test_gates(claim: str, table: str, value: float, chosen: dict) -> None:
    assert verdict(SLUG, claim, changed(table, lambda _: value, **chosen)(TABLES)).text == "inconclusive (gate)"


def test_an_intensity_like_every_other_fails_by_its_control() -> None:
    table = TABLES["intensities"]
    own = where(table, metric="correlation")
    same = dict(zip(own["seed"].to_pylist(), own["value"].to_pylist(), strict=True))
    new = [same[r["seed"]] if r["metric"] == "correlation_other" else r["value"] for r in table.to_pylist()]
    found = verdict(SLUG, "O9", {**TABLES, "intensities": with_column(table, "value", new)})
    assert found.verdict != "reproduced"


def test_statistics_by_hand() -> None:
    def mean(name: str) -> float:
        return float(getattr(statistics, name)(TABLES)["value"].to_numpy().mean())

    assert determination(np.array([1.0, 2, 3]), np.array([5.0, 7, 9])) == pytest.approx(1)
    assert mean("accuracy_ode_minus_resnet") == pytest.approx(0.005, abs=0.003)
    assert mean("rnn_over_latent_30") == pytest.approx(2.5, rel=0.02)
    assert mean("ratio_shrinks") == pytest.approx((0.40 / 0.16) / (0.18 / 0.14), rel=0.02)
    assert mean("kl_median_gap") == pytest.approx(0.3, abs=0.03)
    # Equal curves at eight times the time a step: eight times the time to any accuracy.
    assert mean("time_to_accuracy_ratio") == pytest.approx(8, rel=0.03)


def test_a_net_that_never_gets_there_counts_its_whole_time() -> None:
    low = changed("curves", lambda value: 0.2, arm="odenet", metric="accuracy")(TABLES)
    slow = statistics.time_to_accuracy_ratio(low)["value"].to_numpy()
    assert (slow > statistics.time_to_accuracy_ratio(TABLES)["value"].to_numpy()).all()


def test_a_missing_arm_is_a_failed_replicate_and_a_worse_net_is_no_reproduction() -> None:
    without = where(TABLES["forecasts"], arm=("latent_ode", "rnn_gaps", "gru_gaps"))
    assert verdict(SLUG, "O8", {**TABLES, "forecasts": without}).verdict in ("inconclusive", "error")
    same = next_seed("arm", "odenet", "resnet6", "training", metric="test_error")(TABLES)
    worse = changed("training", lambda error: error + 0.02, arm="odenet", metric="test_error")(same)
    assert verdict(SLUG, "O4", worse).verdict != "reproduced"

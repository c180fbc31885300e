"""Every claim can come out reproduced, and does not where its effect was removed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from batch_norm_tables import FOLDER, everything, judged

from restudy.bench.planting import nulls_of
from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.nulls import changed
from restudy.studies.batch_norm import statistics
from restudy.studies.batch_norm.nulls import without_effect
from restudy.studies.batch_norm.statistics import BN, NOISY, STD

NULLS = nulls_of("batch_norm")
CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts} == dict.fromkeys([c.id for c in CLAIMS], "reproduced")


@pytest.mark.parametrize("name", [claim.id for claim in CLAIMS])
def test_planted_null(name: str) -> None:
    verdict = judged(NULLS[name](TABLES))[name]
    assert verdict.verdict not in ("reproduced", "error"), verdict.text


def test_arms_exchanged_contradict() -> None:
    swapped = without_effect("x-0.1", STD)(TABLES)
    for given, taken in ((STD, BN), (BN, "x-0.1")):
        swapped = without_effect(given, taken)(swapped)
    verdicts = judged(swapped)
    assert {name: verdicts[name].verdict for name in ("N5", "R1")} == dict.fromkeys(("N5", "R1"), "not reproduced")


def test_gates_stop_what_they_should() -> None:
    calm = judged(changed("drift", lambda v: v / 100, run=NOISY)(TABLES))
    assert calm["N2"].text == "inconclusive (gate)" and calm["N9"].verdict == "reproduced"
    diverged = judged(changed("training", lambda v: 1.0, run=STD, metric="diverged")(TABLES))
    assert {diverged[n].text for n in ("N1", "N2", "N4", "N5")} == {"inconclusive (gate)"}
    still = judged(changed("probes", lambda v: 0.999, run=STD, metric="shift_cosine")(TABLES))
    assert still["N4"].text == "inconclusive (gate)"


def test_primary_claims() -> None:
    assert [claim.id for claim in CLAIMS if claim.primary] == ["N1", "N2", "N4", "N5"]


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(TABLES, "smoke").verdicts}
    assert {name for name, word in verdicts.items() if word != "not testable"} == {"N7", "N10", "E1", "E2"}


def test_steps_ratio_by_hand() -> None:
    values = statistics.bn_steps_ratio(TABLES)["value"].to_numpy()
    assert len(values) == 6 and (values > 4).all()


def test_noise_share_by_hand() -> None:
    (value, *_) = statistics.noisy_keeps_three_quarters(TABLES)["value"].to_pylist()
    assert value == pytest.approx(0.25 * 0.18 - 0.01, abs=0.015)


def test_a_missing_run_is_a_failed_replicate() -> None:
    without = {
        n: t.filter(np.array(t["run"].to_pylist()) != BN) if "run" in t.column_names else t for n, t in TABLES.items()
    }
    for name in ("loss_range_gap", "shift_cosine_gap", "bn_steps_ratio", "stability_ratio", "curvature_gap"):
        values = getattr(statistics, name)(without)["value"].to_pylist()
        assert len(values) == 6 and all(math.isnan(v) for v in values), name

"""Every claim can come out reproduced, and does not where its effect was removed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rao_blackwell_tables import FOLDER, everything, judged

from restudy.bench.planting import nulls_of
from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.rao_blackwell import statistics
from restudy.tables import relabel, where

NULLS = nulls_of("rao_blackwell")
CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()
JUDGED = [claim.id for claim in CLAIMS if claim.kind != "qualitative"]


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts if v.claim in JUDGED} == dict.fromkeys(JUDGED, "reproduced")


@pytest.mark.parametrize("name", JUDGED)
def test_planted_null(name: str) -> None:
    verdict = judged(NULLS[name](TABLES))[name]
    assert verdict.verdict not in ("reproduced", "error"), verdict.text


def test_two_draws_that_help_as_much_stop_the_claim_by_its_control() -> None:
    other = relabel(TABLES["toy"], "arm", {"reinforce2": "rb1", "rb1": "reinforce2"})
    verdict = judged({**TABLES, "toy": other})["R4"]
    assert verdict.verdict != "reproduced"


def test_a_small_gap_of_reinforce_leaves_nothing_to_halve() -> None:
    table = TABLES["semi_validation"]
    arms, metrics = (np.array(table[n].to_pylist()) for n in ("arm", "metric"))
    value = table["value"].to_numpy() - 3.5 * ((arms == "reinforce2") & (metrics == "nelbo"))
    index = table.schema.get_field_index("value")
    import pyarrow as pa

    changed = table.set_column(index, table.schema.field(index), pa.array(value))
    assert judged({**TABLES, "semi_validation": changed})["R6"].text == "inconclusive (gate)"


def test_no_arm_that_finds_the_digit() -> None:
    keep = where(TABLES["moving_validation"], arm=("known_place", "reinforce_plus", "rb5_plus", "gumbel"))
    lost = relabel(keep, "arm", {"rb5_plus": "x"})
    gone = relabel(lost, "arm", {"gumbel": "rb5_plus", "reinforce_plus": "gumbel", "x": "known_place"})
    gone = where(gone, arm=("rb5_plus", "gumbel"))
    verdict = judged({**TABLES, "moving_validation": gone})["R11"]
    assert verdict.verdict == "inconclusive"


def test_primary_claims() -> None:
    assert [claim.id for claim in CLAIMS if claim.primary] == ["R4", "R6", "R10", "R11"]


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(TABLES, "smoke").verdicts}
    exact = {"R1", "R2", "R3", "R7", "R8", "R9", "X1"}
    assert {name for name, word in verdicts.items() if word != "not testable"} == exact


def test_statistics_by_hand() -> None:
    gaps = statistics.half_gap_minus_rb(TABLES)["value"].to_numpy()
    assert gaps.mean() == pytest.approx(0.5 * 5.0 - 0.8, abs=0.2)
    half = statistics.half_rb_minus_gumbel_located(TABLES)["value"].to_numpy()
    assert half.mean() == pytest.approx(0.5 * 0.83 - 0.13, abs=0.03)
    lost = statistics.lost_moving_minus_semi(TABLES)["value"].to_numpy()
    assert lost.mean() == pytest.approx(35 / 170 - 0.4 / 50, abs=0.01)
    # RB takes seven evaluations a step, 1,400 in all, REINFORCE+ two, 400 in all.
    equal = statistics.nelbo_equal_evaluations(TABLES)["value"].to_numpy()
    assert equal.mean() == pytest.approx(90.0 - np.interp(400, [0, 70, 1400], [240, 79.95, 75.0]), abs=1.0)


def test_a_missing_seed_is_a_failed_replicate() -> None:
    table = TABLES["semi_validation"]
    kept = where(table, seed=(1, 2, 3, 4, 5))
    verdict = judged({**TABLES, "semi_validation": kept})["R6"]
    assert verdict.verdict == "inconclusive"
    without = where(table, arm=("full", "reinforce2"))
    assert all(math.isnan(v) for v in statistics.half_gap_minus_rb({"semi_validation": without})["value"].to_pylist())

"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.examples import tables, verdict

from restudy.nulls import changed
from restudy.studies.rao_blackwell import statistics
from restudy.tables import relabel, where

SLUG = "rao_blackwell"
TABLES = tables(SLUG)


def test_two_draws_that_help_as_much_stop_the_claim_by_its_control() -> None:
    other = relabel(TABLES["toy"], "arm", {"reinforce2": "rb1", "rb1": "reinforce2"})
    assert verdict(SLUG, "R4", {**TABLES, "toy": other}).verdict != "reproduced"


def test_a_small_gap_of_reinforce_leaves_nothing_to_halve() -> None:
    closer = changed("semi_validation", lambda v: v - 3.5, arm="reinforce2", metric="nelbo")
    assert verdict(SLUG, "R6", closer(TABLES)).text == "inconclusive (gate)"


def test_no_arm_that_finds_the_digit() -> None:
    lost = relabel(
        TABLES["moving_validation"], "arm", {"rb5_plus": "x", "reinforce_plus": "gumbel", "gumbel": "rb5_plus"}
    )
    gone = {**TABLES, "moving_validation": where(lost, arm=("rb5_plus", "gumbel"))}
    assert verdict(SLUG, "R11", gone).verdict == "inconclusive"


def test_statistics_by_hand() -> None:
    def values(name: str) -> np.ndarray:
        return getattr(statistics, name)(TABLES)["value"].to_numpy()

    assert values("half_gap_minus_rb").mean() == pytest.approx(0.5 * 5.0 - 0.8, abs=0.2)
    assert values("half_rb_minus_gumbel_located").mean() == pytest.approx(0.5 * 0.83 - 0.13, abs=0.03)
    assert values("lost_moving_minus_semi").mean() == pytest.approx(35 / 170 - 0.4 / 50, abs=0.01)
    # RB takes seven evaluations a step, 1,400 in all, REINFORCE+ two, 400 in all.
    equal = 90.0 - np.interp(400, [0, 70, 1400], [240, 79.95, 75.0])
    assert values("nelbo_equal_evaluations").mean() == pytest.approx(equal, abs=1.0)


def test_a_missing_arm_is_a_failed_replicate() -> None:
    without = where(TABLES["semi_validation"], arm=("full", "reinforce2"))
    assert all(math.isnan(v) for v in statistics.half_gap_minus_rb({"semi_validation": without})["value"].to_pylist())

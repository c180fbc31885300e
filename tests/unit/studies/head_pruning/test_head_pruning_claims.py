"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.examples import judged, tables, verdict
from tests.examples.head_pruning import HEADS, KEPT, LAYERS, POSITIONAL, SYNTACTIC

from restudy.nulls import changed, copied
from restudy.studies.head_pruning import statistics

SLUG = "head_pruning"
TABLES = tables(SLUG)


def test_an_idle_encoder_stops_the_claims_by_their_gate() -> None:
    idle = changed("quality", lambda v: 0.121, metric="without_encoder_heads")(TABLES)
    said = judged(SLUG, idle, "workstation")
    for name in ("H1", "H2", "H3", "H4", "H5", "H6", "H11"):
        assert said[name].text == "inconclusive (gate)", name


def test_positional_heads_of_untrained_models_stop_the_claim_by_its_control() -> None:
    alike = copied("arm", "untrained", "relative", "positions")(TABLES)
    assert verdict(SLUG, "H1", alike).verdict == "inconclusive"


def test_without_any_function_survival_cannot_be_asked() -> None:
    none = changed("positions", lambda v: v * 0.5, "hits")(changed("relations", lambda v: v * 0.2, "hits")(TABLES))
    assert all(math.isnan(v) for v in statistics.survival(none)["value"].to_pylist())
    assert verdict(SLUG, "H5", none).verdict == "inconclusive"


def test_the_best_head_is_chosen_on_the_other_half() -> None:
    one, two = np.array([[0.9, 0.1]]), np.array([[0.2, 0.3]])
    assert statistics.held_out((one, two)) == pytest.approx((0.1 + 0.2) / 2)


def test_third_margin_by_hand() -> None:
    third = statistics.third_syntactic(TABLES)["value"].to_numpy()
    assert third.mean() == pytest.approx(0.8 - 0.4, abs=0.02)
    assert statistics.permuted_third(TABLES)["value"].to_numpy().max() < 0
    found = statistics.functions(TABLES, "relative", 0)
    assert {tuple(p) for p in np.argwhere(found["positional"]).tolist()} == set(POSITIONAL)
    assert {tuple(p) for p in np.argwhere(found["syntactic"]).tolist()} == set(SYNTACTIC)


def test_gini_ranks_and_areas_by_hand() -> None:
    assert statistics.gini(np.ones(8)) == pytest.approx(0.0)
    assert statistics.gini(np.array([0.0, 0, 0, 0, 0, 0, 0, 1])) == pytest.approx(7 / 8)
    assert statistics.gini(np.array([-1.0, 1.0])) == pytest.approx(0.5), "negative importance counts as none"
    assert math.isnan(statistics.gini(np.zeros(3)))
    assert statistics.ranks(np.array([3.0, 1.0, 1.0])).tolist() == [2, 0.5, 0.5]
    scores, chosen = np.array([1.0, 2.0, 3.0, 3.0]), np.array([False, True, False, True])
    assert statistics.area_under_curve(scores, chosen) == pytest.approx((1 + 0 + 1 + 0.5) / 4)


def test_kept_shares_and_penalties() -> None:
    assert statistics.penalties(TABLES) == [0.005, 0.01, 0.02] and statistics.main_penalty(TABLES) == 0.01
    shares = statistics.pruned_share(TABLES)["value"].to_pylist()
    assert shares == pytest.approx([1 - len(KEPT) / (LAYERS * HEADS)] * len(shares), abs=0.03)

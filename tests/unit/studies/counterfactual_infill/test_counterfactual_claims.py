"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.examples import tables, verdict
from tests.examples.counterfactual_infill import SEEDS

from restudy.nulls import changed
from restudy.studies.counterfactual_infill import statistics
from restudy.tables import levels, where

SLUG = "counterfactual_infill"
TABLES = tables(SLUG)


@pytest.mark.parametrize(
    ("claim", "table", "by", "rows"),
    [
        ("F1", "fills", 0.2, {"metric": "hidden_excess", "infiller": "judge"}),
        ("F2", "training", 0.1, {"net": "vae"}),
        ("F2", "training", -0.06, {"net": "vae_elsewhere"}),
        ("F5", "training", -0.3, {"net": "classifier"}),
        ("F13", "fills", 0.3, {"metric": "seam", "infiller": "gan"}),
    ],
    ids=["the judge draws the class", "a poor VAE", "an unconditional VAE", "a poor classifier", "a GAN with seams"],
)
def test_gates_stop_a_claim(claim: str, table: str, by: float, rows: dict) -> None:
    assert verdict(SLUG, claim, changed(table, lambda v: v + by, **rows)(TABLES)).text == "inconclusive (gate)"


def test_a_second_run_that_differs_as_much_stops_f13_by_its_control() -> None:
    again = changed("maps", lambda v: 1.4 * v, metric="area", restart=1)(TABLES)
    assert verdict(SLUG, "F13", again).verdict != "reproduced"


def test_a_leak_of_one_bit_refutes_the_exact_claim() -> None:
    leaking = changed("fills", lambda v: v + 1e-7, metric="leak", infiller="gan")(TABLES)
    assert verdict(SLUG, "X1", leaking).verdict == "not reproduced"
    assert verdict(SLUG, "F9", leaking).verdict != "reproduced"


def test_area_at_a_score_by_hand() -> None:
    """Areas .1/(1 + place) and log-odds 5 - 8/(1 + place): -3 at .1 and 1 at .05, so 0 is crossed at .0625."""
    found = statistics.area("vae").values(TABLES)
    sizes = statistics.means(TABLES, "area", "sdr", "vae")
    assert all(found[s] == pytest.approx(0.625 * sizes[s][0]) for s in range(SEEDS))
    bare = statistics.area("vae", bare=True).values(TABLES)
    assert all(found[s] < bare[s] < sizes[s][0] for s in range(SEEDS))


def test_first_crossing() -> None:
    assert statistics.first_crossing([0, 1, 2], np.array([0.0, 2.0, 1.0]), 1.0) == 0.5
    assert statistics.first_crossing([0, 1], np.array([3.0, 4.0]), 1.0) == 0.0
    assert np.isnan(statistics.first_crossing([0, 1], np.array([0.0, 0.5]), 1.0))
    assert np.isnan(statistics.first_crossing([0, 1], np.array([0.0, np.nan]), 1.0))


def test_penalties_are_chosen_on_the_tuning_images_alone() -> None:
    """Test values of the second penalty are spoiled; the choice must not see it."""
    table = where(TABLES["maps"], method="sdr", infiller="vae", restart=0, metric="flipping_area_judge")
    spoiled = changed("maps", lambda v: v + 1, penalty=0.6, split="test")({"maps": table})
    found = statistics.tuned(spoiled, "flipping_area_judge", "sdr", "vae")
    assert all((values > 1).all() for values in found.values())


def test_the_middle_of_three_is_above_one_when_two_are() -> None:
    def smaller(*infillers: str) -> str:
        rows = {"metric": "area", "method": "sdr", "infiller": infillers}
        return verdict(SLUG, "F2", changed("maps", lambda v: 0.3 * v, **rows)(TABLES)).verdict

    assert smaller("noise") == "reproduced" and smaller("noise", "blur") == "not reproduced"


def test_a_missing_arm_is_a_failed_replicate() -> None:
    rest = tuple(name for name in levels(TABLES["maps"], "method") if name != "bbmp")
    assert verdict(SLUG, "F1", {**TABLES, "maps": where(TABLES["maps"], method=rest)}).verdict == "inconclusive"

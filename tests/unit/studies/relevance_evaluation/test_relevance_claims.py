"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import numpy as np
import pytest
from tests.examples import tables, verdict

from restudy.studies.relevance_evaluation.statistics import krippendorff_alpha, ranks
from restudy.tables import relabel

SLUG = "relevance_evaluation"


def test_the_claim_and_its_boundary_exclude_each_other() -> None:
    for name in ("S1", "S5"):
        assert verdict(SLUG, name, tables(SLUG, "S1'")).verdict == "not reproduced"
    assert verdict(SLUG, "S1'", tables(SLUG)).verdict == "not reproduced"


def test_a_map_of_the_image_alone_that_wins_stops_the_claim() -> None:
    given = tables(SLUG)
    swapped = relabel(given["aopc"], "method", {"edges": "lrp_epsilon", "lrp_epsilon": "edges"})
    found = verdict(SLUG, "S1", {**given, "aopc": swapped})
    assert found.verdict == "inconclusive", found.text


def test_ranks() -> None:
    assert ranks(np.array([[3.0, 1.0, 3.0, 0.0]])).tolist() == [[3.5, 2.0, 3.5, 1.0]]


def test_krippendorff_alpha() -> None:
    assert krippendorff_alpha(np.tile([1.0, 2.0, 3.0], (5, 1))) == pytest.approx(1.0)
    noise = np.random.default_rng(0).permuted(np.tile([1.0, 2.0, 3.0, 4.0], (400, 1)), axis=1)
    assert abs(krippendorff_alpha(noise)) < 0.02
    # Two raters, three items: observed disagreement (0 + 1 + 1) over two values each, expected over all pairs.
    ratings = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    values = ratings.ravel()
    expected = np.mean([(a - b) ** 2 for i, a in enumerate(values) for j, b in enumerate(values) if i != j])
    assert krippendorff_alpha(ratings) == pytest.approx(1 - np.mean([0, 1, 1]) / expected)

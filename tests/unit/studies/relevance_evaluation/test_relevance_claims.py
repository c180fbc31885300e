"""Every claim can come out reproduced, and does not where its effect was removed."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.studies.relevance_evaluation.relevance_tables import FOLDER, everything, judged

from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.relevance_evaluation import figures, map_figures, statistics
from restudy.studies.relevance_evaluation.areas import krippendorff_alpha
from restudy.studies.relevance_evaluation.nulls import planted_nulls
from restudy.studies.relevance_evaluation.tidy import ranks, spearman
from restudy.tables import relabel

CLAIMS = load_claims(FOLDER / "claims.yaml")
PAPER, BOUNDARY = everything(), everything(reversed_on_black=True)
EXCLUDED = {"S1'", "X1"}
"""Hold where the paper's S1 does not: on tables of their own."""


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = {v.claim: v.text for v in judged(PAPER).verdicts}
    wanted = [claim.id for claim in CLAIMS if claim.id not in EXCLUDED]
    assert {name: verdicts[name] for name in wanted} == dict.fromkeys(wanted, "reproduced")
    other = judged(BOUNDARY)
    assert {name: other[name].text for name in EXCLUDED} == dict.fromkeys(EXCLUDED, "reproduced")


def test_the_claim_and_its_boundary_exclude_each_other() -> None:
    assert judged(BOUNDARY)["S1"].verdict == "not reproduced"
    assert judged(PAPER)["S1'"].verdict == "not reproduced"
    assert judged(BOUNDARY)["S5"].verdict == "not reproduced"


@pytest.mark.parametrize("name", [claim.id for claim in CLAIMS])
def test_planted_null(name: str) -> None:
    tables = BOUNDARY if name in EXCLUDED else PAPER
    verdict = judged(planted_nulls[name](tables), only=name)[name]
    assert verdict.verdict != "reproduced", verdict.text


def test_a_map_of_the_image_alone_that_wins_stops_the_claim() -> None:
    swapped = relabel(PAPER["aopc"], "method", {"edges": "lrp_epsilon", "lrp_epsilon": "edges"})
    verdict = judged({**PAPER, "aopc": swapped}, only="S1")["S1"]
    assert verdict.verdict == "inconclusive", verdict.text


def test_primary_claims() -> None:
    assert [claim.id for claim in CLAIMS if claim.primary] == ["S1", "S2", "S1'", "S15"]


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(PAPER, "smoke").verdicts}
    assert {name for name, word in verdicts.items() if word != "not testable"} == {"S7", "S8", "X3", "I1", "X2"}


def test_ranks_and_spearman() -> None:
    assert ranks(np.array([[3.0, 1.0, 3.0, 0.0]])).tolist() == [[3.5, 2.0, 3.5, 1.0]]
    assert spearman(np.array([1, 2, 3, 4]), np.array([1, 4, 9, 16])) == pytest.approx(1.0)
    assert np.isnan(spearman(np.ones(4), np.arange(4)))


def test_krippendorff_alpha() -> None:
    assert krippendorff_alpha(np.tile([1.0, 2.0, 3.0], (5, 1))) == pytest.approx(1.0)
    noise = np.random.default_rng(0).permuted(np.tile([1.0, 2.0, 3.0, 4.0], (400, 1)), axis=1)
    assert abs(krippendorff_alpha(noise)) < 0.02
    # Two raters, three items: observed disagreement (0 + 1 + 1) over two values each, expected over all pairs.
    ratings = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])
    values = ratings.ravel()
    expected = np.mean([(a - b) ** 2 for i, a in enumerate(values) for j, b in enumerate(values) if i != j])
    assert krippendorff_alpha(ratings) == pytest.approx(1 - np.mean([0, 1, 1]) / expected)


def test_figures_draw() -> None:
    for draw in (
        figures.perturbation_curves, figures.area_bars, figures.photo_bars, figures.complexity, figures.reactions,
        figures.fill_matrix, figures.epsilons, map_figures.heatmaps, map_figures.strips, map_figures.photo_maps,
    ):  # fmt: skip
        drawn = draw(PAPER)
        assert drawn.axes and all(axis.has_data() or not axis.get_title() for axis in drawn.axes)

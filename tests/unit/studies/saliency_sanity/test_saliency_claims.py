"""Every claim can come out reproduced, and does not where its effect was removed."""

from __future__ import annotations

import pytest
from saliency_tables import FOLDER, everything, judged, training

from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.saliency_sanity import statistics
from restudy.studies.saliency_sanity.nulls import planted_nulls

CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()
HERE = [claim.id for claim in CLAIMS if not claim.exploratory]


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts if v.claim in HERE} == dict.fromkeys(HERE, "reproduced")


@pytest.mark.parametrize("name", [claim.id for claim in CLAIMS])
def test_planted_null(name: str) -> None:
    verdict = judged(planted_nulls[name](TABLES))[name]
    assert verdict.verdict != "reproduced", verdict.text


def test_guided_backprop_alike_between_random_nets() -> None:
    from restudy.tables import relabel

    swapped = relabel(
        TABLES["similarity"],
        "method",
        {"guided_backprop": "gradient_x_input", "gradient_x_input": "guided_backprop"},
        state="two_random_nets",
    )
    verdicts = judged({**TABLES, "similarity": swapped})
    assert verdicts["A2"].text == "inconclusive (control)"
    assert verdicts["G2"].verdict == "not reproduced"


def test_gate_on_permuted_labels() -> None:
    verdicts = judged({**TABLES, "training": training(permuted=0.24)})
    assert [verdicts[name].text for name in ("A6", "A10")] == ["inconclusive (gate)"] * 2
    assert verdicts["A2"].verdict == "reproduced"


def test_primary_claims() -> None:
    assert [claim.id for claim in CLAIMS if claim.primary] == ["A1", "A2", "A6", "A10"]


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(TABLES, "smoke").verdicts}
    assert {name for name, word in verdicts.items() if word != "not testable"} == {"A8", "A12"}

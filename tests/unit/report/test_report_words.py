"""Numbers, reasons and small plots."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from restudy.bench import showcase
from restudy.claims.amended import SAME, UNSEEN
from restudy.claims.words import CONTROL, GATE, INCOMPLETE, VERDICTS
from restudy.report import words
from restudy.report.model import Claim
from restudy.report.strips import WIDTH, strip

ENTRY = {"paper_verdict": "partially", "claims": [], "seeds": 5, "machine": {"cpu": "c", "cores": 2}}
CLAIM = Claim(
    id="A1", says="s", kind="direction", verdict="reproduced", estimate=0.31, ci_low=0.22, ci_high=0.4, sesoi=0.15, n=5
)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "\u2013"), (math.nan, "\u2013"), (0.0, "0"), (0.3123, "0.312"), (-0.3123, "\u22120.312"),
        (12.34, "12.3"), (1234.5, "1234"), (1.5e-7, "1.50e\u22127"), (2.5e6, "2.50e6"), (math.inf, "\u221e"),
        (0.9999, "1.000"),
    ],
)  # fmt: skip
def test_numbers(value: float | None, said: str) -> None:
    assert words.number(value) == said


def test_every_verdict_of_the_engine_has_a_look_of_its_own() -> None:
    looks = [words.VERDICTS[word][0] for word in VERDICTS]
    assert len(set(looks)) == len(VERDICTS)
    assert INCOMPLETE in words.VERDICTS


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "as large as was asked for"),
        ({"verdict": "not reproduced", "reason": "contradicted"}, "the opposite of the claim"),
        ({"verdict": "not reproduced", "reason": "negligible"}, "too small to matter"),
        ({"verdict": "not reproduced", "reason": ""}, "ruled out"),
        ({"verdict": "not reproduced", "reason": "parts: a, b"}, "parts: a, b"),
        ({"verdict": "partially", "reason": "family-wise error, magnitude"}, "does not survive the correction"),
        ({"verdict": "partially", "reason": "step 2 to 3 is reversed"}, "step 2 to 3 is reversed"),
        ({"verdict": "inconclusive", "reason": "width", "seeds_needed": 14, "unit": "seed"}, "about 14 seeds would"),
        ({"verdict": "inconclusive", "reason": "gate", "gate": "accuracy 0.6 >= 0.8: failed"}, "accuracy 0.6 >= 0.8"),
        (
            {"verdict": "inconclusive", "reason": "control", "control_verdict": "reproduced"},
            "on the control (reproduced)",
        ),
        ({"verdict": "inconclusive", "reason": "2 of 5 failed"}, "2 of 5 failed"),
        ({"verdict": "inconclusive", "reason": "n < 5", "n": 3, "unit": "seed"}, "3 seeds decide nothing"),
        (
            {"verdict": "not testable", "reason": "preset laptop: judged at workstation, paper"},
            "Judged at workstation, paper",
        ),
        ({"verdict": "not testable", "reason": "qualitative"}, "no number decides"),
        ({"verdict": "error", "reason": "all 5 replicates are identical: is the seed used?"}, "is the seed used?"),
        ({"verdict": "not run yet", "reason": ""}, "No result is stored"),
        ({"kind": "no_difference", "margin": 0.1, "sesoi": None}, "inside the margin"),
        ({"kind": "exact", "bound": 1e-6}, "tolerance of the arithmetic"),
        ({"kind": "parts"}, "Every part"),
    ],
)
def test_reasons_are_sentences(change: dict[str, object], said: str) -> None:
    sentence = words.because(replace(CLAIM, **change))  # type: ignore[arg-type]
    assert said in sentence
    assert sentence.endswith((".", "?"))


def test_what_was_measured() -> None:
    assert words.measured(CLAIM) == "Estimate 0.310 (90% interval 0.220 to 0.400); smallest effect of interest 0.15."
    assert "94% interval" in words.measured(replace(CLAIM, alpha=0.03))
    bound = replace(CLAIM, kind="threshold", bound=0.25, side="below", sesoi=None)
    assert words.measured(bound).endswith("claimed: below 0.25.")


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "\u2013"), (0.04, "0.0"), (7.747, "7.7"), (21.46, "21.5"), (99.94, "99.9"), (131.2, "131")],
)
def test_minutes_read_the_same_everywhere(value: float | None, said: str) -> None:
    assert words.minutes(value) == said
    if value is not None:
        content = {
            "preset": "laptop",
            "studies": {"a": ENTRY | {"core_minutes": {"train": value - 0.01, "check": 0.01}}},
        }
        assert f"| 5 | {said} |" in showcase.table(content)


def test_flags_and_reasons_are_explained() -> None:
    assert "leaving out one" in words.flag("fragile") and words.flag("amended after results: S .1 -> .2")
    assert words.flag(SAME) and words.flag(UNSEEN) and words.flag(SAME) != words.flag(UNSEEN)
    assert words.flag("not frozen") == "" and words.flag("expected fragile") != words.flag("fragile")
    assert {"width", GATE, CONTROL} <= words.REASONS.keys()


def test_headline_counts_the_primary_claims() -> None:
    assert (
        words.headline([("reproduced", 2), ("inconclusive", 1)]) == "2 of 3 primary claims reproduced, 1 inconclusive"
    )
    assert words.headline([("not reproduced", 1)]) == "0 of 1 primary claim reproduced, 1 not reproduced"
    assert words.headline([]) == "no primary claim judged"


@pytest.mark.parametrize(
    "change",
    [
        {}, {"ci_low": -math.inf}, {"ci_high": math.inf}, {"ci_low": None, "ci_high": None},
        {"sesoi": None},
        {"kind": "threshold", "bound": 0.2, "side": "below"}, {"kind": "non_inferiority", "margin": 0.1},
        {"kind": "no_difference", "margin": 0.1}, {"estimate": 1e9, "ci_low": -1e9, "ci_high": 2e9},
    ],
)  # fmt: skip
def test_plots_stay_inside_and_in_order(change: dict[str, object]) -> None:
    drawn = strip(replace(CLAIM, **change))  # type: ignore[arg-type]
    assert drawn is not None
    assert 0 <= drawn.low <= drawn.point <= drawn.high <= WIDTH
    assert all(0 <= x <= WIDTH for x, _, _ in drawn.marks)
    assert "reproduced" in drawn.says


@pytest.mark.parametrize("change", [{"estimate": None}, {"estimate": math.nan}, {"kind": "qualitative"}])
def test_without_a_number_there_is_no_plot(change: dict[str, object]) -> None:
    assert strip(replace(CLAIM, **change)) is None  # type: ignore[arg-type]

"""What is said of one claim: its formula, what it asks for, and what came out."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from restudy.bench.judging import statistics_of
from restudy.bench.verdicts import explain
from restudy.claims import judge_study, parse_claim
from restudy.claims.explain import as_explanation
from restudy.claims.statistics import formula, lookup
from restudy.errors import ClaimError

from .claims_material import GOOD, table


class Difference:
    """A statistic that is an expression; these words are the class's."""

    formula = True

    def __str__(self) -> str:
        return "mean(toy, arm=a) - mean(toy, arm=b)"

    def __call__(self, tables: Any) -> pa.Table:
        return table(GOOD)


def accuracy(tables: Any) -> pa.Table:
    """Test accuracy of the plain net.

    Not shown.
    """
    return table([0.9] * 5)


def unsaid(tables: Any) -> pa.Table:
    return table([0.0, 0.1, -0.1, 0.05, -0.05])


STATISTICS = {"gap": Difference(), "accuracy": accuracy, "unsaid": unsaid}
ONE = parse_claim(
    {
        "id": "A", "says": "A is better than B.", "where": "figure 2", "why": "half of the pilot's effect",
        "kind": "direction", "statistic": "gap", "control": "unsaid", "sesoi": 0.5, "primary": True,
        "gate": [{"statistic": "accuracy", "op": ">=", "value": 0.8}], "scale": "identity",
        "paper": {"value": 2.0, "sd": 0.5, "source": "recalled", "note": "by eye"},
    }
)  # fmt: skip
TWO = parse_claim(
    {
        "id": "B", "kind": "threshold", "why": "the paper's own reading",
        "parts": [
            {"name": "upper", "statistic": "gap", "bound": 2, "side": "below"},
            {"name": "exact", "kind": "exact", "statistic": "unsaid", "tolerance": 1e-6},
        ],
    }
)  # fmt: skip


def test_formula_is_the_expression_or_the_first_line() -> None:
    assert formula(Difference()) == "mean(toy, arm=a) - mean(toy, arm=b)"
    assert formula(accuracy) == "Test accuracy of the plain net."
    assert formula(unsaid) == "" and formula(None) == ""


def test_a_class_s_own_words_are_no_formula() -> None:
    assert formula(partial(accuracy)) == ""
    said = partial(accuracy)
    said.__doc__ = "Accuracy, bound."
    assert formula(said) == "Accuracy, bound."


def said(text: str) -> dict[str, str]:
    """Label -> text of the lines, wrapped ones joined."""
    found: dict[str, str] = {}
    label = ""
    for line in text.splitlines():
        if line.startswith("  "):
            label = line[2:14].strip() or label
            found[label] = " ".join([found.get(label, ""), line[14:]]).strip()
    return found


def test_everything_about_a_claim_is_said() -> None:
    judged = judge_study([ONE, TWO], {}, STATISTICS, preset="laptop")
    text = as_explanation(ONE, STATISTICS, judged)
    assert text.splitlines()[0] == "A*  A is better than B."
    assert said(text) == {
        "where": "figure 2",
        "kind": "direction",
        "statistic": "gap: mean(toy, arm=a) - mean(toy, arm=b)",
        "control": "unsaid",
        "asked for": "smallest effect of interest (sesoi) 0.5",
        "paper": "value 2, s.d. 0.5, recalled, by eye",
        "gate": "mean of accuracy >= 0.8: Test accuracy of the plain net.",
        "judged at": "laptop, workstation, paper",
        "why": "half of the pilot's effect",
        "verdict": "reproduced",
        "numbers": "estimate 1 [0.849, 1.15], p 7.26e-05, after Holm 7.26e-05, 5 replicates",
        "gates": "accuracy 0.9 >= 0.8: passed",
        "on control": "not reproduced",
    }
    assert max(map(len, text.splitlines())) <= 110


def test_parts_are_said_likewise() -> None:
    judged = judge_study([ONE, TWO], {}, STATISTICS, preset="laptop")
    whole, upper, exact = as_explanation(TWO, STATISTICS, judged).split("\n\n")
    assert said(whole)["kind"] == "parts" and "verdict" in said(whole) and "statistic" not in said(whole)
    assert upper.startswith("B/upper\n") and said(upper)["asked for"] == "below 2"
    assert said(upper)["statistic"] == "gap: mean(toy, arm=a) - mean(toy, arm=b)"
    assert said(upper)["verdict"] == "reproduced" and said(upper)["numbers"].startswith("estimate 1 [")
    assert said(exact)["asked for"] == "tolerance 1e-06" and said(exact)["verdict"] == "not reproduced (contradicted)"


def test_without_results_a_claim_is_not_run_yet() -> None:
    text = as_explanation(TWO, STATISTICS, None)
    assert text.count("not run yet") == 3 and "numbers" not in text


@pytest.mark.parametrize(
    ("slugs", "claim", "words"),
    [
        (["rao_blackwell"], "R99", ["rao_blackwell: no claim 'R99'", "known are R1, R2"]),
        (["rao_blackwell", "batch_norm"], "R99", ["no claim 'R99'"]),
        (["rao_blackwell", "batch_norm"], "E1", ["rao_blackwell, batch_norm have such a claim", "--study"]),
    ],
)
def test_a_claim_must_be_found_once(slugs: list[str], claim: str, words: list[str]) -> None:
    with pytest.raises(ClaimError) as caught:
        explain(slugs, "laptop", claim)
    assert all(word in str(caught.value) for word in words) and "\n" not in str(caught.value)


def test_a_study_s_claim_is_explained_with_its_formulas() -> None:
    text = " ".join(explain(["batch_norm", "rao_blackwell"], "laptop", "R3").split())
    statistic = lookup(statistics_of("rao_blackwell"), "concentration_shortfall")
    assert text.startswith("rao_blackwell at preset laptop R3 ") and formula(statistic)
    assert f"concentration_shortfall: {formula(statistic)}" in text and "tolerance 0" in text

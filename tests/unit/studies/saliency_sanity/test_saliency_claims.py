"""What stops the study's claims."""

from __future__ import annotations

from tests.examples import tables, verdict

from restudy.nulls import changed
from restudy.tables import relabel

SLUG = "saliency_sanity"
TABLES = tables(SLUG)


def test_guided_backprop_alike_between_random_nets() -> None:
    other = {"guided_backprop": "gradient_x_input", "gradient_x_input": "guided_backprop"}
    swapped = {**TABLES, "similarity": relabel(TABLES["similarity"], "method", other, state="two_random_nets")}
    assert verdict(SLUG, "A2", swapped).text == "inconclusive (control)"
    assert verdict(SLUG, "G2", swapped).verdict == "not reproduced"


def test_gate_on_permuted_labels() -> None:
    poor = changed("training", lambda v: 0.24, arm="permuted", metric="train_accuracy")(TABLES)
    assert {verdict(SLUG, name, poor).text for name in ("A6", "A10")} == {"inconclusive (gate)"}
    assert verdict(SLUG, "A2", poor).verdict == "reproduced"

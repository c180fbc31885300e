"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.examples import judged, tables, verdict

from restudy.nulls import changed
from restudy.studies.batch_norm import statistics
from restudy.studies.batch_norm.nulls import without_effect

SLUG = "batch_norm"
TABLES = tables(SLUG)
STD, BN, NOISY = "std-0.1", "bn-0.1", "noisy-0.1"


def test_arms_exchanged_contradict() -> None:
    swapped = TABLES
    for given, taken in (("x-0.1", STD), (STD, BN), (BN, "x-0.1")):
        swapped = without_effect(given, taken)(swapped)
    assert {verdict(SLUG, name, swapped).verdict for name in ("N5", "R1")} == {"not reproduced"}


def test_gates_stop_what_they_should() -> None:
    calm = changed("drift", lambda v: v / 100, run=NOISY)(TABLES)
    assert verdict(SLUG, "N2", calm).text == "inconclusive (gate)" and verdict(SLUG, "N9", calm).text == "reproduced"
    diverged = judged(SLUG, changed("training", lambda v: 1.0, run=STD, metric="diverged")(TABLES))
    assert {diverged[n].text for n in ("N1", "N2", "N4", "N5")} == {"inconclusive (gate)"}
    still = changed("probes", lambda v: 0.999, run=STD, metric="shift_cosine")(TABLES)
    assert verdict(SLUG, "N4", still).text == "inconclusive (gate)"


def test_statistics_by_hand() -> None:
    values = statistics.bn_steps_ratio(TABLES)["value"].to_numpy()
    assert len(values) == 6 and (values > 4).all()
    (value, *_) = statistics.noisy_keeps_three_quarters(TABLES)["value"].to_pylist()
    assert value == pytest.approx(0.25 * 0.18 - 0.01, abs=0.015)


def test_a_missing_run_is_a_failed_replicate() -> None:
    without = {
        n: t.filter(np.array(t["run"].to_pylist()) != BN) if "run" in t.column_names else t for n, t in TABLES.items()
    }
    for name in ("loss_range_gap", "shift_cosine_gap", "bn_steps_ratio", "stability_ratio", "curvature_gap"):
        values = getattr(statistics, name)(without)["value"].to_pylist()
        assert len(values) == 6 and all(math.isnan(v) for v in values), name

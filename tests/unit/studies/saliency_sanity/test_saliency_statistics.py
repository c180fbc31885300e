"""Statistics against values worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from tests.examples import tables

from restudy.catalog import study
from restudy.errors import ClaimError
from restudy.results.columns import table_from
from restudy.studies.saliency_sanity import figures, statistics
from restudy.studies.saliency_sanity.experiment import summary

ROW = {
    "pair": statistics.CNN, "seed": 0, "against": "trained", "state": "top_down", "depth": 1, "layer": "logits",
    "redraw": 0, "target": "fixed", "method": "gradient", "metric": "spearman_abs", "value": 0.0, "unit": "1",
    "images": 10, "undefined": 0,
}  # fmt: skip


def rows(*changes: dict[str, object]) -> dict[str, pa.Table]:
    columns = study("saliency_sanity").file.stages["measure"].tables["similarity"]
    return {"similarity": table_from([ROW | change for change in changes], columns)}


def test_redraws_are_averaged_within_the_seed() -> None:
    tables = rows(
        *({"method": "guided_backprop", "redraw": r, "value": v} for r, v in enumerate((0.7, 0.8, 0.9))),
        *({"redraw": r, "value": v} for r, v in enumerate((0.2, 0.4, 0.3))),
    )
    found = statistics.gbp_minus_gradient_logit_layer(tables)
    assert found["replicate"].to_pylist() == [0]
    assert found["value"].to_pylist() == pytest.approx([0.5])


def test_recomputed_class_does_not_enter() -> None:
    tables = rows({"method": "guided_backprop", "value": 0.8}, {"value": 0.3}, {"value": 0.9, "target": "recomputed"})
    assert statistics.gbp_minus_gradient_logit_layer(tables)["value"].to_pylist() == pytest.approx([0.5])


@pytest.mark.parametrize(("undefined", "defined"), [(1, True), (2, False)])
def test_more_than_a_tenth_undefined_is_no_value(undefined: int, defined: bool) -> None:
    tables = rows({"method": "guided_gradcam", "value": 0.6, "undefined": undefined}, {"value": 0.5})
    (value,) = statistics.guided_gradcam_minus_gradient(tables)["value"].to_pylist()
    assert math.isfinite(value) == defined


def test_undefined_images_are_counted_not_dropped() -> None:
    found = summary("spearman", np.array([0.5, np.nan, 0.7]))
    assert (found["value"], found["images"], found["undefined"]) == (pytest.approx(0.6), 3, 1)


def test_a_missing_method_is_a_failed_replicate() -> None:
    (value,) = statistics.gbp_minus_gradient_logit_layer(rows({"value": 0.5}))["value"].to_pylist()
    assert math.isnan(value)


def test_kendall_w() -> None:
    same = [np.array([3.0, 1.0, 2.0]), np.array([30.0, 10.0, 20.0])]
    opposed = [np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0])]
    assert statistics.concordance(same) == pytest.approx(1.0)
    assert statistics.concordance(opposed) == pytest.approx(0.0)
    # Siegel, Castellan 1988: rank sums 6, 9, 15, 10 of three judges: S = 42, W = 12 * 42 / (9 * 60).
    three = [np.array(r, float) for r in ([1, 2, 4, 3], [2, 3, 5, 4], [3, 4, 6, 3])]
    assert 0 <= statistics.concordance(three) <= 1
    assert figures.concordance_by_chance(9, 4).mean() == pytest.approx(1 / 4, abs=0.01)  # E[W] = 1/m under chance


def test_the_rule() -> None:
    assert statistics.decide(1.0, 1.0) == statistics.REJECTED
    assert statistics.decide(0.05, 0.7) == statistics.ACCEPTED
    assert statistics.decide(math.nan, 0.7) == statistics.UNDEFINED
    assert statistics.decide(0.65, 0.7) == statistics.REJECTED


def test_photo_statistics_without_the_track_say_what_is_missing() -> None:
    with pytest.raises(ClaimError, match="photo_similarity"):
        statistics.lite0_gbp_minus_gradient(rows())


def test_photos_are_the_replicates() -> None:
    found = statistics.lite0_gbp_minus_gradient(tables("saliency_sanity"))
    assert found.num_rows == 8
    assert found["cluster"].to_pylist() == found["replicate"].to_pylist()
    assert found["value"].to_numpy() == pytest.approx(np.full(8, 0.67), abs=0.08)

"""What stops the study's claims, and statistics by hand."""

from __future__ import annotations

import math

import pytest
from tests.examples import tables, verdict
from tests.examples.importance_weighting import LATENT

from restudy.bench.planting import nulls_of
from restudy.nulls import changed, copied, in_turn
from restudy.studies.importance_weighting import statistics
from restudy.studies.importance_weighting.arms import largest_k, plain_arms
from restudy.tables import levels, where, with_column

SLUG = "importance_weighting"
TABLES = tables(SLUG)


def test_the_effect_of_fixed_binarization_is_behind_e4_as_well() -> None:
    assert verdict(SLUG, "E4", nulls_of(SLUG)["W7"](TABLES)).verdict not in ("reproduced", "error")


def test_training_on_alone_satisfies_the_printed_comparison_but_not_the_controlled_one() -> None:
    """Every continuation equals its control; the VAE has improved by itself, the IWAE has got worse by itself."""
    alone = in_turn(
        copied("arm", "vae_k1_then_iwae_k20", "vae_k1_then_vae_k1", "likelihood"),
        copied("arm", "iwae_k20_then_iwae_k20", "iwae_k20_then_vae_k1", "likelihood"),
    )(TABLES)
    assert verdict(SLUG, "E5", alone).text == "reproduced"
    assert verdict(SLUG, "W4", alone).verdict not in ("reproduced", "partially")


@pytest.mark.parametrize("arm", ["vae_k1", "iwae_k20"])
def test_units_that_are_still_being_lost_stop_w3(arm: str) -> None:
    late = changed("training", lambda v: v + 4, arm=arm, step=750, metric="active_units_1")(TABLES)
    assert verdict(SLUG, "W3", late).text == "inconclusive (gate)"


def test_an_iwae_that_uses_nearly_all_units_stops_w3() -> None:
    used = changed("units", lambda v: 1.0, arm="iwae_k20", unit_index=tuple(range(LATENT - 3)))(TABLES)
    assert verdict(SLUG, "W3", used).text == "inconclusive (gate)"


def test_a_vae_that_gains_as_much_from_more_samples_refutes_that_part_of_w2() -> None:
    found = verdict(SLUG, "W2", changed("likelihood", lambda v: v - 1.4, arm="vae_k20", metric="nll")(TABLES))
    assert found.verdict == "not reproduced" and "the VAE gains at most half" in found.text


def test_a_biased_estimate_stops_w2_and_w4() -> None:
    biased = changed("likelihood", lambda v: v + 0.3, arm="iwae_k20", metric="bias")(TABLES)
    assert {verdict(SLUG, name, biased).text for name in ("W2", "W4")} == {"inconclusive (gate)"}


def test_stl_that_keeps_the_mean_stops_e1_by_its_control() -> None:
    rows = TABLES["toy_gradients"].to_pylist()
    kept = [1.0 + 0.01 * r["seed"] if r["metric"] == "distance" else r["value"] for r in rows]
    given = {**TABLES, "toy_gradients": with_column(TABLES["toy_gradients"], "value", kept)}
    assert verdict(SLUG, "E1", given).verdict != "reproduced"


def test_a_gradient_hidden_by_noise_is_a_failed_replicate() -> None:
    hidden = changed("signal", lambda v: math.nan, metric="signal_to_noise", seed=2, k=16)(TABLES)
    assert verdict(SLUG, "W6", hidden).verdict == "inconclusive"


def test_statistics_by_hand() -> None:
    def mean(name: str) -> float:
        return float(getattr(statistics, name)(TABLES)["value"].to_numpy().mean())

    assert mean("nll_total_drop") == pytest.approx(1.8, abs=0.15)
    assert mean("half_drop_minus_vae") == pytest.approx(0.9 - 0.2, abs=0.15)
    assert mean("swap_to_iwae") == pytest.approx(0.9, abs=0.15)
    assert mean("swap_to_vae") == pytest.approx(1.3, abs=0.15)
    assert mean("gap_fixed_minus_resampled") == pytest.approx(8.5 - 5, abs=0.1)
    assert mean("gap_grows_with_fewer_images") == pytest.approx((43 - 30) - 3.5, abs=0.15)
    assert mean("nll_fixed_minus_resampled_few") == pytest.approx(3.0, abs=0.15)
    assert mean("toy_iwae_slope") == pytest.approx(-0.5, abs=0.03)
    assert mean("late_change_vae") == 0.0
    assert set(levels(statistics.nll_by_k(TABLES), "group")) == {"vae_k1 to iwae_k5", "iwae_k5 to iwae_k20"}
    steps = where(statistics.bound_steps(TABLES), group="5 to 50")["value"].to_numpy()
    assert steps.mean() == pytest.approx(3 / 5**0.5 - 3 / 50**0.5, abs=0.02)


def test_the_largest_k_is_that_of_the_plain_arms() -> None:
    names = set(levels(TABLES["likelihood"], "arm"))
    names |= {"iwae_k99_fixed", "iwae_k98_two_layers", "dreg_k97", "iwae_k96_n50"}
    assert largest_k(names) == 20 and [a.k for a in plain_arms(names, "iwae")] == [5, 20]
    assert largest_k({"vae_k1"}) == 1

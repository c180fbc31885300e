"""Every claim can come out reproduced, and does not where its effect was removed or its precondition fails."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from importance_weighting_tables import FOLDER, LATENT, everything, judged

from restudy.bench.planting import nulls_of
from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.importance_weighting import statistics
from restudy.studies.importance_weighting.arms import largest_k, plain_arms
from restudy.tables import levels, relabel, where, with_column

NULLS = nulls_of("importance_weighting")
CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()
JUDGED = [claim.id for claim in CLAIMS if claim.kind != "qualitative"]


def changed(table: pa.Table, change: dict[str, float], **columns: object) -> pa.Table:
    """The table with numbers added to the values of some arms, in the rows of these columns."""
    rows = table.to_pylist()
    values = [r["value"] + change.get(r["arm"], 0.0) * all(r[name] == v for name, v in columns.items()) for r in rows]
    return with_column(table, "value", values)


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts if v.claim in JUDGED} == dict.fromkeys(JUDGED, "reproduced")


# E5 is the paper's comparison without a control: see the next test.
@pytest.mark.parametrize("name", [name for name in JUDGED if name != "E5"])
def test_planted_null(name: str) -> None:
    null = NULLS["W7" if name == "E4" else name]
    verdict = judged(null(TABLES))[name]
    assert verdict.verdict not in ("reproduced", "error"), verdict.text


def test_training_on_alone_satisfies_the_printed_comparison_but_not_the_controlled_one() -> None:
    """Every continuation equals its control; the VAE has improved by itself, the IWAE has got worse by itself."""
    table = TABLES["likelihood"]
    twin = {"vae_k1_then_vae_k1": "vae_k1_then_iwae_k20", "iwae_k20_then_vae_k1": "iwae_k20_then_iwae_k20"}
    others = where(table, arm=tuple(set(levels(table, "arm")) - set(twin.values())))
    copies = [relabel(where(table, arm=name), "arm", {name: other}) for name, other in twin.items()]
    verdicts = judged({**TABLES, "likelihood": pa.concat_tables([others, *copies])})
    assert verdicts["E5"].text == "reproduced"
    assert verdicts["W4"].verdict not in ("reproduced", "partially")


@pytest.mark.parametrize("arm", ["vae_k1", "iwae_k20"])
def test_units_that_are_still_being_lost_stop_w3(arm: str) -> None:
    late = changed(TABLES["training"], {arm: 4.0}, step=750, metric="active_units_1")
    assert judged({**TABLES, "training": late})["W3"].text == "inconclusive (gate)"


def test_an_iwae_that_uses_nearly_all_units_stops_w3() -> None:
    rows = TABLES["units"].to_pylist()
    used = [1.0 if r["arm"] == "iwae_k20" and r["unit_index"] < LATENT - 3 else r["value"] for r in rows]
    assert judged({**TABLES, "units": with_column(TABLES["units"], "value", used)})["W3"].text == "inconclusive (gate)"


def test_a_vae_that_gains_as_much_from_more_samples_refutes_that_part_of_w2() -> None:
    table = changed(TABLES["likelihood"], {"vae_k20": -1.4}, metric="nll")
    verdict = judged({**TABLES, "likelihood": table})["W2"]
    assert verdict.verdict == "not reproduced" and "the VAE gains at most half" in verdict.text


def test_a_biased_estimate_stops_w2_and_w4() -> None:
    table = changed(TABLES["likelihood"], {"iwae_k20": 0.3}, metric="bias")
    verdicts = judged({**TABLES, "likelihood": table})
    assert verdicts["W2"].text == verdicts["W4"].text == "inconclusive (gate)"


def test_stl_that_keeps_the_mean_stops_e1_by_its_control() -> None:
    rows = TABLES["toy_gradients"].to_pylist()
    kept = [1.0 + 0.01 * r["seed"] if r["metric"] == "distance" else r["value"] for r in rows]
    assert (
        judged({**TABLES, "toy_gradients": with_column(TABLES["toy_gradients"], "value", kept)})["E1"].verdict
        != "reproduced"
    )


def test_a_gradient_hidden_by_noise_is_a_failed_replicate() -> None:
    rows = TABLES["signal"].to_pylist()
    hidden = [
        math.nan if r["metric"] == "signal_to_noise" and r["seed"] == 2 and r["k"] == 16 else r["value"] for r in rows
    ]
    assert judged({**TABLES, "signal": with_column(TABLES["signal"], "value", hidden)})["W6"].verdict == "inconclusive"


def test_primary_claims() -> None:
    assert [claim.id for claim in CLAIMS if claim.primary] == ["W2", "W3", "W4", "W7"]


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(TABLES, "smoke").verdicts}
    assert {name for name, word in verdicts.items() if word != "not testable"} == {"X1", "W8", "W9"}


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
    groups = statistics.nll_by_k(TABLES)
    assert set(groups["group"].to_pylist()) == {"vae_k1 to iwae_k5", "iwae_k5 to iwae_k20"}
    steps = where(statistics.bound_steps(TABLES), group="5 to 50")["value"].to_numpy()
    assert steps.mean() == pytest.approx(3 / 5**0.5 - 3 / 50**0.5, abs=0.02)


def test_the_largest_k_is_that_of_the_plain_arms() -> None:
    names = set(levels(TABLES["likelihood"], "arm"))
    names |= {"iwae_k99_fixed", "iwae_k98_two_layers", "dreg_k97", "iwae_k96_n50"}
    assert largest_k(names) == 20 and [a.k for a in plain_arms(names, "iwae")] == [5, 20]
    assert largest_k({"vae_k1"}) == 1


def test_a_missing_seed_is_a_failed_replicate() -> None:
    kept = where(TABLES["likelihood"], seed=(1, 2, 3, 4, 5))
    assert judged({**TABLES, "likelihood": kept})["W2"].verdict == "inconclusive"
    without = where(TABLES["likelihood"], arm=("vae_k1", "iwae_k20"))
    assert np.isnan(statistics.swap_to_iwae({"likelihood": without})["value"].to_numpy()).all()

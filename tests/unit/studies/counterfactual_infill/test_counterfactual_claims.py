"""Every claim can come out reproduced, and does not where its effect was removed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from counterfactual_tables import FOLDER, SEEDS, everything, judged

from restudy.bench.planting import nulls_of
from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.counterfactual_infill import paths, statistics
from restudy.tables import where, with_column

NULLS = nulls_of("counterfactual_infill")
CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()
JUDGED = [claim.id for claim in CLAIMS if claim.kind != "qualitative"]


def shifted(table: str, amount: float, **rows: object) -> dict[str, pa.Table]:
    found = TABLES[table]
    inside = np.ones(len(found), dtype=bool)
    for name, value in rows.items():
        inside &= np.array([v == value for v in found[name].to_pylist()])
    assert inside.any()
    return {**TABLES, table: with_column(found, "value", found["value"].to_numpy() + amount * inside)}


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts if v.claim in JUDGED} == dict.fromkeys(JUDGED, "reproduced")


@pytest.mark.parametrize("name", JUDGED)
def test_planted_null(name: str) -> None:
    verdict = judged(NULLS[name](TABLES))[name]
    assert verdict.verdict not in ("reproduced", "error"), verdict.text


def test_primary_claims() -> None:
    assert [claim.id for claim in CLAIMS if claim.primary] == ["F1", "F2", "F5", "F13"]


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(TABLES, "smoke").verdicts}
    assert {n for n, word in verdicts.items() if word != "not testable"} == {f"X{i}" for i in range(1, 6)}


@pytest.mark.parametrize(
    ("claim", "tables"),
    [
        ("F1", shifted("fills", 0.2, metric="hidden_excess", infiller="judge")),
        ("F2", shifted("training", 0.1, net="vae")),
        ("F2", shifted("training", -0.06, net="vae_elsewhere")),
        ("F5", shifted("training", -0.3, net="classifier")),
        ("F13", shifted("fills", 0.3, metric="seam", infiller="gan")),
    ],
    ids=["the judge draws the class", "a poor VAE", "an unconditional VAE", "a poor classifier", "a GAN with seams"],
)
def test_gates_stop_a_claim(claim: str, tables: dict[str, pa.Table]) -> None:
    assert judged(tables)[claim].text == "inconclusive (gate)"


def test_a_second_run_that_differs_as_much_stops_f13_by_its_control() -> None:
    table = TABLES["maps"]
    size = np.array(table["metric"].to_pylist()) == "area"
    again = table["restart"].to_numpy() == 1
    values = table["value"].to_numpy() * np.where(size & again, 1.4, 1.0)
    assert judged({**TABLES, "maps": with_column(table, "value", values)})["F13"].verdict != "reproduced"


def test_a_leak_of_one_bit_refutes_the_exact_claim() -> None:
    verdict = judged(shifted("fills", 1e-7, metric="leak", infiller="gan"))
    assert verdict["X1"].verdict == "not reproduced" and verdict["F9"].verdict != "reproduced"


def test_area_at_a_score_by_hand() -> None:
    """Areas .1/(1 + place) and log-odds 5 - 8/(1 + place): -3 at .1 and 1 at .05, so 0 is crossed at .0625."""
    found = paths.area_at_score(TABLES, "vae", "judge")
    sizes = paths.means(TABLES, "area", "sdr", "vae")
    assert all(found[s] == pytest.approx(0.625 * sizes[s][0]) for s in range(SEEDS))
    bare = paths.area_at_score(TABLES, "vae", "judge", bare=True)
    assert all(found[s] < bare[s] < sizes[s][0] for s in range(SEEDS))


def test_first_crossing() -> None:
    assert paths.first_crossing([0, 1, 2], np.array([0.0, 2.0, 1.0]), 1.0) == 0.5
    assert paths.first_crossing([0, 1], np.array([3.0, 4.0]), 1.0) == 0.0
    assert np.isnan(paths.first_crossing([0, 1], np.array([0.0, 0.5]), 1.0))
    assert np.isnan(paths.first_crossing([0, 1], np.array([0.0, np.nan]), 1.0))


def test_penalties_are_chosen_on_the_tuning_images_alone() -> None:
    """Test values of the second penalty are spoiled; the choice must not see it."""
    table = where(TABLES["maps"], method="sdr", infiller="vae", restart=0, metric="flipping_area_judge")
    spoiled = (table["penalty"].to_numpy() == 0.6) & (np.array(table["split"].to_pylist()) == "test")
    changed = with_column(table, "value", table["value"].to_numpy() + spoiled)
    found = paths.tuned({"maps": changed}, "flipping_area_judge", "sdr", "vae")
    assert all((values > 1).all() for values in found.values())


def test_the_middle_of_three_is_above_one_when_two_are() -> None:
    verdicts = judged({**TABLES, "maps": _larger(TABLES["maps"], "noise", 0.3)})
    assert verdicts["F2"].verdict == "reproduced"
    both = _larger(_larger(TABLES["maps"], "noise", 0.3), "blur", 0.3)
    assert judged({**TABLES, "maps": both})["F2"].verdict == "not reproduced"


def _larger(table: pa.Table, infiller: str, factor: float) -> pa.Table:
    inside = (np.array(table["metric"].to_pylist()) == "area") & (np.array(table["infiller"].to_pylist()) == infiller)
    inside &= np.array(table["method"].to_pylist()) == "sdr"
    return with_column(table, "value", table["value"].to_numpy() * np.where(inside, factor, 1.0))


def test_a_missing_arm_is_a_failed_replicate() -> None:
    table = TABLES["maps"]
    keep = pa.array([m != "bbmp" for m in table["method"].to_pylist()])
    assert judged({**TABLES, "maps": table.filter(keep)})["F1"].verdict == "inconclusive"

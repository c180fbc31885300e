"""Every claim can come out reproduced, and does not where its effect was removed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from head_pruning_tables import FOLDER, HEADS, KEPT, LAYERS, POSITIONAL, SYNTACTIC, everything, judged

from restudy.bench.planting import nulls_of
from restudy.claims import load_claims
from restudy.claims.statistics import missing
from restudy.studies.head_pruning import statistics
from restudy.tables import where, with_column

NULLS = nulls_of("head_pruning")
CLAIMS = load_claims(FOLDER / "claims.yaml")
TABLES = everything()
JUDGED = [claim.id for claim in CLAIMS if claim.kind != "qualitative"]


def test_every_named_statistic_exists() -> None:
    assert missing(CLAIMS, statistics) == []


def test_all_claims_hold_on_results_that_have_their_effects() -> None:
    verdicts = judged(TABLES)
    assert {v.claim: v.text for v in verdicts.verdicts if v.claim in JUDGED} == dict.fromkeys(JUDGED, "reproduced")


@pytest.mark.parametrize("name", sorted(NULLS))
def test_planted_null(name: str) -> None:
    verdict = judged(NULLS[name](TABLES))[name]
    assert verdict.verdict not in ("reproduced", "error"), verdict.text


def test_primary_claims_have_nulls_and_are_four() -> None:
    primary = [claim.id for claim in CLAIMS if claim.primary]
    assert primary == ["H1", "H2", "H4", "H6"] and set(primary) <= set(NULLS)


def test_smoke_judges_the_exact_claims_only() -> None:
    verdicts = {v.claim: v.verdict for v in judged(TABLES, "smoke").verdicts}
    assert {name for name, word in verdicts.items() if word != "not testable"} == {"H8", "X1", "X2"}


def changed(name: str, column: str, change: object, **columns: object) -> dict:
    table = TABLES[name]
    chosen = np.ones(table.num_rows, dtype=bool)
    for key, wanted in columns.items():
        chosen &= np.array(table[key].to_pylist(), dtype=object) == wanted
    values = np.where(chosen, change(table[column].to_numpy()), table[column].to_numpy())  # type: ignore[operator]
    return {**TABLES, name: with_column(table, column, values)}


def test_an_idle_encoder_stops_the_claims_by_their_gate() -> None:
    tables = changed("quality", "value", lambda v: 0 * v + 0.121, metric="without_encoder_heads")
    verdicts = judged(tables)
    for name in ("H1", "H2", "H3", "H4", "H5", "H6", "H11"):
        assert verdicts[name].text == "inconclusive (gate)", name


def test_positional_heads_of_untrained_models_stop_the_claim_by_its_control() -> None:
    table = TABLES["positions"]
    known = {
        tuple(r[k] for k in ("seed", "weighting", "layer", "head", "half", "offset")): r["hits"]
        for r in where(table, arm="relative").to_pylist()
    }
    hits = [
        known[tuple(r[k] for k in ("seed", "weighting", "layer", "head", "half", "offset"))]
        if r["arm"] == "untrained" else r["hits"]
        for r in table.to_pylist()
    ]  # fmt: skip
    assert judged({**TABLES, "positions": with_column(table, "hits", hits)})["H1"].verdict == "inconclusive"


def test_without_any_function_survival_cannot_be_asked() -> None:
    tables = changed("positions", "hits", lambda v: v * 0.5)
    tables["relations"] = changed("relations", "hits", lambda v: v * 0.2)["relations"]
    values = statistics.survival(tables)["value"].to_pylist()
    assert all(math.isnan(v) for v in values)
    assert judged(tables)["H5"].verdict == "inconclusive"


def test_the_best_head_is_chosen_on_the_other_half() -> None:
    one, two = np.array([[0.9, 0.1]]), np.array([[0.2, 0.3]])
    assert statistics.held_out((one, two)) == pytest.approx((0.1 + 0.2) / 2)


def test_third_margin_by_hand() -> None:
    third = statistics.third_syntactic(TABLES)["value"].to_numpy()
    assert third.mean() == pytest.approx(0.8 - 0.4, abs=0.02)
    assert statistics.permuted_third(TABLES)["value"].to_numpy().max() < 0
    found = statistics.functions(TABLES, "relative", 0)
    assert {tuple(p) for p in np.argwhere(found["positional"]).tolist()} == set(POSITIONAL)
    assert {tuple(p) for p in np.argwhere(found["syntactic"]).tolist()} == set(SYNTACTIC)


def test_gini_ranks_and_areas_by_hand() -> None:
    assert statistics.gini(np.ones(8)) == pytest.approx(0.0)
    assert statistics.gini(np.array([0.0, 0, 0, 0, 0, 0, 0, 1])) == pytest.approx(7 / 8)
    assert statistics.gini(np.array([-1.0, 1.0])) == pytest.approx(0.5), "negative importance counts as none"
    assert math.isnan(statistics.gini(np.zeros(3)))
    assert statistics.ranks(np.array([3.0, 1.0, 1.0])).tolist() == [2, 0.5, 0.5]
    scores, chosen = np.array([1.0, 2.0, 3.0, 3.0]), np.array([False, True, False, True])
    assert statistics.area_under_curve(scores, chosen) == pytest.approx((1 + 0 + 1 + 0.5) / 4)


def test_kept_shares_and_penalties() -> None:
    assert statistics.penalties(TABLES) == [0.005, 0.01, 0.02] and statistics.main_penalty(TABLES) == 0.01
    shares = statistics.pruned_share(TABLES)["value"].to_pylist()
    assert shares == pytest.approx([1 - len(KEPT) / (LAYERS * HEADS)] * len(shares), abs=0.03)


def test_a_missing_seed_is_a_failed_replicate() -> None:
    kept = where(TABLES["scores"], seed=(1, 2, 3, 4, 5))
    assert judged({**TABLES, "scores": kept})["H6"].verdict == "inconclusive"

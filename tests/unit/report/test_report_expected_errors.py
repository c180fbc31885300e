"""The expected number of false verdicts on a page is the one of the claims engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml
from tests.unit.claims.claims_material import GOOD, study

from restudy.claims import parse_claim
from restudy.claims.table import to_table
from restudy.report.load import _false_verdicts
from restudy.report.load_claims import claims_of

EXACT = {"kind": "exact", "statistic": "zero", "tolerance": 0}
MEANS = {"kind": "direction", "statistic": "good", "sesoi": 0.5}
VALUES = {"good": GOOD, "zero": [0.0], "few": GOOD[:3], "lost": [*GOOD[:4], np.nan], "low": [0.1] * 4 + [0.2]}
CLAIMS: dict[str, dict[str, Any]] = {
    "mean": MEANS,
    "exact": EXACT,
    "exact parts": {"parts": [EXACT | {"name": "a"}, EXACT | {"name": "b"}]},
    "mixed parts": {"parts": [EXACT | {"name": "a"}, MEANS | {"name": "b"}]},
    "few": MEANS | {"statistic": "few"},
    "few in a part": {"parts": [MEANS | {"name": "a"}, MEANS | {"name": "b", "statistic": "few"}]},
    "lost": MEANS | {"statistic": "lost"},
    "gate": MEANS | {"gate": [{"statistic": "low", "op": ">=", "value": 0.5}]},
    "error": MEANS | {"statistic": "absent"},
    "elsewhere": MEANS | {"presets": ["paper"]},
    "qualitative": {"kind": "qualitative"},
}


def both(tmp_path: Path, names: list[str]) -> tuple[tuple[float, float], tuple[float, float]]:
    """The bounds of the page and of the engine for some of the claims."""
    written = [{"id": f"X{n}", "says": name, **CLAIMS[name]} for n, name in enumerate(names)]
    judged = study(VALUES, [parse_claim(entry) for entry in written])
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump(written))
    pq.write_table(to_table(judged.verdicts), tmp_path / "verdicts.parquet")
    pq.write_table(to_table(judged.parts, parts=True), tmp_path / "verdict_parts.parquet")
    claims, problems = claims_of(tmp_path, tmp_path)
    assert not problems
    return _false_verdicts(claims), (judged.false_reproduced, judged.false_not_reproduced)


@pytest.mark.parametrize("name", CLAIMS)
def test_each_kind_of_claim(tmp_path: Path, name: str) -> None:
    shown, engine = both(tmp_path, [name])
    assert shown == engine
    assert (shown[0] > 0) == (name in ("mean", "mixed parts"))


def test_all_together(tmp_path: Path) -> None:
    shown, engine = both(tmp_path, list(CLAIMS))
    assert shown == pytest.approx(engine) and engine == pytest.approx((0.10, 0.15))


def test_before_the_run_nothing_is_expected(tmp_path: Path) -> None:
    (tmp_path / "claims.yaml").write_text(yaml.safe_dump([{"id": "X0", "says": "s", **MEANS}]))
    assert _false_verdicts(claims_of(tmp_path, tmp_path / "nowhere")[0]) == (0.0, 0.0)

"""A notebook's study: stored tables, figures and verdicts, and a sentence where a preset lacks one."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.report import report_material as material

from restudy import layout
from restudy.claims.table import PART_SCHEMA, VERDICT_SCHEMA
from restudy.errors import ResultError
from restudy.notebook import Study
from restudy.provenance import forget
from restudy.provenance.fingerprint import Node, code_modules, fingerprint
from restudy.report import notebook

ROWS = [
    {"seed": seed, "arm": arm, "epoch": epoch, "metric": metric, "value": 10.0 * epoch + seed + (arm == "b")}
    for seed in (0, 1)
    for arm in ("a", "b")
    for epoch in (1, 2)
    for metric in ("loss", "error")
]
BLANK = dict.fromkeys(PART_SCHEMA.names) | {"study": "alpha", "gate": "", "control_verdict": ""}
CLAIMS = [
    {"claim": "C1", "primary": True, "verdict": "reproduced", "reason": "", "flags": ["fragile", "few seeds"]},
    {"claim": "C2", "primary": False, "verdict": "partially", "reason": "width", "flags": []},
    {"claim": "C3", "primary": True, "verdict": "inconclusive", "reason": "gate", "flags": []},
]


@pytest.fixture
def study(project: Path) -> Study:
    material.write_study("alpha", material.study_file("A paper"), [])
    folder = layout.results("laptop", "alpha")
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "training.parquet")
    verdicts = [BLANK | row | {"estimate": 0.123456, "n": 5} for row in CLAIMS]
    pq.write_table(pa.Table.from_pylist(verdicts, schema=VERDICT_SCHEMA), folder / "verdicts.parquet")
    parts = [BLANK | {"claim": "C2", "part": "small", "verdict": "partially", "estimate": 2 / 3}]
    pq.write_table(pa.Table.from_pylist(parts, schema=PART_SCHEMA), folder / "verdict_parts.parquet")
    layout.figures("laptop", "alpha").mkdir(parents=True)
    (layout.figures("laptop", "alpha") / "F1.svg").write_text(material.SVG)
    return Study("alpha", "laptop")


def test_nothing_stored_is_an_error_that_says_what_to_do(project: Path) -> None:
    with pytest.raises(ResultError, match=r"no results of alpha at preset laptop.*make reproduce"):
        Study("alpha", "laptop")


def test_tables_are_read_and_rows_chosen(study: Study) -> None:
    assert study.has("training") and not study.has("photos")
    assert study.table("training").to_pylist() == ROWS
    last = study.frame("training", last="epoch", arm="b", metric=("loss", "none"))
    assert last["value"].tolist() == [21.0, 22.0]
    for read in (study.table, study.frame):
        with pytest.raises(ResultError, match=r"photos\.parquet: missing"):
            read("photos")


def test_pivot_averages_and_rounds(study: Study) -> None:
    found = study.pivot("training", "arm", last="epoch", digits=1)
    assert found.to_dict() == {"error": {"a": 20.5, "b": 21.5}, "loss": {"a": 20.5, "b": 21.5}}
    largest = study.pivot("training", ["arm", "seed"], "epoch", how="max", metric="loss")
    assert largest.loc[("b", 1)].tolist() == [12.0, 22.0]


def test_what_a_preset_lacks_is_said(study: Study) -> None:
    assert study.pivot("photos", "arm").data == "*Preset laptop does not make photos.*"


def test_figures_are_shown_in_order(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("IPython.display.display", lambda thing: shown.append(thing.data))
    study.figure("F1", "F2")
    assert "<svg" in shown[0]
    assert shown[1] == "*Preset laptop does not draw F2.*"


def test_verdicts_and_parts_are_rounded(study: Study) -> None:
    verdicts, parts = study.verdicts(digits=3), study.parts()
    assert verdicts["claim"].tolist() == ["C1", "C2", "C3"] and verdicts["estimate"].tolist() == [0.123] * 3
    assert list(verdicts)[:4] == ["claim", "primary", "verdict", "reason"]
    assert parts[["part", "estimate"]].to_numpy().tolist() == [["small", 0.6667]]


def test_the_conclusion_lists_primary_claims_with_reasons_and_marks(study: Study) -> None:
    expected = ["- **C1** reproduced; fragile, few seeds", "- **C3** inconclusive (gate)", "- And so on."]
    assert study.conclusion("And so on.").data.splitlines() == expected


def test_a_notebook_that_uses_it_runs(study: Study) -> None:
    (layout.STUDIES / "alpha" / "notebook.md").write_text(
        '# Story\n\n```python tags=["parameters"]\npreset = "smoke"\n```\n\n'
        "```python\nfrom restudy.notebook import Study\n\nstudy = Study('alpha', preset)\n"
        "study.figure('F1', 'F9')\nstudy.pivot('training', 'arm')\n```\n\n```python\nstudy.conclusion()\n```\n"
    )
    text = notebook.execute("alpha", "laptop").decode()
    assert "<strong>C1</strong> reproduced; fragile" in text
    assert "Preset laptop does not draw F9." in text
    assert "data:image/svg+xml" in text and "<td>16.5</td>" in text


def test_the_fingerprint_covers_what_the_cells_import(study: Study) -> None:
    folder, node = layout.STUDIES / "alpha", Node("notebook", "laptop", "alpha")
    cells = "from restudy.notebook import Study\n\nfrom restudy.studies.alpha import train as t, figures\n"
    (folder / "notebook.md").write_text(f"# Story\n\n```python\n{cells}```\n")
    forget()
    package = "restudy.studies.alpha"
    assert {"restudy.notebook", f"{package}.train", f"{package}.figures"} < set(code_modules(node))
    before = fingerprint(node)
    (folder / "figures.py").write_text('"""Made up."""\n\ndrawn = 1\n')
    forget()
    assert fingerprint(node) != before

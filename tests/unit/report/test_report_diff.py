"""Two runs side by side, and a site that stands alone."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from tests.unit.report import report_material as material

from restudy import layout
from restudy.claims.table import VERDICT_SCHEMA
from restudy.errors import ConfigError, ResultError
from restudy.report import page
from restudy.report.bundle import bundle
from restudy.report.diff import compare
from restudy.results.files import write_atomically
from restudy.results.tables import table_bytes


def row(claim: str, verdict: str, estimate: float | None, half: float = 0.05, reason: str = "", n: int = 5) -> dict:
    found = dict.fromkeys(VERDICT_SCHEMA.names) | {
        "study": "alpha", "claim": claim, "kind": "direction", "primary": True, "verdict": verdict, "reason": reason,
        "flags": [], "alpha": 0.05, "n": n, "estimate": estimate,
    }  # fmt: skip
    return found if estimate is None else found | {"ci_low": estimate - half, "ci_high": estimate + half}


def store(folder: Path, rows: list[dict]) -> Path:
    write_atomically(
        folder / "alpha" / "verdicts.parquet", table_bytes(pa.Table.from_pylist(rows, schema=VERDICT_SCHEMA))
    )
    return folder


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    before = [
        row("A1", "reproduced", 0.3),
        row("A2", "inconclusive", 0.1, reason="width"),
        row("A3", "error", None),
        row("A4", "reproduced", 0.2),
    ]
    after = [
        row("A1", "reproduced", 0.25),
        row("A2", "reproduced", 0.2),
        row("A3", "error", None),
        row("A5", "reproduced", 0.2),
    ]
    return store(tmp_path / "a", before), store(tmp_path / "b", after)


def test_changed_verdicts_come_first_and_moves_are_in_standard_errors(two: tuple[Path, Path]) -> None:
    found = compare(*two)
    assert [c.claim for c in found.changes] == ["A2", "A1", "A3", "A4", "A5"]
    assert [c.claim for c in found.changed] == ["A2"]
    error = 0.05 / stats.t.ppf(0.95, 4)
    assert found.changes[1].moved == pytest.approx(-0.05 / (error * math.sqrt(2)))
    assert not found.same


def test_text_names_what_changed(two: tuple[Path, Path]) -> None:
    text = compare(*two).text()
    assert "changed: alpha A2: inconclusive (width) -> reproduced" in text
    assert "moved:   alpha A1" in text
    assert f"only in {two[0]}: alpha A4" in text
    assert f"only in {two[1]}: alpha A5" in text
    assert "1 claims are exactly as before" in text


def test_json_is_json_even_with_infinite_bounds(tmp_path: Path) -> None:
    one = store(tmp_path / "a", [row("A1", "inconclusive", 0.3, math.inf)])
    content = json.loads(compare(one, one).json_text())
    assert content["same"] is True
    assert content["claims"][0]["before"]["ci_low"] is None


def test_a_run_against_itself_is_the_same(two: tuple[Path, Path]) -> None:
    found = compare(two[0], two[0])
    assert found.same
    assert b"Every claim has the same verdict" in found.html()


def test_kinds_of_machine_are_named_where_they_differ(tmp_path: Path) -> None:
    def made(name: str, *kernels: str) -> Path:
        folder = store(tmp_path / name, [row("A1", "reproduced", 0.3)])
        table = pq.read_table(folder / "alpha" / "verdicts.parquet")
        (folder / "alpha" / "verdicts.parquet").write_bytes(
            table_bytes(table, json.dumps({"kernels": kernels}).encode())
        )
        return folder

    amd, intel = made("amd", "AMD 25/1, native"), made("both", "Intel 6/207, native", "AMD 25/1, native")
    found = compare(amd, intel)
    line = "AMD 25/1, native -> AMD 25/1, native; Intel 6/207, native"
    assert found.text().splitlines()[1].endswith(line) and b"Intel 6/207" in found.html()
    assert found.same, "the verdicts are"
    assert found.json()["kernels"]["a"] == ("AMD 25/1, native",)
    for other in (amd, made("old")):
        assert compare(amd, other).kinds is None and "kinds of machine" not in compare(amd, other).text()


def test_presets_and_projects_are_found(project: Path) -> None:
    store(project / "results" / "laptop", [row("A1", "reproduced", 0.3)])
    assert compare("laptop", project).same
    store(project / "results" / "mine", [row("A1", "partially", 0.3)])
    assert len(compare("laptop", "mine").changed) == 1
    with pytest.raises(ConfigError, match="several presets"):
        compare("laptop", project)


def test_what_cannot_be_compared_is_refused(project: Path, tmp_path: Path) -> None:
    store(project / "results" / "laptop", [row("A1", "reproduced", 0.3)])
    with pytest.raises(ConfigError, match="neither preset, folder nor commit"):
        compare("laptop", "nowhere")
    with pytest.raises(ConfigError, match="neither preset"):
        compare("laptop", "--upload-pack=x")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"no verdicts\.parquet"):
        compare("laptop", tmp_path / "empty")
    (project / "results" / "laptop" / "alpha" / "verdicts.parquet").write_bytes(b"PAR1")
    with pytest.raises(ResultError, match="not readable"):
        compare("laptop", "laptop")


def test_a_commit_is_read_from_the_cache_of_dvc(project: Path) -> None:
    def run(*command: str) -> None:
        subprocess.run(command, cwd=project, check=True, capture_output=True)

    run("git", "init", "-q")
    run(sys.executable, "-m", "dvc", "init", "-q")
    store(project / "results" / "laptop", [row("A1", "reproduced", 0.3)])
    run(sys.executable, "-m", "dvc", "add", "-q", "results/laptop/alpha")
    run("git", "add", ".")
    run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first")
    store(project / "results" / "laptop", [row("A1", "partially", 0.2)])
    found = compare("HEAD", "laptop")
    assert [(c.before.verdict, c.after.verdict) for c in found.changed if c.before and c.after] == [
        ("reproduced", "partially")
    ]
    with pytest.raises(ConfigError, match="DVC|no results"):
        compare("HEAD:paper", "laptop")


@pytest.fixture
def site(project: Path) -> Path:
    rng = random.Random(1)
    entries = [material.claim(1, rng)]
    material.write_study("alpha", material.study_file("A paper"), entries)
    material.write_results("alpha", "laptop", [material.verdict(entries[0], "alpha", ("reproduced", ""), rng)])
    write_atomically(layout.report("laptop") / "alpha.html", page.render("alpha", "laptop"))
    return project


def test_a_bundle_holds_everything_that_its_pages_link_to(site: Path, tmp_path: Path) -> None:
    out = bundle("laptop", tmp_path / "copy")
    pages = list((out / "report" / "laptop").glob("*.html"))
    assert {p.name for p in pages} == {"index.html", "alpha.html"}
    for name in ("figures/laptop/alpha/F1_curves.svg", "results/laptop/alpha/verdicts.parquet", "index.html",
                 "report/laptop/downloads/alpha/verdicts.csv", "report/laptop/notebooks/alpha.html"):  # fmt: skip
        assert (out / name).is_file(), name
    assert not list(out.rglob("*.run.json"))
    assert not list(out.rglob("shards"))


def test_a_zip_has_the_same_bytes_twice(site: Path, tmp_path: Path) -> None:
    one, two = bundle("laptop", tmp_path / "a.zip"), bundle("laptop", tmp_path / "b.zip")
    assert one.read_bytes() == two.read_bytes()
    assert zipfile.ZipFile(one).testzip() is None


def test_a_bundle_overwrites_nothing(site: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(ConfigError, match="not empty"):
        bundle("laptop", tmp_path / "mine")
    with pytest.raises(ConfigError, match="no report yet"):
        bundle("smoke", tmp_path / "new")

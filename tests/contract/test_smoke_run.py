"""What the smoke run of every study must give."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from restudy import layout
from restudy.bench.judging import claims_of
from restudy.bench.planting import nulls_of
from restudy.catalog import plan
from restudy.claims import judge_study
from restudy.provenance.stamp import read_stamp
from restudy.results import read_table
from tests.conftest import Project

pytestmark = pytest.mark.workflow
KILL_AFTER_SECONDS = (6, 18)


@pytest.fixture
def mine(computed: Project, tmp_path: Path) -> Project:
    """A copy of the computed project that a test may change."""
    shutil.copytree(computed.root, tmp_path / "project", symlinks=True)
    return Project(tmp_path / "project")


def tables(project: Project, slug: str, preset: str = "smoke"):
    folder = project.root / "results" / preset / slug
    return {name: read_table(folder / f"{name}.parquet") for name in plan(slug, "smoke").tables}


def test_everything_is_fresh(computed: Project, slug: str) -> None:
    computed.restudy("status", "--preset", "smoke", "--study", slug)


def test_every_output_carries_its_origin(computed: Project, slug: str) -> None:
    states = json.loads(computed.restudy("status", "--preset", "smoke", "--study", slug, "--json"))
    for state in states:
        facts, content = read_stamp(computed.root / state["path"])
        assert facts.content == content and facts.study == slug and facts.preset == "smoke"
        assert facts.ingredients["code"] or facts.kind == "table", state["path"]
        run = json.loads(layout.run_json(computed.root / state["path"]).read_text())
        assert run["fingerprint"] == facts.fingerprint and run["cpu_seconds"] >= 0 and "peak_mb" in run


def test_smoke_gives_no_scientific_verdict(computed: Project, slug: str) -> None:
    rows = read_table(computed.root / "results" / "smoke" / slug / "verdicts.parquet").to_pylist()
    exact = {claim.id for claim in claims_of(slug) if not claim.statistical}
    assert exact & {row["claim"] for row in rows if row["verdict"] == "reproduced"}, "exact claims are judged"
    for row in rows:
        assert row["verdict"] == "not testable" or row["claim"] in exact, row


@pytest.mark.costly
def test_figures_are_redrawn_without_torch_to_the_same_bytes(mine: Project, slug: str) -> None:
    before = mine.outputs(f"figures/smoke/{slug}/*")
    shutil.rmtree(mine.root / "figures")
    blocked = mine.root / "blocked"
    for name in ("torch", "mlflow", "captum"):
        (blocked / name).mkdir(parents=True)
        (blocked / name / "__init__.py").write_text(f"raise ImportError('{name} is blocked')\n")
    mine.env["PYTHONPATH"] = f"{blocked}:{mine.root / 'src'}"
    mine.reproduce("smoke", "--target", "figures", "--study", slug)
    assert mine.outputs(f"figures/smoke/{slug}/*") == before


@pytest.mark.costly
def test_killed_twice_gives_the_bytes_of_an_undisturbed_run(computed: Project, mine: Project, slug: str) -> None:
    """All processes of a run killed: once early, once among its figures; stages by themselves are in test_stages.py."""
    for folder in ("results", "models", "figures", "report", "work", ".snakemake"):
        shutil.rmtree(mine.root / folder, ignore_errors=True)
    for moment in KILL_AFTER_SECONDS:
        process = mine.start("python", "-m", "restudy.cli", "run", "--preset", "smoke", "--study", slug, "--cores", "2")
        time.sleep(moment)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    mine.reproduce("smoke", "--study", slug)
    chosen = (f"results/smoke/{slug}/**/*", f"models/smoke/{slug}/**/*", f"figures/smoke/{slug}/*")
    planned = plan(slug, "smoke")
    volatile = {table for stage in planned.stages.values() for table in stage.volatile}
    volatile |= {name for name, figure in planned.figures.items() if volatile & set(figure.tables)}
    kept = lambda found: {k: v for k, v in found.items() if Path(k).stem not in volatile}  # noqa: E731
    assert kept(mine.outputs(*chosen)) == kept(computed.outputs(*chosen))


@pytest.mark.costly
def test_planted_nulls_are_not_reproduced(mine: Project, slug: str) -> None:
    """Five seeds at smoke's size, the effect removed at the source: no claim may come out reproduced."""
    (mine.root / "presets.yaml").write_text("five: {inherits: smoke, seeds: 5}\n")
    mine.reproduce("five", "--study", slug, "--target", "verdicts")
    module, found = importlib.import_module(f"restudy.studies.{slug}.statistics"), tables(mine, slug, "five")
    for claim, null in nulls_of(slug).items():
        chosen = [c for c in claims_of(slug) if c.id == claim]
        if "laptop" not in chosen[0].presets:
            continue  # its tables need not be there
        judged = judge_study(chosen, null(found), module, preset="laptop", study=slug, seeds=5)
        assert judged[claim].verdict != "reproduced", f"{claim}: {judged[claim]}"

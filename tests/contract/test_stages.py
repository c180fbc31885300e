"""What every stage must do at smoke, in this process: the same bytes again, also after a kill; nothing undeclared."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from restudy.bench.judging import claims_of, statistics_of
from restudy.bench.outputs import outputs, volatile
from restudy.bench.planting import nulls_of
from restudy.bench.workers import Files
from restudy.catalog import study
from restudy.claims.statistics import lookup, named
from restudy.contract import smoke
from restudy.errors import RestudyError
from restudy.provenance import kernels
from restudy.provenance.fingerprint import Node
from restudy.provenance.stamp import read_stamp
from restudy.results.tables import read_table
from tests.contract.conftest import Smoke, changed_slugs, costly_slugs

RECORD = Path(__file__).parent / "smoke_sums.json"
"""Content sums of every table and tensor file at smoke, and the kernel set that computed them."""
KILLED_AT = 3
COSTLY_SECONDS = 20


def kept(job: Node, files: Files) -> Files:
    return {path: content for path, content in files.items() if not volatile(job, path)}


def test_a_job_gives_the_same_bytes_again_killed_and_resumed(
    slug: str, stage: str, smoke_of: Smoke, tmp_path: Path
) -> None:
    """Once more with nothing but its inputs; where it saves checkpoints, killed after the third and called again."""
    folder = smoke_of(slug)
    facts = smoke.facts(folder)
    for job in smoke.stage_jobs(slug, stage):
        cost = facts[smoke.label(job)]
        if cost["seconds"] > COSTLY_SECONDS and slug not in changed_slugs() | costly_slugs():
            pytest.skip(f"{cost['seconds']:.0f} s at smoke, unchanged and not in today's rotation")
        checkpoints = tmp_path / smoke.label(job)
        if cost["saves"]:
            kill_after = min(KILLED_AT, int(cost["saves"]))
            with pytest.raises(smoke.Killed), smoke.watched_checkpoints(kill_after):
                smoke.compute(job, folder, checkpoints)
        with smoke.watched_checkpoints() as seen:
            again = smoke.compute(job, folder, checkpoints)
        assert seen.loaded or not cost["saves"], f"{smoke.label(job)} begins anew after a kill"
        before = {path: (folder / path).read_bytes() for path in outputs(job)}
        differ = [str(path) for path, content in kept(job, again).items() if content != before[path]]
        assert not differ and again.keys() == before.keys(), f"{smoke.label(job)}: other bytes in {differ}"


def test_sums_are_those_on_record(slug: str, smoke_of: Smoke) -> None:
    """A rewritten stage must not move a bit; where a result is meant to change, the diff of the record shows it.

    `RESTUDY_RECORD_SUMS=1 pytest tests/contract/test_stages.py -k on_record` records anew, in one process.
    """
    record = json.loads(RECORD.read_text())
    kept = {path: total for path, total in record["sums"].items() if path.split("/")[2] == slug}
    recording, here = "RESTUDY_RECORD_SUMS" in os.environ, kernels.name()
    if not recording and here != record["kernels"]:
        pytest.skip(f"recorded on {record['kernels']}; other kernels give other bits ({here} here)")
    if not recording and not kept:
        pytest.skip("nothing is recorded of this study")
    folder, jobs = smoke_of(slug), smoke.stage_jobs(slug)
    paths = [path for job in jobs for path in outputs(job) if not volatile(job, path)]
    found = {path.as_posix(): read_stamp(folder / path)[1] for path in paths}
    if recording:
        others = {path: total for path, total in record["sums"].items() if path not in kept}
        text = json.dumps({"kernels": here, "sums": others | found}, indent=1, sort_keys=True)
        RECORD.write_text(text + "\n")
    else:
        assert found == kept


def test_parameters_arrive_and_what_is_not_declared_is_refused(
    slug: str, stage: str, smoke_of: Smoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, job = smoke_of(slug), smoke.stage_jobs(slug, stage)[0]
    declared = study(slug).file.stages[stage]
    module, _, function = declared.function.partition(".")
    given: dict[str, Any] = {}

    def returning(results: dict[str, Any]) -> None:
        def fake(context: object, **arguments: object) -> dict[str, Any]:
            given.update(arguments)
            return results

        monkeypatch.setattr(importlib.import_module(f"restudy.studies.{slug}.{module}"), function, fake)

    results: dict[str, Any] = {path.stem: None for path in outputs(job)}
    results |= {p.stem: read_table(folder / p).to_pydict() for p in outputs(job) if p.suffix == ".parquet"}
    table = next((name for name in results if results[name] is not None), None)
    wrong = {"undeclared": results | {"another": {"seed": [0]}}}
    wrong["declared"] = {name: content for name, content in results.items() if name != outputs(job)[0].stem}
    if table is not None:
        columns = results[table]
        first, *rest = columns
        wrong["unknown column another"] = results | {table: columns | {"another": columns[first]}}
        wrong[f"no column {first}"] = results | {table: {name: columns[name] for name in rest}}
    for said, content in wrong.items():
        returning(content)
        with pytest.raises(RestudyError, match=said.replace("undeclared", "declared")) as refused:
            smoke.compute(job, folder, tmp_path)
        assert "\n" not in str(refused.value)
    shard = job.plan.shard(stage, job.shard)
    seeds = {"seeds": list(shard.seeds)} if shard.seeds is not None else {}
    assert given == job.plan.parameters(stage) | dict(shard.axes) | seeds


def test_statistics_and_nulls_work_on_the_results(slug: str, smoke_of: Smoke) -> None:
    """Example tables are made by hand: what stages return must fit statistics and planted nulls as well."""
    found, nulls = smoke.tables(slug, smoke_of(slug)), nulls_of(slug)
    for claim in claims_of(slug):
        names = named([claim])
        if not names or not {"smoke", "laptop"} & set(claim.presets):
            continue
        changed = nulls[claim.id](found) if claim.id in nulls else {}
        for name in names:
            function = lookup(statistics_of(slug), name)
            assert function is not None
            for tables in (found, changed) if changed else (found,):
                table = function(tables)
                assert {"replicate", "value"} <= set(table.column_names), f"{claim.id}: {name}"
                assert len(table) or tables is changed, f"{claim.id}: {name} finds nothing"

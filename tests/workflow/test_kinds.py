"""`numerics: portable` in a run, and kinds of machine from the shards to the lines that people read."""

from __future__ import annotations

import json
import platform
from dataclasses import replace

import pytest

from restudy.provenance.numerics import cpuinfo
from restudy.provenance.stamp import kernels_in, read_stamp, stamp_parquet
from restudy.results import read_table
from tests.conftest import Project

pytestmark = pytest.mark.workflow
OTHER = "Example 1/2, AVX9, L2 3 MiB, native"
SHARD = "results/{}/toy_one/shards/descend/{}/steps.{}"
PRESETS = """
plain: {inherits: smoke, seeds: 2}
mine: {inherits: smoke, numerics: portable}
"""
avx2 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or "avx2" not in cpuinfo().get("flags", "avx2"),
    reason="needs an x86-64 CPU with AVX2",
)


def recorded(project: Project, preset: str, seed: str = "s0") -> dict:
    return json.loads((project.root / SHARD.format(preset, seed, "run.json")).read_text())


def remake_elsewhere(project: Project, *names: str) -> None:
    """The same tables, as another kind of machine would have left them at smoke."""
    for name in names:
        path = project.root / SHARD.format("smoke", "s0", "parquet").replace("steps", name)
        facts, _ = read_stamp(path)
        path.write_bytes(stamp_parquet(read_table(path).replace_schema_metadata(None), replace(facts, kernels=[OTHER])))
        beside = path.with_suffix(".run.json")
        content = json.loads(beside.read_text())
        beside.write_text(json.dumps(content | {"kernels": content["kernels"] | {"name": OTHER}}))


@avx2
def test_portable_is_set_before_numpy_and_passes_for_no_native_result(toys: Project) -> None:
    (toys.root / "presets.yaml").write_text(PRESETS)
    native = recorded(toys, "smoke")["kernels"]
    assert native["numerics"] == "native" and native["name"].endswith(", native")
    toys.reproduce("mine", "--study", "toy_one")
    mine = recorded(toys, "mine")
    assert "taken_from" not in mine and mine["fingerprint"] != recorded(toys, "smoke")["fingerprint"]
    assert mine["kernels"]["name"] == native["name"].replace(", native", ", portable")
    assert mine["kernels"]["variables"]["MKL_CBWR"] == "COMPATIBLE"
    for table in ("steps", "verdicts"):
        assert kernels_in(toys.root / f"results/mine/toy_one/{table}.parquet") == [mine["kernels"]["name"]]
    assert "another kind" not in toys.restudy("status", "--preset", "mine", "--study", "toy_one")
    assert ", native -> " in toys.restudy("diff", "results/smoke/toy_one", "results/mine/toy_one")
    # One job by hand, as a cluster's node starts it.
    output = SHARD.format("mine", "s0", "parquet")
    before = (toys.root / output).read_bytes()
    (toys.root / output).unlink()
    toys.run("python", "-m", "restudy.stage", output, "--fp", mine["fingerprint"])
    assert (toys.root / output).read_bytes() == before


def test_kinds_reach_merged_tables_and_verdicts_and_are_named(toys: Project) -> None:
    (toys.root / "presets.yaml").write_text(PRESETS)
    here = recorded(toys, "smoke")["kernels"]["name"]
    assert "another kind" not in toys.restudy("status", "--preset", "smoke")
    remake_elsewhere(toys, "steps", "curves")
    said = f"made on another kind of machine: {OTHER} (2 files); this one: {here}"
    assert said in toys.restudy("status", "--preset", "smoke")
    assert said in toys.restudy("restore", "--preset", "smoke")
    # A job taken over keeps the name of the machine that computed it; the other seed is computed here.
    toys.reproduce("plain", "--study", "toy_one")
    assert recorded(toys, "plain")["taken_from"] == "smoke"
    assert recorded(toys, "plain")["kernels"]["name"] == OTHER
    assert kernels_in(toys.root / SHARD.format("plain", "s0", "parquet")) == [OTHER]
    assert kernels_in(toys.root / SHARD.format("plain", "s1", "parquet")) == [here]
    for table in ("steps", "curves", "verdicts"):
        assert kernels_in(toys.root / f"results/plain/toy_one/{table}.parquet") == sorted([OTHER, here])


def test_beside_recorded_verdicts(toys: Project) -> None:
    remake_elsewhere(toys, "steps", "curves")
    (toys.root / "README.md").write_text("")
    toys.restudy("showcase", "--preset", "smoke", "--study", "toy_one")
    content = json.loads((toys.root / "docs/verdicts/smoke.json").read_text())
    assert content["studies"]["toy_one"]["kernels"] == [OTHER]
    assert f"Kernels: {OTHER}." in (toys.root / "docs/verdicts/smoke.md").read_text()

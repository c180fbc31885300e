"""`--profile slurm` on a real cluster: slurmctld, slurmd and munged of this machine, started by cluster.sh."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Project

pytestmark = [pytest.mark.workflow, pytest.mark.server, pytest.mark.timeout(1800)]
PLUGIN = ROOT / ".venv" / "cluster"
SCRIPT = Path(__file__).with_name("cluster.sh")
# What a cluster's administrator sets by hand; this one has no accounting.
FLAGS = (
    *("--slurm-status-command", "squeue", "--slurm-no-account"),
    *("--default-resources", "slurm_partition=main", "mem_mb=300", "runtime=10"),
    *("--slurm-init-seconds-before-status-checks", "2", "--seconds-between-status-checks", "1"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A running cluster; its folder of logs."""
    if missing := [name for name in ("slurmctld", "slurmd", "munged", "runuser") if not shutil.which(name)]:
        pytest.skip(f"{', '.join(missing)} not installed (Debian: slurm-wlm, munge)")
    if not PLUGIN.is_dir():
        pytest.skip("Snakemake's SLURM plugin is not installed (`make cluster`)")
    if os.geteuid() != 0:
        pytest.skip("starting slurmd and munged needs root")
    folder = tmp_path_factory.mktemp("slurm")
    started = subprocess.run([SCRIPT, "start", folder], capture_output=True, text=True, timeout=120)
    try:
        if started.returncode:
            pytest.skip(f"SLURM does not start here: {started.stderr.strip()[-300:]}")
        yield folder
    finally:
        subprocess.run([SCRIPT, "stop", folder], capture_output=True, timeout=60)


def on_cluster(project: Project, *more: str, code: int = 0) -> str:
    # The plugin stands apart from the environment: it would cost every start of Snakemake an import of pandas.
    project.env["PYTHONPATH"] = f"{project.root / 'src'}{os.pathsep}{PLUGIN}"
    common = ("run", "--preset", "smoke", "--target", "verdicts", "--cores", "2", "--profile", "slurm")
    return project.restudy(*common, "--", *FLAGS, *more, code=code)


def test_a_cluster_gives_the_bytes_of_the_local_run(cluster: Path, toys: Project) -> None:
    local = toys.outputs("results/**/*")
    for name in ("results", "figures", "report", "work", ".snakemake"):
        shutil.rmtree(toys.root / name)
    said = on_cluster(toys)
    assert "toy_one_descend 1" in said and "toy_two_descend 1" in said
    assert toys.outputs("results/**/*") == local
    # The jobs of the stages, and only those, were jobs of the cluster.
    log = (cluster / "slurmctld.log").read_text()
    assert log.count("sched: Allocate") == 2, log


def test_a_failing_job_is_named_and_the_other_study_goes_on(cluster: Path, toys: Project) -> None:
    shutil.rmtree(toys.root / "results")
    source = toys.study("toy_one") / "experiment.py"
    text, loop = source.read_text(), "    for seed in seeds:"
    source.write_text(text.replace(loop, f"    raise ValueError('no such luck')\n{loop}", 1))
    said = on_cluster(toys, "--retries", "0", code=1)
    line = next(line for line in said.splitlines() if "FAILED" in line)
    assert "toy_one descend s0" in line and "no such luck" in line and "work/logs/smoke/toy_one/descend.s0.log" in line
    assert (toys.root / "results/smoke/toy_two/verdicts.parquet").is_file()

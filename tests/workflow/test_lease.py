"""One device a job, and the next job's device another one: no GPU is needed to see that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from restudy.bench.lease import devices, lease
from restudy.errors import RestudyError
from tests.conftest import Project
from tests.workflow.material import add

HOLDER = (
    "import sys, time, os; from restudy.bench.lease import lease\n"
    "with lease() as name:\n"
    "    print(name, os.environ['CUDA_VISIBLE_DEVICES'], flush=True)\n"
    "    sys.stdin.read()"
)


class Holder:
    """A process that holds a device until it is told to end."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDER],
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def device(self) -> str:
        assert self.process.stdout is not None
        name, visible = self.process.stdout.readline().split()
        assert name == visible
        return name

    def waits(self) -> bool:
        assert self.process.stderr is not None
        return "waiting for one of 2 devices" in self.process.stderr.readline()

    def end(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)
        self.process.communicate()


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    for name in ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RESTUDY_DEVICES", "card-a,card-b")
    monkeypatch.setenv("RESTUDY_LEASES", str(tmp_path / "leases"))
    yield dict(os.environ)


def test_two_get_two_the_third_waits_and_a_killed_holder_frees_its_device(environ: dict[str, str]) -> None:
    first, second = Holder(environ), Holder(environ)
    held = {first.device(), second.device()}
    assert held == {"card-a", "card-b"}
    third = Holder(environ)
    assert third.waits()
    first.end(signal.SIGKILL)
    freed = third.device()
    assert freed in held
    second.end()
    third.end()


def test_devices_come_from_the_user_first(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices() == ["card-a", "card-b"]
    monkeypatch.delenv("RESTUDY_DEVICES")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3, GPU-8f")
    assert devices() == ["3", "GPU-8f"]
    with lease() as name:
        assert name == os.environ["CUDA_VISIBLE_DEVICES"] == "3"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3, GPU-8f"
    for nothing in ("", "-1"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", nothing)
        assert devices() == []
        with pytest.raises(RestudyError, match="no CUDA device is visible; set RESTUDY_DEVICE=cpu"), lease():
            pass


def test_a_clusters_choice_is_taken(environ: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM numbers the devices of every job from 0: two jobs both see 0, and it is not the same card."""
    monkeypatch.setenv("SLURM_JOB_GPUS", "5")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with lease() as one, lease() as two:
        assert one == two == "0"


def test_a_folder_that_cannot_be_used_is_one_line(
    environ: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RESTUDY_LEASES", str(tmp_path / "file"))
    with pytest.raises(RestudyError, match="set RESTUDY_LEASES to a folder"), lease():
        pass


@pytest.mark.workflow
def test_jobs_of_a_run_get_different_devices(empty: Project, tmp_path: Path) -> None:
    """Three jobs on a machine of two devices: two at a time, each with a device of its own."""
    trace = tmp_path / "trace"
    line = "json.dumps([os.environ['CUDA_VISIBLE_DEVICES'], begin, time.time()])"
    add(empty, "toy", f"begin = time.time(); time.sleep(2); Path({str(trace)!r}).open('a').write({line} + '\\n')")
    study = empty.study("toy") / "study.yaml"
    study.write_text(study.read_text().replace("  smoke:\n    seeds: 1", "  smoke:\n    seeds: 3"))
    empty.env |= {"RESTUDY_DEVICE": "cuda", "RESTUDY_DEVICES": "card-a,card-b", "RESTUDY_LEASES": str(tmp_path / "l")}
    empty.restudy("run", "--preset", "smoke", "--cores", "3", "--profile", "gpu", "--target", "verdicts")
    spans = sorted((json.loads(text) for text in trace.read_text().splitlines()), key=lambda span: span[1])
    assert {span[0] for span in spans} == {"card-a", "card-b"} and len(spans) == 3
    for device in ("card-a", "card-b"):
        mine = [span for span in spans if span[0] == device]
        assert all(before[2] <= after[1] for before, after in zip(mine, mine[1:], strict=False))
    assert time.time() > spans[-1][2]

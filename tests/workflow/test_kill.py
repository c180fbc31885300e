"""A run that is killed at any moment goes on by the same command, and ends with the bytes of an undisturbed one."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.conftest import Project
from tests.workflow.material import STEPS, add_data, add_slow

pytestmark = [pytest.mark.workflow, pytest.mark.costly, pytest.mark.timeout(1800)]
KILLS = 21
RUN = (sys.executable, "-m", "restudy.cli", "run", "--preset", "smoke", "--cores", "2")


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """A process and all its descendants."""
    try:
        parent = psutil.Process(process.pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def signal_all(processes: list[psutil.Process], number: int) -> None:
    for one in processes:
        try:
            one.send_signal(number)
        except psutil.NoSuchProcess:
            continue


def is_job(process: psutil.Process) -> bool:
    """A job of a stage, its shell, or a process that it started."""
    try:
        return "restudy.stage" in " ".join(process.cmdline()) or "restudy.data" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def job_of(process: psutil.Process) -> str:
    """What a process of a job writes; empty where it is none."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return ""
    ours = len(words) > 3 and words[1] == "-m" and words[2] in ("restudy.stage", "restudy.data", "restudy.report")
    return " ".join(words[3:5] if words[2] == "restudy.data" else words[3:4]) if ours else ""


def wait_for_job(process: subprocess.Popen[str], seconds: float = 60) -> None:
    """Until a job runs, or the run is over."""
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end and not any(map(is_job, family(process))):
        time.sleep(0.05)


def kill(process: subprocess.Popen[str], how: str) -> None:
    """End a run in one of the ways in which runs end."""
    everybody = family(process)
    if how == "tree":  # power loss: nothing of it survives, nothing is told
        signal_all(everybody, signal.SIGKILL)
    elif how == "term":
        process.terminate()
    elif how == "ctrl-c":
        os.killpg(process.pid, signal.SIGINT)
    else:  # the scheduler alone: jobs live on as orphans
        signal_all([one for one in everybody if not is_job(one)], signal.SIGKILL)
    try:
        process.communicate(timeout=300)  # SIGTERM lets jobs end; a busy machine takes its time
    except subprocess.TimeoutExpired:
        signal_all(family(process), signal.SIGKILL)
        raise


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, bytes]]:
    """A project with a slow study that reads data, before its run, and what an undisturbed run gives."""
    from tests.conftest import copy_project

    project = copy_project(tmp_path_factory.mktemp("kill") / "project", studies=False)
    add_slow(project, "slow")
    add_data(project, "slow")
    project.reproduce()
    return project, project.outputs()


def start_over(project: Project) -> None:
    for name in ("results", "models", "figures", "report", "work", ".snakemake", "data"):
        subprocess.run(["rm", "-rf", str(project.root / name)], check=True)


def test_killed_at_random_moments(undisturbed: tuple[Project, dict[str, bytes]]) -> None:
    project, expected = undisturbed
    start_over(project)
    trace = project.root / "trace"
    project.env["TRACE"] = str(trace)
    generator = random.Random(4)
    ways = ["tree", "term", "ctrl-c", "orphans"] * 6
    done: list[str] = []
    finished = lost = 0
    while len(done) < KILLS:
        way, early = ways[len(done)], len(done) % 3 == 0
        process = project.start(*RUN)
        moment = generator.uniform(0.3, 5) if early else generator.uniform(0, 4)
        try:
            if not early:  # counted from the first job: the start of a run takes its time
                wait_for_job(process)
            process.communicate(timeout=moment)
            finished += 1  # before its moment came: lose something, so that there is work again
            victim = generator.choice(sorted(project.outputs()))
            (project.root / victim).unlink()
            lost += "/shards/" in victim  # a seed's result: all its steps are made again
        except subprocess.TimeoutExpired:
            during = ", ".join(sorted(filter(None, map(job_of, family(process))))) or "no job"
            kill(process, way)
            done.append(
                f"{'start' if early else 'first job'} + {moment:.2f} s {way} during {during}; exit {process.returncode}"
            )
    print(f"{len(done)} kills, {finished} runs were through before their moment:", *done, sep="\n  ")
    said = project.reproduce()
    assert project.outputs() == expected
    assert "nothing to be done" in project.reproduce(), said
    # Each seed's steps were made once, but for those between a checkpoint and the kill.
    steps = trace.read_text().splitlines()
    assert len(set(steps)) == 2 * STEPS
    assert len(steps) <= (2 + lost) * STEPS + 2 * KILLS


def wait_for(path: Path, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not path.exists() or not path.stat().st_size:
        assert time.monotonic() < end, f"{path} does not appear"
        time.sleep(0.1)


def test_ctrl_c_is_no_success(undisturbed: tuple[Project, dict[str, bytes]]) -> None:
    project, _ = undisturbed
    start_over(project)
    trace = project.root / "trace-three"
    project.env["TRACE"] = str(trace)
    process = project.start(*RUN, "--target", "verdicts")
    wait_for(trace)
    kill(process, "ctrl-c")
    assert process.returncode == 128 + signal.SIGINT


def test_a_second_run_is_refused_and_disturbs_nothing(undisturbed: tuple[Project, dict[str, bytes]]) -> None:
    project, expected = undisturbed
    start_over(project)
    trace = project.root / "trace-two"
    project.env["TRACE"] = str(trace)
    live = project.start(*RUN, "--target", "verdicts")
    wait_for(trace)
    said = project.reproduce(code=1)
    assert f"another run is live: `restudy run --preset smoke` (process {live.pid} on " in said
    assert "live run: " in project.restudy("status", "--preset", "smoke", code=1)
    # The wrapper dies, its scheduler lives: that still counts as a live run.
    os.kill(live.pid, signal.SIGKILL)
    assert "another run is live" in project.reproduce(code=1)
    live.communicate(timeout=120)
    results = project.outputs("results/**/*")
    assert results == {name: raw for name, raw in expected.items() if name.startswith("results/")}
    # A lock of Snakemake that a dead run left is proven stale by our own lock being free.
    locks = project.root / ".snakemake" / "locks"
    locks.mkdir(exist_ok=True)
    (locks / "0.output.lock").write_text("results/smoke/slow/steps.parquet\n")
    said = project.reproduce("smoke", "--target", "verdicts")
    assert "left Snakemake's lock behind" in said and "nothing to be done" in said

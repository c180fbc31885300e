"""What Snakemake and DVC do that the pipeline steps around: each test would notice if the tool changed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from restudy.bench import lock
from restudy.errors import RestudyError

pytestmark = pytest.mark.workflow
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
ENVIRON = os.environ | {"PATH": PATH}
NOTHING = "Nothing to be done"
RULES = """
import mine
rule all:
    input: "late", "out"
rule out:
    input: "in"
    output: "out"
    params: value=lambda w{more}: {value}
    shell: "test ! -e {{output}} && cp {{input}} {{output}}"
rule late:
    input: "out"
    output: "late"
    shell: "cp {{input}} {{output}}"
"""


@pytest.fixture
def flow(tmp_path: Path) -> Callable[..., str]:
    """A tiny workflow that has run; a call writes its rules and runs Snakemake dry, or with other options."""
    (tmp_path / "in").write_text("x")
    (tmp_path / "mine.py").write_text("A = 1\n")

    def snakemake(*options: str, more: str = "", value: str = "1") -> str:
        (tmp_path / "Snakefile").write_text(RULES.format(more=more, value=value))
        command = ["snakemake", "--cores", "1", "--rerun-triggers", "code", "params", "input", "software-env"]
        found = subprocess.run([*command, *options], cwd=tmp_path, env=ENVIRON, capture_output=True, text=True)
        return found.stdout + found.stderr

    return snakemake


def test_snakemake_params_and_imports(flow: Callable[..., str], tmp_path: Path) -> None:
    flow()
    assert "Params have changed" in flow("-n", value="2")
    # An edit in a module that the Snakefile imports is not seen: fingerprints stand in params.
    (tmp_path / "mine.py").write_text("A = 2\n")
    assert NOTHING in flow("-n")
    # A params function of anything but wildcards is not recorded, and no edit is seen (dag.fp takes wildcards only).
    flow("--forceall", more=", input", value="1")
    assert NOTHING in flow("-n", more=", input", value="2")


def test_snakemake_without_records_goes_by_time(flow: Callable[..., str], tmp_path: Path) -> None:
    flow()
    # Outputs are removed before a job starts (the rule tests for it): checkpoints lie elsewhere.
    assert "3 of 3 steps" in flow("--forceall") and (tmp_path / "out").is_file()
    # A lost intermediate is not made again while what is asked for is current: targets name every output.
    (tmp_path / "out").unlink()
    assert NOTHING in flow("-n", "late")
    flow()
    shutil.rmtree(tmp_path / ".snakemake")
    assert NOTHING in flow("-n", value="2"), "newer outputs are trusted: hence the guard and `restudy restore`"
    os.utime(tmp_path / "in", (time.time() + 9, time.time() + 9))
    assert NOTHING not in flow("-n")
    # Touching without --force leaves a current output unrecorded; with it, it is recorded, and later edits are seen.
    os.utime(tmp_path / "in", (1, 1))
    flow("--touch")
    assert NOTHING in flow("-n", value="2")
    flow("--touch", "--force", "out", "late")
    assert "Params have changed" in flow("-n", value="2")
    # --touch vouches for anything: it only ever follows a verification.
    (tmp_path / "out").write_text("something else")
    flow("--touch", "--force", "out", "late", value="3")
    assert NOTHING in flow("-n", value="3")


def test_a_killed_scheduler_leaves_its_lock_and_its_jobs(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(
        'rule all:\n    output: "out"\n    shell: "echo $$ > pid; sleep 5; touch {output}"\n'
    )
    process = subprocess.Popen(["snakemake", "--cores", "1"], cwd=tmp_path, env=ENVIRON, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not (tmp_path / "pid").exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert any((tmp_path / ".snakemake/locks").iterdir())
    pid = int((tmp_path / "pid").read_text())
    os.kill(pid, 0)  # it lives: hence a lock per job, which the next run waits for
    again = subprocess.run(["snakemake", "--cores", "1"], cwd=tmp_path, env=ENVIRON, capture_output=True, text=True)
    assert again.returncode and "cannot be locked" in again.stdout + again.stderr
    os.kill(pid, signal.SIGKILL)


DVC = """
stages:
  one:
    cmd: cp in out && echo ran >> ran
    params: [given.json: [key]]
    outs: [{out}]
"""


def dvc(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["dvc", *arguments], cwd=folder, env=ENVIRON, capture_output=True, text=True)


@pytest.mark.parametrize("persist", [False, True])
def test_dvc_run_cache_and_what_repro_deletes(tmp_path: Path, persist: bool) -> None:
    def given(value: int, content: str) -> None:
        (tmp_path / "given.json").write_text(f'{{"key": {value}}}')
        (tmp_path / "in").write_text(content)

    dvc(tmp_path, "init", "--no-scm")
    (tmp_path / "dvc.yaml").write_text(DVC.format(out="{out: {persist: true}}" if persist else "out"))
    for value in (1, 2, 1):
        given(value, str(value))
        assert dvc(tmp_path, "repro").returncode == 0
    # Going back is served by the run-cache, but not with `persist`, which switches it off.
    assert (tmp_path / "ran").read_text().count("ran") == (3 if persist else 2)
    if persist:
        return
    # An output that somebody else made and nobody committed is removed before the stage runs (hence work/kept).
    given(3, "3")
    (tmp_path / "out").write_text("made by Snakemake")
    (tmp_path / "dvc.yaml").write_text(DVC.format(out="out").replace("cp in out", "test ! -e out && cp in out"))
    assert dvc(tmp_path, "repro").returncode == 0 and (tmp_path / "out").read_text() == "3"


def test_dvc_aborts_on_a_lock_and_hard_links_let_writes_through(tmp_path: Path) -> None:
    dvc(tmp_path, "init", "--no-scm")
    dvc(tmp_path, "config", "cache.type", "hardlink")
    (tmp_path / "data").write_text("x" * 100)
    assert dvc(tmp_path, "add", "data").returncode == 0
    (stored,) = (tmp_path / ".dvc/cache/files/md5").glob("*/*")
    if os.geteuid() == 0:
        with (tmp_path / "data").open("a") as file:
            file.write("junk")
        assert stored.read_text().endswith("junk"), "a write went through into the cache: hence cache.type reflink,copy"
    (tmp_path / "dvc.yaml").write_text("stages: {slow: {cmd: touch started; sleep 30, outs: [out]}}\n")
    slow = subprocess.Popen(
        ["dvc", "repro"], cwd=tmp_path, env=ENVIRON, stdout=subprocess.DEVNULL, start_new_session=True
    )
    end = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < end:
        time.sleep(0.05)
    refused = dvc(tmp_path, "commit", "--force", "slow")
    os.killpg(slow.pid, signal.SIGKILL)
    slow.wait()
    assert refused.returncode, "DVC does not wait for its lock: never call it inside a rule"
    # A killed `dvc repro` leaves nothing that must be cleared by hand.
    (tmp_path / "dvc.yaml").write_text("stages: {slow: {cmd: touch out, outs: [out]}}\n")
    assert dvc(tmp_path, "repro").returncode == 0


def test_the_run_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lock.layout, "root", lambda: tmp_path)
    stale = tmp_path / ".snakemake/locks/0.output.lock"
    stale.parent.mkdir(parents=True)
    stale.touch()
    with lock.run_lock("restudy run --preset laptop") as descriptor:
        assert not stale.exists() and "removed" in capsys.readouterr().err
        assert "`restudy run --preset laptop` (process " in (lock.live() or "")
        said = r"another run is live: `restudy run --preset laptop` \(process \d+ on"
        with pytest.raises(RestudyError, match=said), lock.run_lock("another"):
            pass
        # A child that was handed the descriptor keeps the lock when its parent is gone.
        child = subprocess.Popen(["sleep", "30"], pass_fds=(descriptor,))
    assert lock.live()
    child.kill()
    child.wait()
    assert lock.live() is None


def test_a_network_file_system_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if Path("/proc/mounts").exists():
        assert lock.file_system(Path("/proc/sys")) == "proc"
    monkeypatch.setattr(lock, "file_system", lambda path: "nfs4")
    monkeypatch.setattr(lock.layout, "root", lambda: tmp_path)
    with lock.run_lock("x"):
        pass
    said = capsys.readouterr().err
    assert "network file system (nfs4)" in said and "keep the clone on a local disk" in said


def test_a_scheduler_that_hangs_on_sigterm_is_ended(tmp_path: Path) -> None:
    """As Snakemake does when the signal finds its main thread holding the lock that its handler takes."""
    hangs = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: None); print(1, flush=True)\n"
        "while True: time.sleep(9)"
    )
    script = (
        "import os, sys; from restudy.bench import scheduler; scheduler.POLL_SECONDS = 0.1\n"
        f"sys.exit(scheduler.run_scheduler([sys.executable, '-c', {hangs!r}], dict(os.environ), 0))"
    )
    environ = ENVIRON | {"RESTUDY_ROOT": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", script], env=environ, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"1\n"
    process.terminate()
    assert process.wait(timeout=60) == 143


def test_snakemake_takes_locks_in_its_handler_of_sigterm() -> None:
    """The reason for the above; when this fails, Snakemake has mended it."""
    import inspect

    from snakemake.scheduling.job_scheduler import JobScheduler

    assert "with self._lock" in inspect.getsource(JobScheduler.exit_gracefully)

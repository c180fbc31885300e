"""MLflow as a server over PostgreSQL, both started here; skipped with its reason where they cannot be."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from restudy.tracking.overhead import local_server
from tests.unit.tracking import tracking_material as material

pytestmark = pytest.mark.server
SLUGS = ("first", "second", "third")


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: int(p.parts[-3]))
    on_path = shutil.which("initdb")
    if not found and not on_path:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return found[-1].parent if found else Path(str(on_path)).parent


def _user() -> list[str]:
    """PostgreSQL refuses to run as root: the prefix that runs a command as another user."""
    if os.geteuid() != 0:
        return []
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            pwd.getpwnam(name)
            if shutil.which("runuser"):
                return ["runuser", "-u", name, "--"]
    pytest.skip("running as root without runuser and a user postgres")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A private cluster that listens on a unix socket only."""
    binaries, prefix = _binaries(), _user()
    made = subprocess.run([*prefix, "mktemp", "-d", "/tmp/restudy-pg.XXXXXX"], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no folder for PostgreSQL: {made.stderr.strip()}")
    folder = Path(made.stdout.strip())

    def run(*command: str) -> None:
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, cwd="/tmp")
        if done.returncode != 0:
            pytest.skip(f"PostgreSQL does not start: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")

    data = str(folder / "data")
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    try:
        run(str(binaries / "initdb"), "-D", data, "-U", "restudy", "-A", "trust", "-E", "UTF8", "--no-sync")
        run(str(binaries / "pg_ctl"), "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
        run(str(binaries / "createdb"), "-h", str(folder), "-U", "restudy", "mlflow")
        folder.chmod(0o755)
        yield f"postgresql://restudy@/mlflow?host={folder}"
    finally:
        stop = [*prefix, str(binaries / "pg_ctl"), "-D", data, "-m", "immediate", "stop"]
        subprocess.run(stop, capture_output=True, cwd="/tmp")
        subprocess.run([*prefix, "rm", "-rf", str(folder)], cwd="/tmp")


@pytest.fixture(scope="module")
def server(database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("psycopg2")
    with local_server(database, tmp_path_factory.mktemp("server")) as uri:
        yield uri


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "Snakefile").touch()
    for slug in SLUGS:
        material.write_study(tmp_path, slug)
        material.write_results(tmp_path, slug)
    return tmp_path


def _start(project: Path, uri: str, *slugs: str, **more: str) -> list[subprocess.Popen[str]]:
    env = material.environment(project, MLFLOW_TRACKING_URI=uri, MLFLOW_HTTP_REQUEST_TIMEOUT="60", **more)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return [subprocess.Popen(material.command(s, "smoke"), env=env, cwd=project, **pipes) for s in slugs]


def _finish(running: list[subprocess.Popen[str]]) -> None:
    said = [process.communicate(timeout=300) for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said


def _runs(uri: str, slug: str) -> list:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name(f"restudy/{slug}")
    return list(client.search_runs([experiment.experiment_id]))


def test_studies_at_once_killed_and_repeated(
    server: str, project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Three studies at once, one of them killed in the middle and one twice from a second clone."""
    other = tmp_path_factory.mktemp("clone")
    (other / "Snakefile").touch()
    material.write_study(other, "first")
    material.write_results(other, "first")
    running = _start(project, server, *SLUGS) + _start(other, server, "first")
    _kill_in_the_middle(running[2], server, "third")
    _finish([running[0], running[1], running[3]])
    running[2].communicate()
    _finish(_start(project, server, *SLUGS))
    for slug in SLUGS:
        runs = _runs(server, slug)
        told = [(r.info.run_name, r.info.status, r.data.tags.get("restudy.complete")) for r in runs]
        assert len(runs) == material.RUNS, (slug, sorted(told, key=str))
        assert set(material.counted(runs).values()) == {1}
        assert {r.data.tags.get("restudy.complete") for r in runs} == {"true"}
        parents = {r.info.run_id for r in runs if "mlflow.parentRunId" not in r.data.tags}
        assert {r.data.tags["mlflow.parentRunId"] for r in runs if r.info.run_id not in parents} == parents
    _check_curve_and_artifacts(server)


def _kill_in_the_middle(process: subprocess.Popen[str], uri: str, slug: str) -> None:
    from mlflow.exceptions import MlflowException

    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(MlflowException, AttributeError):
            if len(_runs(uri, slug)) >= 2:
                process.kill()
        time.sleep(0.05)


def _check_curve_and_artifacts(uri: str) -> None:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    runs = _runs(uri, "third")
    (child,) = [r for r in runs if r.info.run_name == "train mlp seed 1"]
    curve = client.get_metric_history(child.info.run_id, "training/loss_nats")
    assert [m.step for m in curve] == list(range(material.EPOCHS))
    (parent,) = [r for r in runs if "mlflow.parentRunId" not in r.data.tags]
    assert len(client.list_artifacts(parent.info.run_id, "figures")) == 4
    assert parent.inputs.dataset_inputs[0].dataset.digest == material.SUM[:36]


def test_live_curves_go_when_the_results_come(server: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from restudy.provenance.stamp import read_stamp
    from restudy.tracking import LiveCurves, live_key

    monkeypatch.setenv("RESTUDY_LIVE", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    material.write_study(project, "lively")
    material.write_results(project, "lively")
    shard = project / "results" / "smoke" / "lively" / "shards" / "train" / "cnn.s1" / "training.parquet"
    key = live_key("lively", "smoke", "train", "cnn.s1", read_stamp(shard)[0].fingerprint, 1)
    for attempt in range(2):  # a killed training goes on with the same run
        with LiveCurves(key, seconds=0.2, epochs=3) as curves:
            for step in range(attempt * 10, attempt * 10 + 10):
                curves.log(step, loss_nats=1.0)
            deadline = time.monotonic() + 60  # the first requests of a cold server on a busy machine take long
            while curves.on and curves.sent < 10 and time.monotonic() < deadline:
                time.sleep(0.1)
        assert (curves.sent, curves.dropped) == (10, 0)
    (live,) = _runs(server, "lively")
    assert live.data.metrics == {"loss_nats": 1.0}
    assert live.data.params == {"epochs": "3"}
    _finish(_start(project, server, "lively"))
    assert live.info.run_id not in {r.info.run_id for r in _runs(server, "lively")}
    assert len(_runs(server, "lively")) == material.RUNS


def test_live_curves_cost_under_two_percent(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from restudy.tracking.overhead import benchmark

    monkeypatch.setenv("RESTUDY_LIVE", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server)
    found = benchmark(12, step_ms=5)
    assert found.sent > 0
    assert found.ratio < 0.02


def test_server_dying_in_the_middle_costs_seconds(project: Path, tmp_path: Path) -> None:
    """The server goes away during an ingest: one warning line, and the next one finishes the work."""
    (tmp_path / "s").mkdir()
    backend = f"sqlite:///{tmp_path}/s/mlflow.db"
    with local_server(backend, tmp_path / "s") as uri:
        env = material.environment(project, MLFLOW_TRACKING_URI=uri)
        arguments = material.command("second", "smoke", "--warn")
        process = subprocess.Popen(arguments, env=env, cwd=project, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(Exception):
                if len(_runs(uri, "second")) >= 2:
                    break
            time.sleep(0.05)
    gone = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - gone < 30
    assert process.returncode == 0
    assert said.count("\n") == 1, said
    assert said.startswith("restudy: warning: second at smoke not in MLflow (")
    with local_server(backend, tmp_path / "s") as uri:
        _finish(_start(project, uri, "second"))
        assert len(_runs(uri, "second")) == material.RUNS

from __future__ import annotations

import contextlib
import json
import multiprocessing
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from restudy.tracking import ingest, ingest_or_warn, ingest_pending, ingesting, pending
from restudy.tracking.address import shown
from tests.unit.tracking import tracking_material as material

LIMIT_SECONDS = 15


def one_warning(capfd: pytest.CaptureFixture[str], *words: str) -> None:
    out, err = capfd.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("restudy: warning: made_up at smoke not in MLflow (")
    assert all(word in err for word in words), err


def test_importing_and_looking_imports_no_mlflow(project: Path) -> None:
    code = (
        "import sys, restudy.tracking, restudy.tracking.live, restudy.tracking.ui; "
        "from restudy.tracking import pending, LiveCurves, ingest_pending; "
        "assert pending(['made_up', 'unknown'], 'smoke') == ['made_up']; "
        "LiveCurves('made_up/smoke/train').log(0, loss=1.0); "
        "assert not {'mlflow', 'torch', 'pandas'} & set(sys.modules), 'imported'"
    )
    subprocess.run([sys.executable, "-c", code], env=material.environment(project), check=True)


def test_marker_makes_a_second_look_cheap(ready: Path) -> None:
    assert ingest_or_warn("made_up", "smoke") is not None
    content = json.loads((ready / "work" / "tracking" / "smoke" / "made_up.json").read_text())
    assert set(content) == {"uri", "fingerprint"}
    assert pending(["made_up"], "smoke") == []
    assert pending(["made_up"], "smoke", "http://127.0.0.1:9") == ["made_up"]
    assert ingest_pending(["made_up"], "smoke") == []
    (ready / "mlflow.db").unlink()
    assert pending(["made_up"], "smoke") == ["made_up"]


@pytest.mark.parametrize("kind", ["refused", "silent", "postgresql", "unknown"])
def test_unreachable_server_costs_seconds_and_one_line(
    project: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        if kind != "silent":
            listening.close()
        scheme = "postgresql://me:secret@" if kind == "postgresql" else "http://"
        uri = "nonsense://here" if kind == "unknown" else f"{scheme}127.0.0.1:{port}"
        started = time.monotonic()
        assert ingest_or_warn("made_up", "smoke", uri=uri) is None
        assert time.monotonic() - started < LIMIT_SECONDS
    one_warning(capfd)
    assert pending(["made_up"], "smoke", uri) == ["made_up"]


def test_locked_database_before(ready: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(sqlite3.connect(ready / "mlflow.db", isolation_level=None)) as base:
        base.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        assert ingest_or_warn("made_up", "smoke") is None
        assert time.monotonic() - started < LIMIT_SECONDS
    one_warning(capfd, "locked")
    assert ingest_or_warn("made_up", "smoke") is not None


def test_dying_in_the_middle(ready: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from mlflow.tracking import MlflowClient

    real, calls = MlflowClient.log_batch, []

    def dies(self, *arguments, **more):
        calls.append(1)
        if len(calls) > 4:
            raise ConnectionError("the server has gone\nsecond line")
        return real(self, *arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr(MlflowClient, "log_batch", dies)
        assert ingest_or_warn("made_up", "smoke") is None
    one_warning(capfd, "the server has gone")
    done = ingest_or_warn("made_up", "smoke")
    assert done is not None
    assert done.finished >= 1
    assert material.rows(ready, "runs") == material.RUNS


def test_broken_database_and_folder(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (project / "mlflow.db").write_bytes(b"this is no database at all" * 100)
    assert ingest_or_warn("made_up", "smoke") is None
    one_warning(capfd, "not a database")
    (project / "mlflow.db").unlink()
    (project / "mlflow.db").mkdir()
    assert ingest_or_warn("made_up", "smoke") is None
    one_warning(capfd)


def test_mlflow_absent(ready: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    assert ingest_or_warn("made_up", "smoke") is None
    one_warning(capfd, "make setup")


def test_four_processes_make_the_database_together(project: Path, template: Path) -> None:
    """Forked, so that mlflow is imported once; tests/server has processes of their own."""
    for slug in ("second", "third"):
        material.write_study(project, slug)
        material.write_results(project, slug)
    context = multiprocessing.get_context("fork")
    jobs = ["made_up", "made_up", "second", "third"]
    running = [context.Process(target=ingest, args=(slug, "smoke")) for slug in jobs]
    for process in running:
        process.start()
    for process in running:
        process.join(120)
    assert [process.exitcode for process in running] == [0] * 4
    assert material.rows(project, "runs") == 3 * material.RUNS
    assert material.rows(project, "experiments") == 4  # MLflow's Default among them
    assert not (project / "mlflow.db.draft").exists()
    assert sorted(p.name for p in (project / "mlruns").iterdir()) == ["made_up", "second", "third"]


def test_process_of_its_own_with_a_limit(
    ready: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "LIMIT_SECONDS", 0.2)
    assert ingest_pending(["made_up", "unknown"], "smoke") == ["made_up"]
    assert capfd.readouterr().err.startswith("restudy: warning: 1 studies at smoke not in MLflow (no answer within")
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        uri = f"http://127.0.0.1:{free.getsockname()[1]}"
    monkeypatch.setattr(ingesting, "LIMIT_SECONDS", 60)
    assert ingest_pending(["made_up"], "smoke", uri=uri) == ["made_up"]
    one_warning(capfd, "refused")


def test_passwords_are_not_shown() -> None:
    assert shown("postgresql://me:secret@host:5432/db?x=y") == "postgresql://me@host:5432/db"
    assert shown("sqlite:////a/b@c.db") == "sqlite:////a/b@c.db"

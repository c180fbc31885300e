"""What live curves cost a training, measured against a real server."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from restudy.tracking.address import SETTINGS, TrackingError
from restudy.tracking.live import LiveCurves, enabled
from restudy.tracking.ui import server_command

START_SECONDS = 90.0


@dataclass(frozen=True)
class Overhead:
    """What live curves cost: `ratio` is time in `log` plus CPU time of the sending thread, over training time."""

    steps: int
    training_seconds: float
    cost_seconds: float
    ratio: float
    sent: int
    dropped: int


def benchmark(seconds: float = 20.0, *, step_ms: float = 10.0, values: int = 2) -> Overhead:
    """Log `values` numbers at every step of a made-up training; starts a server where none is configured.

    Args:
        seconds: length of the training.
        step_ms: computing time of one step.
        values: metrics logged a step.

    Raises:
        TrackingError: the server does not come up.
    """
    if enabled():
        return _measure(seconds, step_ms, values)
    with tempfile.TemporaryDirectory() as folder, local_server(f"sqlite:///{folder}/mlflow.db", Path(folder)) as uri:
        saved = {name: os.environ.get(name) for name in ("RESTUDY_LIVE", "MLFLOW_TRACKING_URI")}
        os.environ |= {"RESTUDY_LIVE": "1", "MLFLOW_TRACKING_URI": uri}
        try:
            return _measure(seconds, step_ms, values)
        finally:
            for name, value in saved.items():
                os.environ.pop(name) if value is None else os.environ.update({name: value})


@contextmanager
def local_server(backend: str, folder: Path) -> Iterator[str]:
    """An `mlflow server` on loopback with artifacts in a folder, while the block lasts; its address.

    Raises:
        TrackingError: it does not come up.
    """
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    command = [*server_command(backend, port=port), "--artifacts-destination", (folder / "artifacts").as_uri()]
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=os.environ | SETTINGS, cwd=folder, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait(server, f"http://127.0.0.1:{port}", folder / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        _end(server)


def _measure(seconds: float, step_ms: float, values: int) -> Overhead:
    key, names = f"benchmark/none/train/{time.time_ns()}", [f"value_{i}" for i in range(values)]
    live, began, step = LiveCurves(key), time.perf_counter(), 0
    while (now := time.perf_counter()) - began < seconds:
        total = 0.0
        while time.perf_counter() - now < step_ms / 1000:
            total += sum(range(1000))
        live.log(step, **dict.fromkeys(names, total))
        step += 1
    trained = time.perf_counter() - began
    live.close()
    return Overhead(step, trained, live.cost_seconds, live.cost_seconds / trained, live.sent, live.dropped)


def _wait(server: subprocess.Popen[bytes], uri: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{uri}/health", timeout=2):
            return
        time.sleep(0.3)
    text = log.read_text(errors="replace").strip().splitlines()
    raise TrackingError(f"the server did not come up ({text[-1] if text else 'no output'})", where=uri)


def _end(server: subprocess.Popen[bytes]) -> None:
    """End a server that we started, with its workers."""
    for signal in (15, 9):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(10)
            return

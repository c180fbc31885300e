from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from restudy.tracking import LiveCurves, live_key

KEY = live_key("made_up", "smoke", "train", "cnn.s1", "abc", 1)


class Stub(ThreadingHTTPServer):
    """Answers like MLflow's REST interface, and remembers."""

    daemon_threads = True

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict]] = []
        self.fail = False
        super().__init__(("127.0.0.1", 0), _Handler)

    def metrics(self) -> list[dict]:
        return [m for path, body in self.calls if path == "runs/log-batch" for m in body.get("metrics", [])]


class _Handler(BaseHTTPRequestHandler):
    server: Stub

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        path = self.path.removeprefix("/api/2.0/mlflow/")
        self.server.calls.append((path, body))
        answers = {"experiments/create": {"experiment_id": "7"}, "runs/create": {"run": {"info": {"run_id": "r1"}}}}
        self.send_response(500 if self.server.fail else 200)
        self.end_headers()
        self.wfile.write(json.dumps(answers.get(path, {})).encode())

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    server = Stub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("RESTUDY_LIVE", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.server_address[1]}")
    yield server
    server.shutdown()
    server.server_close()


def test_off_unless_asked_for_and_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for live, uri in ((None, "http://127.0.0.1:9"), ("1", None), ("1", "sqlite:///x.db"), ("0", "http://127.0.0.1:9")):
        for name, value in (("RESTUDY_LIVE", live), ("MLFLOW_TRACKING_URI", uri)):
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        before = threading.active_count()
        with LiveCurves(KEY) as curves:
            curves.log(0, loss=1.0)
            assert not curves.on
            assert threading.active_count() == before


def test_points_arrive_in_batches(stub: Stub) -> None:
    class Tensor:
        def detach(self) -> float:
            return 0.5

    with LiveCurves(KEY, seconds=0.1, epochs=3) as curves:
        for step in range(200):
            curves.log(step, loss_nats=1.0 / (step + 1), accuracy=Tensor())
            curves.log(step, bad="word", infinite=float("inf"))
    assert (curves.sent, curves.dropped) == (400, 400)
    found = stub.metrics()
    assert {m["key"] for m in found} == {"loss_nats", "accuracy"}
    assert sorted(m["step"] for m in found if m["key"] == "accuracy") == list(range(200))
    created = dict(stub.calls)["runs/create"]
    assert {"key": "restudy.live_key", "value": KEY} in created["tags"]
    assert stub.calls[-1] == ("runs/update", stub.calls[-1][1] | {"status": "FINISHED"})
    assert sum(path == "runs/create" for path, _ in stub.calls) == 1


def test_a_flood_is_thinned_to_one_batch(stub: Stub) -> None:
    with LiveCurves(KEY, seconds=60) as curves:
        for step in range(20_000):
            curves.log(step, loss=0.0)
    assert len(stub.metrics()) == curves.sent <= 1000
    assert curves.sent + curves.dropped == 20_000


def test_a_server_that_fails_ends_the_curves_not_the_training(stub: Stub) -> None:
    stub.fail = True
    curves = LiveCurves(KEY, seconds=0.02)
    deadline = time.monotonic() + 10
    while curves.on and time.monotonic() < deadline:
        curves.log(0, loss=1.0)
        time.sleep(0.01)
    assert not curves.on
    began = time.monotonic()
    curves.close()
    assert time.monotonic() - began < 1
    assert curves.sent == 0


def test_nobody_there_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTUDY_LIVE", "1")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    began = time.monotonic()
    with LiveCurves(KEY) as curves:
        curves.log(0, loss=1.0)
    assert time.monotonic() - began < 5
    assert curves.dropped == 1

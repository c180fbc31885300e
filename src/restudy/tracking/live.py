"""Live curves during long training, where a server is configured: buffered, batched, never fatal.

Off unless `RESTUDY_LIVE=1` and `MLFLOW_TRACKING_URI` names an http(s) server; then `log` costs an append to a list, and
a thread sends what has gathered every few seconds over MLflow's REST interface. The standard library only: mlflow is
not imported into a training process. No result depends on it: nothing can be read back, nothing raises, and when the
server is slow or gone, points are dropped.
"""

from __future__ import annotations

import base64
import json
import math
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from types import TracebackType
from typing import Any

SECONDS_BETWEEN = 5.0
TIMEOUT_SECONDS = 10.0  # of one request; only the sending thread waits
CLOSE_SECONDS = 6.0  # the most that the end of a training waits for it
POINTS_PER_BATCH = 1000
MOST_WAITING = 100_000  # points kept while the server is slow; further ones are dropped
MOST_FAILURES = 3  # in a row, then the curves of this run end


class LiveCurves:
    """The live curves of one training, by its key (see `live_key`).

    ::

        with LiveCurves(live_key(study, preset, "train", job, fingerprint, seed=3), epochs=5) as live:
            for step in range(steps):
                ...
                live.log(step, loss_nats=loss)

    A killed training goes on with the same live run. The ingest of the stored results replaces it.

    Attributes:
        sent: points that the server has taken, at most a batch each time.
        dropped: points left out to fit a batch, not finite, or given up.
        cost_seconds: time spent in `log` and CPU time of the sending thread, so far.
    """

    def __init__(self, key: str, *, seconds: float = SECONDS_BETWEEN, **params: object) -> None:
        self.key, self.sent, self.dropped, self.cost_seconds = key.replace("'", "_"), 0, 0, 0.0
        self._seconds, self._params = seconds, {name: str(value)[:500] for name, value in params.items()}
        self._waiting: list[dict[str, Any]] = []
        self._done = threading.Event()
        self._thread: threading.Thread | None = None
        if enabled():
            self._thread = threading.Thread(target=self._work, name="restudy-live", daemon=True)
            self._thread.start()

    @property
    def on(self) -> bool:
        """Whether anything is being sent."""
        return self._thread is not None and not self._done.is_set()

    def log(self, step: int, **values: Any) -> None:
        """Note values (numbers or scalar tensors) at a step; returns at once and never raises."""
        if self._thread is None or self._done.is_set():
            return
        began = time.perf_counter()
        if len(self._waiting) + len(values) > MOST_WAITING:
            self.dropped += len(values)
            return
        now = int(time.time() * 1000)
        for name, value in values.items():
            # A tensor is turned into a number by the thread, for it may be on a device; its graph is let go.
            value = value.detach() if hasattr(value, "detach") else value
            self._waiting.append({"key": name, "value": value, "timestamp": now, "step": step})
        self.cost_seconds += time.perf_counter() - began

    def close(self) -> None:
        """Send what is left, waiting a few seconds at most."""
        self._done.set()
        if self._thread is not None:
            self._thread.join(CLOSE_SECONDS)

    def __enter__(self) -> LiveCurves:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _work(self) -> None:
        failures, run = 0, ""
        while True:
            last = self._done.wait(self._seconds)
            began, taken = time.thread_time(), len(self._waiting)
            try:
                run = run or self._run()
                batch = _thinned(self._waiting[:taken])
                if batch:
                    _post("runs/log-batch", {"run_id": run, "metrics": batch})
                del self._waiting[:taken]
                self.sent, self.dropped, failures = self.sent + len(batch), self.dropped + taken - len(batch), 0
                if last:
                    _post("runs/update", {"run_id": run, "status": "FINISHED", "end_time": int(time.time() * 1000)})
            except Exception:  # whatever it is, training goes on
                failures += 1
            self.cost_seconds += time.thread_time() - began
            if last or failures >= MOST_FAILURES:
                self.dropped += len(self._waiting)
                self._done.set()
                return

    def _run(self) -> str:
        """The id of this key's live run: that of a killed attempt where there is one."""
        study, _, rest = self.key.partition("/")
        experiment = _experiment(f"restudy/{study}")
        query = {"experiment_ids": [experiment], "filter": f"tags.`restudy.live_key` = '{self.key}'", "max_results": 1}
        if runs := _post("runs/search", query).get("runs"):
            return str(runs[0]["info"]["run_id"])
        tags = {"restudy.live": "true", "restudy.live_key": self.key, "restudy.study": study}
        tags |= {"restudy.preset": rest.partition("/")[0], "mlflow.user": "restudy"}
        made = _post(
            "runs/create",
            {
                "experiment_id": experiment,
                "run_name": f"live {rest}"[:250],
                "start_time": int(time.time() * 1000),
                "tags": [{"key": k, "value": v} for k, v in tags.items()],
            },
        )
        run = str(made["run"]["info"]["run_id"])
        if self._params:
            _post(
                "runs/log-batch", {"run_id": run, "params": [{"key": k, "value": v} for k, v in self._params.items()]}
            )
        return run


def live_key(study: str, preset: str, stage: str, job: str, fingerprint: str, seed: int | None = None) -> str:
    """The key of a training: that of the run which the ingest makes of its stored results."""
    return "/".join([study, preset, stage, job, *([] if seed is None else [f"seed{seed}"]), fingerprint])


def enabled() -> bool:
    """Whether live curves are asked for and a server is named."""
    uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    return os.environ.get("RESTUDY_LIVE") == "1" and uri.startswith(("http://", "https://"))


def _experiment(name: str) -> str:
    try:
        kind = {"key": "mlflow.experimentKind", "value": "custom_model_development"}
        return str(_post("experiments/create", {"name": name, "tags": [kind]})["experiment_id"])
    except urllib.error.HTTPError:
        query = urllib.parse.urlencode({"experiment_name": name})
        return str(_post(f"experiments/get-by-name?{query}", None)["experiment"]["experiment_id"])


def _post(path: str, content: dict[str, Any] | None) -> dict[str, Any]:
    """One REST call; GET where there is no content."""
    data = None if content is None else json.dumps(content).encode()
    address = f"{os.environ['MLFLOW_TRACKING_URI'].rstrip('/')}/api/2.0/mlflow/{path}"
    request = urllib.request.Request(address, data, {"Content-Type": "application/json", **_credentials()})
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
        found = json.loads(answer.read() or b"{}")
    return found if isinstance(found, dict) else {}


def _credentials() -> dict[str, str]:
    """What MLflow's own client reads: a token, or a user name and password."""
    if token := os.environ.get("MLFLOW_TRACKING_TOKEN"):
        return {"Authorization": f"Bearer {token}"}
    if user := os.environ.get("MLFLOW_TRACKING_USERNAME"):
        pair = f"{user}:{os.environ.get('MLFLOW_TRACKING_PASSWORD', '')}"
        return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}


def _thinned(waiting: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most one batch: of each metric every k-th point, as JSON can hold it."""
    stride = -(-len(waiting) // POINTS_PER_BATCH)
    seen: dict[str, int] = {}
    batch = []
    for point in waiting:
        at = seen[point["key"]] = seen.get(point["key"], -1) + 1
        if at % stride == 0 and (plain := _plain(point)):
            batch.append(plain)
    return batch[:POINTS_PER_BATCH]


def _plain(point: dict[str, Any]) -> dict[str, Any] | None:
    """A point with a float and an integer step; None where the value is not a finite number."""
    try:
        value, step = float(point["value"]), int(point["step"])
    except (TypeError, ValueError, RuntimeError):
        return None
    return point | {"value": value, "step": step} if math.isfinite(value) else None

"""Where the runs go, and whether anybody answers there. The standard library only: no mlflow import."""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from restudy import layout
from restudy.errors import RestudyError

PROBE_SECONDS = 3.0
# A dead server costs seconds, not the minutes of MLflow's defaults. What the user has set stays.
SETTINGS = {
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "5",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_DISABLE_AGENT_HINT": "true",
    "DO_NOT_TRACK": "true",
}
_PORTS = {"http": 80, "https": 443, "postgresql": 5432, "mysql": 3306, "mssql": 1433}


class TrackingError(RestudyError):
    """MLflow is absent, down, locked, or refused something. Never a reason to stop a run."""


def default_uri() -> str:
    """The sqlite database `mlflow.db` in the project's root."""
    return f"sqlite:///{layout.root() / 'mlflow.db'}"


def tracking_uri(uri: str | None = None) -> str:
    """The address in force: the argument, else `MLFLOW_TRACKING_URI`, else the sqlite default."""
    return uri or os.environ.get("MLFLOW_TRACKING_URI") or default_uri()


def shown(uri: str) -> str:
    """The address without a password or token, for messages and markers."""
    parts = urlsplit(uri)
    if "@" not in parts.netloc:
        return uri
    user, _, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{user.partition(':')[0]}@{host}", query=""))


def sqlite_path(uri: str) -> Path | None:
    """The file of a sqlite address; None for other addresses."""
    return Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None


def artifact_root(uri: str) -> Path | None:
    """Where artifacts go: `mlruns` in the project's root, or None where a server decides."""
    return None if uri.startswith(("http:", "https:", "databricks")) else layout.root() / "mlruns"


def settle_environment() -> None:
    """Short timeouts, few retries, no telemetry; to be called before mlflow is imported."""
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)


def probe(uri: str) -> None:
    """Return when something answers at the address, within a few seconds.

    Raises:
        TrackingError: nobody answers, or the database is locked or cannot be written.
    """
    parts = urlsplit(uri)
    path = sqlite_path(uri)
    try:
        if path is not None:
            _probe_sqlite(path)
        elif parts.scheme in ("http", "https"):
            _probe_http(uri)
        elif parts.hostname:
            port = parts.port or _PORTS.get(parts.scheme.partition("+")[0])
            if port:
                socket.create_connection((parts.hostname, port), timeout=PROBE_SECONDS).close()
    except (OSError, sqlite3.Error, ValueError) as error:
        reason = str(getattr(error, "reason", "") or getattr(error, "strerror", "") or error)
        raise TrackingError(reason.splitlines()[0], where=shown(uri)) from None


def _probe_http(uri: str) -> None:
    request = urllib.request.Request(f"{uri.rstrip('/')}/health")
    with contextlib.suppress(urllib.error.HTTPError):  # it answers; MLflow will say what it thinks of us
        urllib.request.urlopen(request, timeout=PROBE_SECONDS).close()


def _probe_sqlite(path: Path) -> None:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not os.access(path.parent, os.W_OK):
            raise OSError(13, f"cannot write into {path.parent}")
        return
    with contextlib.closing(sqlite3.connect(path, timeout=PROBE_SECONDS, isolation_level=None)) as base:
        base.execute("BEGIN IMMEDIATE")
        base.execute("ROLLBACK")

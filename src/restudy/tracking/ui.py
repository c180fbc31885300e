"""The command behind `make ui`: MLflow's user interface over the sqlite default, on loopback."""

from __future__ import annotations

import sys

from restudy import layout
from restudy.tracking.address import TrackingError, settle_environment, shown, tracking_uri


def command(uri: str | None = None, *, port: int = 5000) -> list[str]:
    """The command that serves MLflow's user interface; the database is made first where it is missing.

    Raises:
        TrackingError: the address is a server already (open it in a browser), or the database is locked.
    """
    address = tracking_uri(uri)
    if address.startswith(("http:", "https:")):
        raise TrackingError("is a server already", where=shown(address), remedy="open it in a browser")
    from restudy.tracking.store import prepare_database

    prepare_database(address)
    settle_environment()
    return [*server_command(address, port=port), "--default-artifact-root", (layout.root() / "mlruns").as_uri()]


def server_command(backend: str, *, port: int) -> list[str]:
    """An MLflow server over a database, one worker, on loopback only."""
    place = ["--host", "127.0.0.1", "--port", str(port), "--workers", "1"]
    return [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", backend, *place]

"""MLflow's client with its database made once, under a lock. The only module that imports mlflow."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock, Timeout

from restudy import layout
from restudy.tracking.address import (
    TrackingError,
    artifact_root,
    probe,
    settle_environment,
    shown,
    sqlite_path,
    tracking_uri,
)

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

EXPERIMENT_TAGS = {"mlflow.experimentKind": "custom_model_development"}  # else it opens as a page of chat traces
LOCK_SECONDS = 60.0
RETRIES = 2  # MLflow's own ten attempts at a database that does not open take minutes
_NOISY = ("mlflow", "alembic", "urllib3")


def client(uri: str) -> MlflowClient:
    """A client for an address where something answers; a database that does not exist yet is made first.

    Raises:
        TrackingError: nobody answers, the database is locked, or mlflow is not installed.
    """
    probe(uri)
    settle_environment()
    try:
        from mlflow.store.db import utils
        from mlflow.tracking import MlflowClient
    except ImportError as error:
        raise TrackingError(str(error), where="mlflow", remedy="run `make setup`") from None
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    with contextlib.suppress(AttributeError):
        utils.MAX_RETRY_COUNT = min(utils.MAX_RETRY_COUNT, RETRIES)
    if artifact_root(uri) is not None:
        with _held(_database_lock(uri)):
            path = sqlite_path(uri)
            if path is not None and not path.exists():
                _make_sqlite(path)
            _open(uri)
    return MlflowClient(tracking_uri=uri, registry_uri=uri)


def prepare_database(uri: str | None = None) -> None:
    """Make the database of an address where it is missing.

    Raises:
        TrackingError: as in `client`.
    """
    client(tracking_uri(uri))


def experiment(found: MlflowClient, uri: str, study: str) -> str:
    """The id of the experiment `restudy/<study>`, made where it is missing."""
    from mlflow.exceptions import MlflowException

    name, root = f"restudy/{study}", artifact_root(uri)
    known = found.get_experiment_by_name(name)
    if known is None:
        location = None if root is None else (root / study).as_uri()
        try:
            return str(
                found.create_experiment(
                    name, artifact_location=location, tags=EXPERIMENT_TAGS | {"restudy.study": study}
                )
            )
        except MlflowException:  # another process made it meanwhile
            known = found.get_experiment_by_name(name)
            if known is None:
                raise
    if known.lifecycle_stage == "deleted":
        found.restore_experiment(known.experiment_id)
    return str(known.experiment_id)


@contextmanager
def study_lock(study: str, preset: str) -> Iterator[None]:
    """One ingest of a study and preset at a time in this clone."""
    with _held(layout.work("locks", "tracking", preset, study)):
        yield


def _make_sqlite(path: Path) -> None:
    """Make the database under another name, so that a killed first time leaves no half-migrated one."""
    draft = path.with_name(f"{path.name}.draft")
    draft.unlink(missing_ok=True)
    _open(f"sqlite:///{draft}")
    draft.replace(path)


def _open(uri: str) -> None:
    from mlflow.tracking import MlflowClient

    MlflowClient(tracking_uri=uri, registry_uri=uri).search_experiments(max_results=1)


def _database_lock(uri: str) -> Path:
    path = sqlite_path(uri)
    return layout.work("locks", "mlflow") if path is None else path.with_name(f"{path.name}.lock")


@contextmanager
def _held(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path, timeout=LOCK_SECONDS):
            yield
    except Timeout:
        raise TrackingError("another ingest holds the lock", where=shown(str(path)), remedy="try again later") from None


def reason(error: BaseException) -> str:
    """The first telling line of an error, without the password of an address."""
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
    return re.sub(r"(://[^/\s:@]*):[^/\s@]*@", r"\1@", text)[:300]

"""Stored results into MLflow: idempotent, finished after a kill, and never a reason to stop a run."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restudy import layout
from restudy.tracking.address import TrackingError, shown, tracking_uri
from restudy.tracking.marker import pending, remember
from restudy.tracking.store import client, experiment, reason, study_lock
from restudy.tracking.stored import Stored, read_stored

if TYPE_CHECKING:
    from mlflow.tracking import MlflowClient

    from restudy.tracking.writer import Counts

ATTEMPTS = 6
# What MLflow says where two clones write the same at once; the last one: the other clone has removed our twin.
CONFLICTS = (
    *("UniqueViolation", "UNIQUE constraint", "RESOURCE_ALREADY_EXISTS", "Duplicate entry"),
    "must be in the 'active' state",
)
LIMIT_SECONDS = 120.0  # and a quarter of it more for every further study


@dataclass(frozen=True)
class Ingested:
    """What an ingest did: runs created, finished after a kill, left as they were, and marked superseded."""

    study: str
    preset: str
    uri: str
    run_id: str
    created: int
    finished: int
    unchanged: int
    superseded: int
    seconds: float


def ingest(
    study: str, preset: str, *, uri: str | None = None, after: Callable[[str], None] = lambda step: None
) -> Ingested:
    """Put the stored results of a study at a preset into MLflow; doing it again doubles nothing.

    Args:
        study: slug.
        preset: preset.
        uri: tracking address; default as in `tracking_uri`.
        after: called after every step that wrote something (for tests that die there).

    Raises:
        ResultError: no stored verdicts, or a file is cut short or tampered with.
        TrackingError: MLflow is absent, down, locked, or refused something.
    """
    started, address = time.perf_counter(), tracking_uri(uri)
    stored = read_stored(study, preset)
    with study_lock(study, preset):
        connected = client(address)
        from mlflow.exceptions import MlflowException

        for attempt in range(ATTEMPTS):
            try:
                run_id, counts = _write(stored, connected, address, after)
                break
            except (MlflowException, OSError) as error:
                # A second clone that ingests the same at the same moment: what it wrote is there at the next look.
                if attempt + 1 == ATTEMPTS or not any(word in str(error) for word in CONFLICTS):
                    raise TrackingError(reason(error), where=shown(address)) from error
                time.sleep(random.uniform(0.3, 1.7))  # not both again at the same moment
        remember(study, preset, address, stored.fingerprint)
    seconds = round(time.perf_counter() - started, 3)
    return Ingested(study, preset, shown(address), run_id, **vars(counts), seconds=seconds)


def _write(stored: Stored, connected: MlflowClient, address: str, after: Callable[[str], None]) -> tuple[str, Counts]:
    """Put parent and children into MLflow; the parent's run id and what was done."""
    from restudy.tracking.records import records
    from restudy.tracking.writer import Writer

    parent, children = records(stored)
    writer = Writer(connected, experiment(connected, address, stored.study), stored.study, stored.preset, after)
    writer.load()
    run_id = writer.put(parent)
    for child in children:
        writer.put(child, run_id)
    writer.settle([parent.key, *(child.key for child in children)])
    return run_id, writer.counts


def ingest_or_warn(study: str, preset: str, *, uri: str | None = None) -> Ingested | None:
    """Ingest, or say in one line on stderr why not; the run goes on, and the next one tries again."""
    try:
        return ingest(study, preset, uri=uri)
    except Exception as error:  # tracking never fails a run, whatever MLflow and what it imports may raise
        warn(f"{study} at {preset}", reason(error))
        return None


def ingest_pending(slugs: Iterable[str], preset: str, *, uri: str | None = None) -> list[str]:
    """Ingest what is not in MLflow yet, in one process of its own with a time limit; the studies still pending.

    Imports no mlflow here and starts nothing when nothing is pending.
    """
    todo = pending(slugs, preset, uri)
    if not todo:
        return []
    command = [sys.executable, "-m", "restudy.tracking", *todo, preset, "--warn"]
    environment = os.environ | {"MLFLOW_TRACKING_URI": tracking_uri(uri)}  # not an argument: it may hold a password
    limit = LIMIT_SECONDS * (1 + (len(todo) - 1) / 4)
    try:
        subprocess.run(command, cwd=layout.root(), env=environment, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        warn(f"{len(todo)} studies at {preset}", f"no answer within {limit:.0f} s")
    except OSError as error:
        warn(f"{len(todo)} studies at {preset}", reason(error))
    return pending(todo, preset, uri)


def warn(what: str, why: str) -> None:
    """One line on stderr."""
    print(f"restudy: warning: {what} not in MLflow ({why}); the run goes on, the next one tries again", file=sys.stderr)

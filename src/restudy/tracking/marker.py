"""What was ingested where: a small file per study and preset, so that a no-op run imports no mlflow."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from restudy import layout
from restudy.errors import ResultError
from restudy.results.files import write_atomically
from restudy.tracking.address import shown, sqlite_path, tracking_uri
from restudy.tracking.stored import stored_fingerprint


def marker(study: str, preset: str) -> Path:
    """The file that remembers the last complete ingest of a study at a preset."""
    return layout.work("tracking", preset, f"{study}.json")


def remember(study: str, preset: str, uri: str, fingerprint: str) -> None:
    """Note a complete ingest."""
    content = json.dumps({"uri": shown(uri), "fingerprint": fingerprint}, indent=1, sort_keys=True)
    write_atomically(marker(study, preset), f"{content}\n".encode())


def pending(slugs: Iterable[str], preset: str, uri: str | None = None) -> list[str]:
    """The studies whose stored results are not in MLflow yet; those without verdicts are left out.

    Reads small files only and imports no mlflow.
    """
    address = tracking_uri(uri)
    path = sqlite_path(address)
    gone = path is not None and not path.is_file()
    found = []
    for slug in slugs:
        try:
            current = stored_fingerprint(slug, preset)
        except ResultError:
            continue
        if gone or _remembered(slug, preset) != (shown(address), current):
            found.append(slug)
    return found


def _remembered(study: str, preset: str) -> tuple[str, str] | None:
    try:
        content = json.loads(marker(study, preset).read_text())
        return content["uri"], content["fingerprint"]
    except (OSError, ValueError, KeyError, TypeError):
        return None

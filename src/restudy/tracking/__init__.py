"""MLflow: one idempotent ingest per study and preset, from stored results only.

Nothing here is part of a result. These names are looked up on first use, so that importing this package imports
neither mlflow nor anything else::

    from restudy.tracking import LiveCurves, ingest, ingest_or_warn, ingest_pending, pending
"""

from __future__ import annotations

import importlib

_HOMES = {
    "Ingested": "ingesting",
    "LiveCurves": "live",
    "default_uri": "address",
    "ingest": "ingesting",
    "ingest_or_warn": "ingesting",
    "ingest_pending": "ingesting",
    "live_key": "live",
    "pending": "marker",
    "tracking_uri": "address",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)

"""Row for `make bench`: what live curves cost a training."""

from __future__ import annotations

from typing import Any

from restudy.errors import RestudyError
from restudy.tracking.overhead import benchmark


def rows() -> list[dict[str, Any]]:
    """The share of training time that live logging to a server takes."""
    what = "live curves to an MLflow server: share of training time"
    try:
        found = benchmark()
    except RestudyError as error:
        return [{"what": what, "ratio": None, "aim": None, "note": str(error)}]
    note = f"{found.sent} values sent, {found.dropped} dropped, {found.steps} steps; aim below 0.02"
    return [{"what": what, "ratio": found.ratio, "aim": None, "note": note}]

"""The index of the site: one row a paper."""

from __future__ import annotations

from filelock import FileLock

from restudy import layout
from restudy.results.files import write_atomically


def render(preset: str) -> bytes:
    """The index of a preset as HTML bytes."""
    return b"<!DOCTYPE html><html lang=en><title>restudy</title></html>"


def write(preset: str) -> None:
    """Render the index and write it, one writer at a time."""
    lock = layout.work("locks", f"index.{preset}")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        write_atomically(layout.report(preset) / "index.html", render(preset))

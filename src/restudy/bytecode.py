"""Python trusts a bytecode file whose source has the same size and the same whole second of change.

A source edited twice within one second, with an import in between, would run as it was before the second edit, while
its fingerprint already names the new text. Git has the same trouble with its index and calls such entries racy; as
there, what was written too soon after its source is not trusted. Nothing is imported here, since every job begins so.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

SECONDS = 2
"""Bytecode written at least so long after the second in which its source changed has seen the last edit."""


def drop_racy(package: Path) -> list[Path]:
    """Remove the bytecode files below a package's folder that may be older than their source; return them."""
    dropped = []
    for compiled in package.rglob("__pycache__/*.pyc"):
        source = compiled.parent.parent / f"{compiled.name.partition('.')[0]}.py"
        with contextlib.suppress(FileNotFoundError):  # an orphan, or another process was faster
            if compiled.stat().st_mtime < int(source.stat().st_mtime) + SECONDS:
                compiled.unlink()
                dropped.append(compiled)
    return dropped

"""Atomic writing: a reader sees the old file or the new one, never half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from restudy.errors import ResultError

REMEDIES = {
    errno.ENOSPC: "free some space and run the same command again; nothing computed before is lost",
    errno.EDQUOT: "your quota is used up; free some space and run the same command again",
    errno.EACCES: "make the folder writable",
    errno.EROFS: "the file system is read-only; mount it writable",
}


def write_atomically(path: Path, content: bytes) -> None:
    """Write `content` to `path` through a temporary file in the same folder.

    Raises:
        ResultError: disk full, no permission, read-only file system; nothing half-written is left.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        temporary = Path(name)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        remedy = REMEDIES.get(error.errno or 0, "check the disk")
        raise ResultError(f"cannot write ({error.strerror})", where=str(path), remedy=remedy) from None
    finally:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

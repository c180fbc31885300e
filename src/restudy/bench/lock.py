"""One run at a time in one clone: a lock that dies with its holder, and whose freedom proves a leftover lock stale."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from restudy import layout
from restudy.errors import RestudyError

NETWORK_FILE_SYSTEMS = frozenset({"nfs", "nfs4", "cifs", "smb3", "lustre", "glusterfs", "fuse.sshfs", "beegfs", "gpfs"})


@contextmanager
def run_lock(command: str) -> Iterator[int]:
    """Hold the lock of this clone; gives the descriptor, to be passed on to the scheduler.

    A dead wrapper whose scheduler lives still counts as live, since the scheduler holds the same descriptor.

    Raises:
        RestudyError: another run is live; it is named.
    """
    path = layout.work("run.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    warn_of_network(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RestudyError(
                f"another run is live: {holder(path)}", where="work/run.lock", remedy="wait for it, or stop it"
            ) from None
        _write_holder(descriptor, command)
        forget_stale_locks()
        yield descriptor
    finally:
        os.close(descriptor)


def _write_holder(descriptor: int, command: str) -> None:
    started = datetime.now(UTC).isoformat(timespec="seconds")
    text = json.dumps({"command": command, "pid": os.getpid(), "host": socket.gethostname(), "started": started})
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def holder(path: Path) -> str:
    """Who holds the lock, in words."""
    try:
        found = json.loads(path.read_text())
        return f"`{found['command']}` (process {found['pid']} on {found['host']}, since {found['started']})"
    except (OSError, ValueError, KeyError):
        return "unknown"


def live() -> str | None:
    """The live run in words, or None."""
    path = layout.work("run.lock")
    if not path.is_file():
        return None
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return holder(path)
    finally:
        os.close(descriptor)
    return None


def forget_stale_locks() -> None:
    """Remove Snakemake's lock files: called under our lock, so no scheduler of ours can be alive."""
    locks = layout.root() / ".snakemake" / "locks"
    if locks.is_dir() and any(locks.iterdir()):
        print("restudy: a killed run left Snakemake's lock behind; removed", file=sys.stderr)
        shutil.rmtree(locks, ignore_errors=True)


def file_system(path: Path) -> str:
    """The type of the file system that holds a path, from /proc/mounts; empty where that is unknown."""
    try:
        lines = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return ""
    best = ("", "")
    for line in lines:
        _, mount, kind, *_ = line.split(" ")
        mount = mount.replace("\\040", " ")
        if path.resolve().is_relative_to(mount) and len(mount) >= len(best[0]):
            best = (mount, kind)
    return best[1]


def warn_of_network(path: Path) -> None:
    """Warn where locks would lie on a network file system: they are not known to hold there."""
    if (kind := file_system(path)) in NETWORK_FILE_SYSTEMS:
        print(
            f"restudy: warning: {path} lies on a network file system ({kind}); locks may not hold there: "
            "keep the clone on a local disk and share DVC's cache and remote instead",
            file=sys.stderr,
        )

"""A device for a job, and nobody else's: schedulers count devices, they do not say which one.

One lock file a device, in a folder that all clones and users of the machine share; the kernel frees the lock of a
holder that is killed. Where the scheduler of a cluster hands out devices itself, its choice is taken as it is.
"""

from __future__ import annotations

import fcntl
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from restudy.errors import RestudyError

DRIVER = Path("/proc/driver/nvidia/gpus")
# Set where SLURM gave the job devices of its own (it numbers them from 0 in every job).
HANDED_OUT = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
POLL_SECONDS = 0.2


def devices() -> list[str]:
    """The devices that jobs of this process may use, as CUDA_VISIBLE_DEVICES names them.

    From `RESTUDY_DEVICES` (a list for one machine, or for tests), else from `CUDA_VISIBLE_DEVICES`, else every card
    that the NVIDIA driver shows, by its UUID.
    """
    for variable in ("RESTUDY_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if (named := os.environ.get(variable)) is not None:
            return [] if named.strip() == "-1" else [part.strip() for part in named.split(",") if part.strip()]
    found: list[str] = []
    for path in sorted(DRIVER.glob("*/information")):
        match = re.search(r"^GPU UUID:\s*(\S+)", path.read_text(), re.MULTILINE)
        found.append(match.group(1) if match else str(len(found)))
    return found


@contextmanager
def lease() -> Iterator[str]:
    """Hold one device; `CUDA_VISIBLE_DEVICES` names it alone meanwhile. Waits until one is free.

    Raises:
        RestudyError: there is no device, or the folder of the locks cannot be used.
    """
    if any(os.environ.get(name) for name in HANDED_OUT):
        yield os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return
    if not (candidates := devices()):
        raise RestudyError(
            "no CUDA device is visible", where="RESTUDY_DEVICE=cuda", remedy="set RESTUDY_DEVICE=cpu, or show one"
        )
    name, descriptor = _first_free(candidates)
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    os.environ["CUDA_VISIBLE_DEVICES"] = name
    try:
        yield name
    finally:
        os.close(descriptor)
        os.environ.pop("CUDA_VISIBLE_DEVICES")
        if before is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = before


def _first_free(candidates: list[str]) -> tuple[str, int]:
    """The first device whose lock can be had, with the descriptor that holds it."""
    said = False
    while True:
        for name in candidates:
            descriptor = _open(name)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return name, descriptor
            except BlockingIOError:
                os.close(descriptor)
        if not said:
            print(f"restudy: waiting for one of {len(candidates)} devices", file=sys.stderr, flush=True)
            said = True
        time.sleep(POLL_SECONDS)


def _open(name: str) -> int:
    """Open the lock file of a device: readable is enough to lock it, whoever made it."""
    folder = Path(os.environ.get("RESTUDY_LEASES") or Path(tempfile.gettempdir(), "restudy-devices"))
    path = folder / re.sub(r"[^A-Za-z0-9-]", "_", name)
    try:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o1777)
        if not path.exists():
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644))
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as error:
        raise RestudyError(
            f"cannot be locked ({error.strerror})", where=str(path), remedy="set RESTUDY_LEASES to a folder"
        ) from None

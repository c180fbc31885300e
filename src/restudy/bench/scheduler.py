"""Snakemake as a child that holds the run's lock, and how it is told to stop.

Its own handler of SIGTERM takes locks that its main thread may hold at that moment: now and then it never returns. So
whoever forwards the signal watches: a scheduler that was told to stop and has no job left is ended.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from restudy import layout

POLL_SECONDS = 1.0
IDLE_POLLS = 10


def run_scheduler(command: Sequence[str], environ: dict[str, str], descriptor: int) -> int:
    """Run Snakemake to its end; its exit code, 143 where it had to be ended, 130 after Ctrl-C.

    SIGTERM is forwarded: running jobs end, no new ones start. Ctrl-C reaches the child by itself.

    Args:
        command: Snakemake's command line.
        environ: its environment.
        descriptor: the descriptor of the run's lock, handed on.
    """
    told: list[int] = []
    earlier = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        process = subprocess.Popen(command, cwd=layout.root(), env=environ, pass_fds=(descriptor,))
        return _wait(process, told)
    finally:
        signal.signal(signal.SIGTERM, earlier)


def _wait(process: subprocess.Popen[Any], told: list[int]) -> int:
    forwarded = idle = interrupted = 0
    while True:
        try:
            code = process.wait(timeout=POLL_SECONDS)
            return interrupted or code
        except KeyboardInterrupt:
            interrupted = 128 + signal.SIGINT
        except subprocess.TimeoutExpired:
            if len(told) > forwarded:
                forwarded = len(told)
                process.terminate()
            elif forwarded:
                idle = 0 if _has_children(process.pid) else idle + 1
                if idle >= IDLE_POLLS:
                    process.kill()
                    process.wait()
                    return 128 + signal.SIGTERM


def _has_children(pid: int) -> bool:
    """Whether a process has children; True where that cannot be found out."""
    if Path("/proc/self/stat").exists():
        return any(_parent(path) == pid for path in Path("/proc").glob("[0-9]*/stat"))
    try:
        return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True).returncode != 1
    except OSError:
        return True


def _parent(stat: Path) -> int:
    """The parent of a process from its line in /proc; the name in it may hold blanks and brackets."""
    try:
        state, parent = stat.read_text().rpartition(")")[2].split()[:2]
    except (OSError, ValueError):
        return 0
    return int(parent) if state != "Z" else 0

"""Facts about a run: the deterministic ones for the output, the varying ones for its `.run.json`."""

from __future__ import annotations

import json
import os
import platform
import resource
import socket
import subprocess
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.bench.outputs import outputs
from restudy.provenance import kernels
from restudy.provenance.environment import cpu_model
from restudy.provenance.fingerprint import Node, fingerprint, ingredients, upstream
from restudy.provenance.stamp import Facts, kernels_in
from restudy.results.files import write_atomically


def facts_of(node: Node) -> Facts:
    """The facts that determine a node's outputs, and the kernel sets of all that went into them."""
    named = (node.study, node.preset, node.kind, node.name, node.shard)
    return Facts(*named, fingerprint(node), ingredients(node), kernels=_kernels_of(node))


def _kernels_of(node: Node) -> list[str]:
    """This process's kernel set and those of the tables and tensors above, sorted; a merged table computes nothing."""
    above = {name for n in upstream(node) for path in outputs(n) for name in kernels_in(layout.root() / path)}
    return sorted(above if node.kind == "table" else above | {kernels.name()})


@dataclass
class Clock:
    """Wall seconds, CPU seconds (children included) and peak resident memory since it was made."""

    wall: float = field(default_factory=time.perf_counter)
    cpu: float = field(default_factory=lambda: sum(os.times()[:4]))

    def read(self) -> dict[str, float]:
        """`wall_seconds`, `cpu_seconds` and `peak_mb` so far."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        peak_mb = peak / (1 << 20) if platform.system() == "Darwin" else peak / 1024
        return {
            "wall_seconds": round(time.perf_counter() - self.wall, 3),
            "cpu_seconds": round(sum(os.times()[:4]) - self.cpu, 3),
            "peak_mb": round(peak_mb, 1),
        }


@cache
def commit() -> dict[str, Any]:
    """The git commit and whether the tree has uncommitted changes; both None outside git."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(layout.root()), *arguments], capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else bool(status)}


def write_run_json(paths: list[Path], node: Node, clock: Clock, extra: dict[str, Any]) -> None:
    """Write the varying facts of a run beside each of its outputs."""
    content = {
        "fingerprint": fingerprint(node),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "cpu": cpu_model(),
        "kernels": kernels.record(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        **commit(),
        **clock.read(),
        **extra,
    }
    for path in sorted({layout.run_json(path) for path in paths}):
        write_atomically(path, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode())


def run_facts(output: Path) -> dict[str, Any]:
    """The varying facts beside an output, empty where there are none."""
    try:
        found: dict[str, Any] = json.loads(layout.run_json(layout.root() / output).read_text())
    except (OSError, ValueError):
        return {}
    return found

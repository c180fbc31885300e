"""Rows for `make bench`: what the pipeline itself costs."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from restudy import layout
from restudy.bench.ledger import entries
from restudy.bench.settle import environment, inspect
from restudy.catalog.plan import studies_at

AIM_NO_OP_SECONDS = 5.0
AIM_OUTSIDE = 0.10


def rows() -> list[dict[str, Any]]:
    """A run with nothing to do against a bare interpreter start, and the share of CPU time outside stages."""
    return [_no_op(), *_outside()]


def _no_op() -> dict[str, Any]:
    complete = [p for p in ("laptop", "workstation", "smoke") if inspect(studies_at(p), p).complete]
    preset = complete[0] if complete else "smoke"
    what = f"second `make reproduce` ({preset}), in starts of Snakemake"
    command = [sys.executable, "-m", "restudy.cli", "run", "--preset", preset]
    if not complete:
        first = subprocess.run(command, cwd=layout.root(), env=environment(), capture_output=True, text=True)
        if first.returncode:
            return {"what": what, "ratio": None, "aim": None, "note": "the smoke run failed"}
    again, bare = _seconds(command), _seconds([sys.executable, "-m", "snakemake", "--version"])
    return {"what": what, "ratio": again / bare, "aim": None, "note": f"{again:.1f} s, aim {AIM_NO_OP_SECONDS:.0f} s"}


def _seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=layout.root(), env=environment(), capture_output=True, check=True)
    return time.perf_counter() - started


def _outside() -> list[dict[str, Any]]:
    found = []
    for preset in ("smoke", "laptop"):
        runs = [run for run in entries() if run["preset"] == preset and run["stage_jobs"]]
        what = f"CPU time outside stages, last computing run at {preset}"
        if not runs:
            found.append({"what": what, "ratio": None, "aim": None, "note": "no such run in this clone"})
            continue
        run = max(runs, key=lambda r: r["stage_jobs"])
        share = 1 - run["stage_cpu_seconds"] / run["cpu_seconds"]
        note = f"{run['cpu_seconds']:.0f} CPU s in all, {run['stage_jobs']} stage jobs, largest {run['peak_mb']:.0f} MB"
        found.append(
            {"what": what, "ratio": share, "aim": None, "note": f"{note}; aim below {AIM_OUTSIDE:.2f} at laptop"}
        )
    return found

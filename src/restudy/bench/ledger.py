"""One line a run, in work/runs.jsonl: what the whole run cost, and what of it the stages did."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from restudy import layout
from restudy.bench.facts import run_facts
from restudy.bench.outputs import outputs
from restudy.provenance.fingerprint import Node, nodes


def _cpu() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


@contextmanager
def accounted(slugs: Sequence[str], preset: str) -> Iterator[None]:
    """Account for a run: wall seconds, CPU seconds of all its processes, and those spent inside its stages."""
    started, wall, cpu = datetime.now(UTC).isoformat(timespec="seconds"), time.perf_counter(), _cpu()
    try:
        yield
    finally:
        stages = [node for slug in slugs for node in nodes(slug, preset) if node.kind == "stage"]
        ran = [facts for node in stages if str((facts := _facts(node)).get("finished", "")) >= started]
        line = {
            "started": started,
            "preset": preset,
            "studies": list(slugs),
            "wall_seconds": round(time.perf_counter() - wall, 2),
            "cpu_seconds": round(_cpu() - cpu, 2),
            "stage_jobs": len(ran),
            "stage_cpu_seconds": round(sum(float(f["cpu_seconds"]) for f in ran), 2),
            "peak_mb": max((float(f["peak_mb"]) for f in ran), default=0.0),
        }
        path = layout.work("runs.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _facts(node: Node) -> dict[str, float | str]:
    return run_facts(outputs(node)[0])


def entries() -> list[dict[str, Any]]:
    """The runs of this clone, oldest first."""
    path = layout.work("runs.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []

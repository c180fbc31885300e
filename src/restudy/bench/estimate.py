"""What a run will cost: recorded durations where there are some, else the preset's declared costs."""

from __future__ import annotations

import csv
from collections.abc import Container, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from restudy import layout
from restudy.bench.facts import run_facts
from restudy.bench.outputs import outputs
from restudy.catalog.plan import plan
from restudy.provenance.fingerprint import Node, fingerprint, nodes
from restudy.provenance.stamp import verify

# CPU seconds of jobs that no study declares: imports, drawing, rendering (measured; see docs/performance.md).
OVERHEAD_SECONDS = {"stage": 3.0, "table": 1.0, "verdicts": 2.5, "figure": 1.8, "notebook": 5.0, "page": 1.5}


@dataclass(frozen=True)
class Estimate:
    """CPU minutes of one study: the whole run, what is left to do, and how many jobs that are.

    `recorded` is the share of the jobs whose time was recorded before; `actual` what a complete earlier run took.
    """

    study: str
    total: float
    left: float
    jobs: int
    recorded: float
    declared: float
    actual: float | None


def estimate(slug: str, preset: str, current: Container[Path] | None = None) -> Estimate:
    """Estimate a study at a preset; `current` are the outputs known to be so, else every output is verified."""
    every = list(nodes(slug, preset))
    shares = _declared_shares(slug, preset)
    total = left = 0.0
    jobs = known = 0
    spent: list[float | None] = []
    for node in every:
        recorded = recorded_seconds(node)
        seconds = recorded if recorded is not None else shares.get(node.name, 0.0) + OVERHEAD_SECONDS[node.kind]
        known += recorded is not None
        total += seconds
        spent.append(_run_seconds(node))
        if current is None:
            left_over = any(verify(layout.root() / path, fingerprint(node)) for path in outputs(node))
        else:
            left_over = any(path not in current for path in outputs(node))
        if left_over:
            left += seconds
            jobs += 1
    declared = sum(c.core_minutes for c in plan(slug, preset).spec.cost)
    actual = sum(s for s in spent if s is not None) / 60 if all(s is not None for s in spent) else None
    return Estimate(slug, total / 60, left / 60, jobs, known / len(every), declared, actual)


def estimate_all(slugs: Iterable[str], preset: str, current: Container[Path] | None = None) -> list[Estimate]:
    """Estimates of several studies."""
    return [estimate(slug, preset, current) for slug in slugs]


def recorded_seconds(node: Node) -> float | None:
    """CPU seconds of a job from Snakemake's benchmark file, or from the `.run.json` of an earlier run of it."""
    name = f"{node.name}.{node.shard}" if node.kind == "stage" else node.kind
    path = layout.work("benchmarks", node.preset, node.study, f"{name}.tsv")
    try:
        with path.open(newline="") as file:
            row = next(iter(csv.DictReader(file, delimiter="\t")))
        return float(row["cpu_time"])
    except (OSError, StopIteration, KeyError, ValueError):
        return _run_seconds(node)


def _run_seconds(node: Node) -> float | None:
    content = run_facts(outputs(node)[0])
    return float(content["cpu_seconds"]) if content else None


@cache
def _declared_shares(slug: str, preset: str) -> dict[str, float]:
    """Declared CPU seconds of one job of each stage."""
    found = plan(slug, preset)
    return {
        stage: sum(c.core_minutes for c in found.spec.cost if c.stage == stage) * 60 / len(found.shards(stage))
        for stage in found.stages
    }


def table(estimates: list[Estimate], cores: int) -> str:
    """The estimates as text, with the error of past ones where a complete run was recorded."""
    lines = [f"{'study':<24}{'jobs to run':>12}{'core-min left':>15}{'of':>8}{'declared':>10}{'last run':>10}"]
    for e in estimates:
        last = f"{e.actual:.1f}" if e.actual is not None else "-"
        error = f" ({(e.declared - e.actual) / e.actual:+.0%} declared)" if e.actual and e.declared else ""
        lines.append(f"{e.study:<24}{e.jobs:>12}{e.left:>15.1f}{e.total:>8.1f}{e.declared:>10.1f}{last:>10}{error}")
    left = sum(e.left for e in estimates)
    lines.append(
        f"{'total':<24}{sum(e.jobs for e in estimates):>12}{left:>15.1f}{sum(e.total for e in estimates):>8.1f}"
    )
    lines.append(f"about {left / max(cores, 1):.0f} minutes on {cores} cores")
    return "\n".join([*lines, *_bases(estimates)])


def _bases(estimates: list[Estimate]) -> list[str]:
    """Where the minutes come from, unless every job was measured."""
    declared = [e.study for e in estimates if not e.recorded]
    partly = [f"{e.study} ({e.recorded:.0%} of its jobs measured)" for e in estimates if 0 < e.recorded < 1]
    lines = []
    if declared:
        who = "all of them" if len(declared) == len(estimates) else ", ".join(declared)
        lines.append(f"declared by the studies, not measured (never run here): {who}")
    if partly:
        lines.append(f"partly declared: {', '.join(partly)}")
    return lines

"""Where a study's numbers come from: times, machines, commits, versions and fingerprints of its jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from restudy import layout
from restudy.bench.facts import run_facts
from restudy.bench.outputs import outputs
from restudy.catalog.plan import Plan
from restudy.provenance.fingerprint import Node, nodes
from restudy.report.model import Provenance, StageCost

_SHOWN = {"stage": "", "table": "merge", "verdicts": "verdicts", "figure": "figures", "notebook": "notebook"}


def run_files(slug: str, preset: str) -> dict[Node, dict[str, Any]]:
    """The varying facts of every job of a study, pages excepted; empty where a job has none."""
    found: dict[Node, dict[str, Any]] = {}
    for node in nodes(slug, preset):
        if node.kind != "page":
            content = run_facts(outputs(node)[0])
            found[node] = dict(content) if isinstance(content, dict) else {}
    return found


def costs(runs: dict[Node, dict[str, Any]]) -> tuple[StageCost, ...]:
    """What the jobs cost, stage by stage, then what comes after the stages."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for node, facts in runs.items():
        groups.setdefault(_SHOWN[node.kind] or node.name, []).append(facts)
    return tuple(
        StageCost(
            name,
            len(every),
            sum(1 for facts in every if facts),
            sum(_float(facts, "cpu_seconds") for facts in every),
            sum(_float(facts, "wall_seconds") for facts in every),
            max(_float(facts, "peak_mb") for facts in every),
        )
        for name, every in groups.items()
    )


def provenance(plan: Plan, slug: str, runs: dict[Node, dict[str, Any]]) -> Provenance:
    """Everything the page says about the origin of a study's numbers."""
    done = [facts for facts in runs.values() if facts]
    stamps = {node: stamp for node in runs if (stamp := _stamp(outputs(node)))}
    environment: dict[str, str] = {}
    for stamp in stamps.values():
        environment |= stamp.get("ingredients", {}).get("environment", {})
    commits = Counter((str(f.get("commit") or "outside git"), bool(f.get("dirty"))) for f in done)
    return Provenance(
        finished=last_finished(done),
        commits=tuple((commit, dirty, n) for (commit, dirty), n in commits.most_common()),
        machines=tuple(dict.fromkeys(_machine(facts) for facts in done)),
        device=plan.device,
        costs=costs(runs),
        parameters=_parameters(plan),
        environment=tuple(sorted(environment.items())),
        fingerprints=tuple(
            (outputs(node)[0].as_posix(), str(stamp.get("fingerprint", ""))) for node, stamp in stamps.items()
        ),
    )


def last_finished(done: Iterable[dict[str, Any]]) -> str:
    """The latest time at which a job ended, as an ISO time in UTC."""
    return max((str(facts.get("finished", "")) for facts in done), default="")


def _parameters(plan: Plan) -> tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...]:
    """Per stage: name, value and meaning of each parameter."""
    found = []
    for stage in plan.stages:
        schemas = plan.study.file.parameters.get(stage, {})
        rows = [(n, _short(v), str(schemas.get(n, {}).get("says", ""))) for n, v in plan.parameters(stage).items()]
        axes = [a for a in plan.stages[stage].shards if a != "seeds"]
        rows += [(a, _short(plan.axis(a)), plan.study.file.axes[a].says) for a in axes]
        found.append((stage, tuple(rows)))
    return tuple(found)


def _short(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _machine(facts: dict[str, Any]) -> str:
    parts = [f"{facts.get('host', 'unknown host')}", str(facts.get("cpu", "")), f"{facts.get('cores', '?')} cores"]
    if facts.get("kernels"):
        parts.append(f"kernels {facts['kernels']['name']}")
    if facts.get("gpu"):
        parts.append(str(facts["gpu"]))
    return ", ".join([*filter(None, parts), f"Python {facts.get('python', '?')}", str(facts.get("platform", ""))])


def _float(facts: dict[str, Any], key: str) -> float:
    value = facts.get(key)
    return float(value) if isinstance(value, int | float) else 0.0


def _stamp(paths: list[Path]) -> dict[str, Any]:
    """The facts embedded in the first Parquet file of a job, read from its header alone."""
    for path in paths:
        if path.suffix != ".parquet" or not (layout.root() / path).is_file():
            continue
        try:
            found: dict[str, Any] = json.loads((pq.read_schema(layout.root() / path).metadata or {})[b"restudy"])
        except (pa.ArrowException, OSError, ValueError, KeyError):
            continue
        return found
    return {}

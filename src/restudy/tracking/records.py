"""Stored results as records of runs: one parent a study and preset, one child a stage, condition and seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from restudy.catalog.study import study
from restudy.errors import ConfigError
from restudy.results.tables import read_table
from restudy.tracking.curves import Point, clean, conditions, last, points, split_by_seed, tidied
from restudy.tracking.describing import dataset_inputs, description, verdict_metrics, verdict_tags
from restudy.tracking.stored import Job, Stored, verdicts_json

PARENT_NAMES = 300  # final metrics of the parent


@dataclass(frozen=True)
class Record:
    """One run as it should stand in MLflow. `slot` says what it is, `key` also of which fingerprint."""

    slot: str
    key: str
    name: str
    params: dict[str, str]
    tags: dict[str, str]
    metrics: list[Point]
    start_ms: int
    end_ms: int
    datasets: tuple[tuple[str, str, str], ...] = ()
    files: tuple[tuple[Path, str], ...] = ()
    texts: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> str:
        """A hash over what is logged: a half-ingested run is finished only by the same content."""
        logged = [self.params, [(p.name, p.step, repr(p.value)) for p in self.metrics]]
        return hashlib.sha256(json.dumps(logged, sort_keys=True).encode()).hexdigest()[:32]


def records(found: Stored) -> tuple[Record, list[Record]]:
    """The parent's record and those of its children."""
    tables = _tidy(found.tables.values())
    axes = _axes(found)
    names = {n: conditions(t, ["seed", *axes]) for n, t in tables.items()}
    children = [record for job in found.jobs for record in _children(found, job, names, axes)]
    return _parent(found, tables, names, children), children


def _parent(found: Stored, tables: dict[str, pa.Table], names: dict[str, list[str]], children: list[Record]) -> Record:
    metrics: list[Point] = []
    for name in names:
        finals = last(points(tables[name], f"final/{name}", conditions(tables[name], ["seed"], PARENT_NAMES)))
        metrics += [Point(metric, 0, value) for metric, value in sorted(finals.items())]
    rows = read_table(verdicts_json(found.study, found.preset).parent / found.study / "verdicts.parquet").to_pylist()
    metrics += [Point(clean(name), 0, value) for name, value in sorted(verdict_metrics(rows).items())]
    parameters = found.facts.ingredients.get("parameters", {})
    shared: dict[str, Any] = {"preset": found.preset, **parameters}
    for job in found.jobs:
        for name, value in _parameters(job).items():
            shared.setdefault(f"{job.facts.name}.{name}", value)
    start = min([record.start_ms for record in children], default=_times(found.run)[0])
    provenance = {"facts": found.facts.__dict__, "run": found.run, "missing": found.missing}
    files = [(path, "tables") for path in found.tables.values()]
    files += [(path, "figures") for paths in found.figures.values() for path in paths]
    folder = verdicts_json(found.study, found.preset).parent / found.study
    files += [(p, "verdicts") for p in (folder / "verdicts.parquet", folder / "verdict_parts.parquet") if p.is_file()]
    return Record(
        slot="parent",
        key=f"{found.study}/{found.preset}/{found.fingerprint}",
        name=f"{found.study}-{found.preset}",
        params=_params(shared),
        tags=_tags(found, found.run, found.facts.fingerprint)
        | verdict_tags(rows, found.summary)
        | {"mlflow.note.content": description(found, rows)},
        metrics=metrics,
        start_ms=start,
        end_ms=max([_times(found.run)[1], *(record.end_ms for record in children)]),
        datasets=tuple(sorted({d for record in children for d in record.datasets})),
        files=tuple(files),
        texts={"provenance.json": json.dumps(provenance, indent=1, sort_keys=True, default=str)},
    )


def _children(found: Stored, job: Job, names: dict[str, list[str]], axes: list[str]) -> list[Record]:
    """One record a seed where the job's tables have seeds, else one for the job."""
    parts: dict[int | None, dict[str, pa.Table]] = {}
    for name, table in _tidy(job.tables).items():
        if name in names:
            for seed, part in split_by_seed(table).items():
                parts.setdefault(seed, {})[name] = part
    common = parts.pop(None, {}) if len(parts) > 1 else {}
    seeds = job.facts.ingredients.get("parameters", {}).get("seeds") or []
    if not parts:
        parts = {seed: {} for seed in seeds} or {None: {}}
    made = []
    for seed, tables in sorted(parts.items(), key=lambda item: -1 if item[0] is None else item[0]):
        metrics = [p for name, t in sorted({**common, **tables}.items()) for p in points(t, name, names[name])]
        made.append(_child(found, job, seed, metrics, axes))
    return made


def _child(found: Stored, job: Job, seed: int | None, metrics: list[Point], axes: list[str]) -> Record:
    facts, values = job.facts, _parameters(job)
    condition = [str(values[axis]) for axis in axes if axis in values]
    words = [facts.name, *condition, *([] if seed is None else [f"seed {seed}"])]
    slot = "/".join([facts.name, facts.shard, *([] if seed is None else [f"seed{seed}"])])
    start, end = _times(job.run)
    shown = {"preset": found.preset, "stage": facts.name, "condition": " ".join(condition) or "-", **values}
    return Record(
        slot=slot,
        key=f"{found.study}/{found.preset}/{slot}/{facts.fingerprint}",
        name=" ".join(words),
        params=_params(shown if seed is None else shown | {"seed": seed}),
        tags=_tags(found, job.run, facts.fingerprint) | {"restudy.stage": facts.name, "restudy.job": facts.shard},
        metrics=metrics,
        start_ms=start,
        end_ms=end,
        datasets=dataset_inputs(facts.ingredients.get("data", {})),
    )


def _tidy(paths: Iterable[Path]) -> dict[str, pa.Table]:
    """The tables that hold numbers with names, by name; others are artifacts only."""
    read = {path.stem: tidied(read_table(path)) for path in sorted(paths)}
    return {name: table for name, table in read.items() if table is not None}


def _parameters(job: Job) -> dict[str, Any]:
    values = dict(job.facts.ingredients.get("parameters", {}))
    return {name: value for name, value in values.items() if name not in ("seeds", "function")}


def _axes(found: Stored) -> list[str]:
    """The parameters by which stages are split into jobs, from study.yaml; none where it does not tell."""
    try:
        stages = study(found.study).file.stages
    except ConfigError:
        return []
    shards = [stages[job.facts.name].shards for job in found.jobs if job.facts.name in stages]
    return sorted({axis for names in shards for axis in names} - {"seeds"})


def _params(values: dict[str, Any]) -> dict[str, str]:
    return {clean(n): (v if isinstance(v, str) else json.dumps(v, default=str))[:5000] for n, v in values.items()}


def _tags(found: Stored, run: dict[str, Any], fingerprint: str) -> dict[str, str]:
    tags = {
        "restudy.study": found.study,
        "restudy.preset": found.preset,
        "restudy.fingerprint": fingerprint,
        "restudy.cpu": run.get("cpu"),
        "restudy.cpu_seconds": run.get("cpu_seconds"),
        "restudy.peak_mb": run.get("peak_mb"),
        "restudy.commit": run.get("commit"),
        "restudy.dirty": run.get("dirty"),
        "mlflow.source.git.commit": run.get("commit"),
        "mlflow.source.name": f"restudy {found.study}",
        "mlflow.user": "restudy",
    }
    return {name: str(value) for name, value in tags.items() if value is not None}


def _times(run: dict[str, Any]) -> tuple[int, int]:
    """Start and end in milliseconds, from the `.run.json`; the epoch where there is none."""
    try:
        end = int(datetime.fromisoformat(run["finished"]).timestamp() * 1000)
        return end - int(1000 * float(run.get("wall_seconds", 0))), end
    except (KeyError, TypeError, ValueError):
        return 0, 0

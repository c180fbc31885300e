"""What is stored of a study at a preset, found through the facts embedded in the files themselves.

The walk starts at the verdicts and follows the fingerprints upwards, so that a job left over from another plan or an
earlier source is never taken for a part of these verdicts.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.errors import ResultError
from restudy.provenance.stamp import Facts, read_stamp

REMEDY = "run `make reproduce`"


@dataclass(frozen=True)
class Job:
    """One job of a stage: its facts, the varying facts of its run, and its tables."""

    facts: Facts
    run: dict[str, Any]
    tables: tuple[Path, ...]


@dataclass(frozen=True)
class Stored:
    """All that one ingest shows; `fingerprint` covers verdicts and figures, `missing` names absent parts."""

    study: str
    preset: str
    fingerprint: str
    facts: Facts
    run: dict[str, Any]
    summary: dict[str, Any]
    tables: dict[str, Path] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    figures: dict[str, list[Path]] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def verdicts_json(study: str, preset: str) -> Path:
    """The small file with the verdicts of a study at a preset."""
    return layout.root() / "results" / preset / f"{study}.verdicts.json"


def stored_fingerprint(study: str, preset: str) -> str:
    """A hash over the fingerprints of the verdicts and figures, and over which jobs are there; reads small files only.

    Raises:
        ResultError: no verdicts yet, or not readable.
    """
    facts, _ = read_stamp(verdicts_json(study, preset))
    lines = [facts.fingerprint]
    for figure in sorted(layout.figures(preset, study).glob("*.png")):
        lines.append(f"{figure.stem} {_fingerprint_of(figure)}")
    lines += sorted(path.relative_to(path.parents[1]).as_posix() for path in _shards(study, preset).glob("*/*"))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read_stored(study: str, preset: str) -> Stored:
    """Everything stored that belongs to the verdicts of a study at a preset.

    Raises:
        ResultError: no verdicts yet, or a file is cut short or does not match its own sum.
    """
    path = verdicts_json(study, preset)
    facts = _checked(path)
    content = json.loads(path.read_text())
    content.pop("restudy")
    found = Stored(study, preset, stored_fingerprint(study, preset), facts, run_of(path), content)
    todo: dict[str, str] = {}
    for label, fingerprint in _upstream(facts).items():
        table = layout.results(preset, study) / f"{label.partition('/')[2]}.parquet"
        if not table.is_file() or (above := _checked(table)).fingerprint != fingerprint:
            found.missing.append(label)
            continue
        found.tables[table.stem] = table
        todo |= _upstream(above)
    _walk_jobs(found, todo)
    wanted = {"verdicts": facts.fingerprint} | _upstream(facts)
    for figure in sorted(layout.figures(preset, study).glob("*.png")):
        if all(wanted.get(label) == value for label, value in _upstream(_checked(figure)).items()):
            found.figures[figure.stem] = [figure, *filter(Path.is_file, [figure.with_suffix(".svg")])]
    return found


def run_of(output: Path) -> dict[str, Any]:
    """The varying facts beside an output; empty where the file is absent (it is not needed for a result)."""
    try:
        content = json.loads(layout.run_json(output).read_text())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _walk_jobs(found: Stored, todo: dict[str, str]) -> None:
    seen: set[str] = set()
    while todo:
        label = min(todo)
        fingerprint = todo.pop(label)
        seen.add(label)
        stage, _, shard = label.removeprefix("stage/").partition("/")
        tables = sorted((_shards(found.study, found.preset) / stage / shard).glob("*.parquet"))
        models = sorted((layout.models(found.preset, found.study) / stage / shard).glob("*.safetensors"))
        first = next(iter([*tables, *models]), None)
        facts = None if first is None else (_checked(first) if tables else _model_facts(first))
        if first is None or facts is None or facts.fingerprint != fingerprint:
            found.missing.append(label)
            continue
        for table in tables[1:]:
            _checked(table)
        found.jobs.append(Job(facts, run_of(first), tuple(tables)))
        todo |= {k: v for k, v in _upstream(facts).items() if k not in seen}
    found.jobs.sort(key=lambda job: (job.facts.name, job.facts.shard))


def _shards(study: str, preset: str) -> Path:
    return layout.results(preset, study) / "shards"


def _upstream(facts: Facts) -> dict[str, str]:
    return dict(facts.ingredients.get("upstream", {}))


def _checked(path: Path) -> Facts:
    facts, content = read_stamp(path)
    if facts.content != content:
        raise ResultError("does not match its own sum", where=layout.relative(path), remedy=REMEDY)
    return facts


def _fingerprint_of(output: Path) -> str:
    """From the small file beside an output where there is one, else from the output itself."""
    return str(run_of(output).get("fingerprint") or read_stamp(output)[0].fingerprint)


def _model_facts(path: Path) -> Facts | None:
    """The facts in the header of a trained model; its weights are not read."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(min(size, 1 << 24)))
        return Facts(**json.loads(header["__metadata__"]["restudy"]))
    except (OSError, ValueError, KeyError, TypeError, struct.error):
        return None

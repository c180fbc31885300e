"""Compute a study's stages at smoke in this process: seconds, where a run of the pipeline takes minutes."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from restudy.bench import workers
from restudy.bench.outputs import outputs
from restudy.bench.workers import Files
from restudy.provenance.fingerprint import Node, nodes, upstream
from restudy.results.files import write_atomically
from restudy.results.tables import merge, read_table

PRESET = "smoke"
FACTS = "facts.json"


class Killed(BaseException):
    """The process is gone: nothing in a stage can catch it."""


def stage_jobs(slug: str, stage: str | None = None) -> list[Node]:
    """List the jobs of a study's stages at smoke, of all or of one, in the order of the pipeline."""
    return [node for node in nodes(slug, PRESET) if node.kind == "stage" and stage in (None, node.name)]


def compute(job: Node, folder: Path, checkpoints: Path) -> Files:
    """Compute a job from the files below `folder`, as the pipeline does; return content by path, write nothing.

    Raises:
        RestudyError: as in the pipeline.
    """
    with contextlib.chdir(folder), _torch_as_it_was():
        return workers.work(job, checkpoints, reuse=False)[0]


def compute_study(slug: str, folder: Path) -> None:
    """Compute every stage of a study below `folder`; `facts` reads what each job took."""
    facts = {}
    for job in stage_jobs(slug):
        began = time.process_time()
        with watched_checkpoints() as seen:
            files = compute(job, folder, folder / "checkpoints" / label(job))
        for path, content in files.items():
            write_atomically(folder / path, content)
        facts[label(job)] = {"seconds": time.process_time() - began, "saves": len(seen.saved)}
    (folder / FACTS).write_text(json.dumps(facts))


def facts(folder: Path) -> dict[str, dict[str, float]]:
    """Job -> `seconds` of CPU time and `saves` of checkpoints, for a study that is computed below `folder`."""
    found: dict[str, dict[str, float]] = json.loads((folder / FACTS).read_text())
    return found


def label(job: Node) -> str:
    """Name a job within its study."""
    return f"{job.name}.{job.shard}"


def tables(slug: str, folder: Path) -> dict[str, pa.Table]:
    """Read the merged tables of a study that is computed below `folder`, by name."""
    merged = {}
    for node in nodes(slug, PRESET):
        if node.kind == "table":
            paths = [path for above in upstream(node) for path in outputs(above) if path.stem == node.name]
            merged[node.name] = merge([read_table(folder / path) for path in paths])
    return merged


@dataclass
class Checkpoints:
    """The checkpoints that were written, and those that were there to be read."""

    saved: list[Path] = field(default_factory=list)
    loaded: list[Path] = field(default_factory=list)


@contextlib.contextmanager
def watched_checkpoints(kill_after: int | None = None) -> Iterator[Checkpoints]:
    """Watch the checkpoints that are written and read meanwhile; raise `Killed` once `kill_after` are written."""
    from restudy.methods.training import checkpoint

    seen, save, load = Checkpoints(), checkpoint.save_checkpoint, checkpoint.load_checkpoint

    def saving(path: Path, content: dict[str, Any]) -> None:
        save(path, content)
        seen.saved.append(path)
        if len(seen.saved) == kill_after:
            raise Killed

    def loading(path: Path) -> dict[str, Any] | None:
        if (content := load(path)) is not None:
            seen.loaded.append(path)
        return content

    _exchange("save_checkpoint", save, saving)
    _exchange("load_checkpoint", load, loading)
    try:
        yield seen
    finally:  # also in modules that were loaded meanwhile
        _exchange("save_checkpoint", saving, save)
        _exchange("load_checkpoint", loading, load)


def _exchange(function: str, old: Callable[..., Any], new: Callable[..., Any]) -> None:
    """Put another function in the place of one, wherever its name was imported."""
    for name, module in list(sys.modules.items()):
        if name.startswith("restudy.") and vars(module).get(function) is old:
            vars(module)[function] = new


@contextlib.contextmanager
def _torch_as_it_was() -> Iterator[None]:
    """Stages run with deterministic kernels; what else this process does is left as it was."""
    import torch

    before = torch.are_deterministic_algorithms_enabled()
    warn_only = torch.is_deterministic_algorithms_warn_only_enabled()
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn_only)

"""Runs one job under its lock, between checks before and after."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

from filelock import FileLock

import restudy.tracking.live  # noqa: F401 - loaded before a stage's own imports are watched
from restudy import layout
from restudy.bench.facts import Clock, write_run_json
from restudy.bench.lease import lease
from restudy.bench.outputs import node_of, outputs
from restudy.bench.workers import work
from restudy.errors import RestudyError, ResultError
from restudy.provenance import forget
from restudy.provenance.closure import closure
from restudy.provenance.environment import check_installed
from restudy.provenance.fingerprint import Node, code_modules, fingerprint, ingredients, upstream
from restudy.provenance.stamp import verify
from restudy.results.files import write_atomically


def run_job(output: str, planned: str, inputs: list[str]) -> None:
    """Compute the outputs of the job that writes `output`, unless they are there and current.

    Raises:
        RestudyError: the source changed after planning or during the job, an input is stale or tampered with, an
            installed version differs from the lock, or the job itself failed.
    """
    os.chdir(layout.root())
    node = node_of(output)
    current = fingerprint(node)
    if current != planned:
        raise RestudyError("the source changed after planning", where=output, remedy="run the same command again")
    paths = outputs(node)
    lock = layout.work("locks", node.kind, node.preset, node.study, f"{node.name or node.kind}.{node.shard or 'all'}")
    lock.parent.mkdir(parents=True, exist_ok=True)
    # An orphan of a killed run may still be computing this output: wait for it, then take what it made.
    with FileLock(lock):
        if all(verify(path, current) is None for path in paths):
            return
        _check_inputs(node, inputs)
        check_installed(ingredients(node)["environment"])
        clock, before = Clock(), set(sys.modules)
        with lease() if node.kind == "stage" and node.plan.device == "cuda" else nullcontext():
            files, extra = work(node, checkpoints(node))
        _check_source(node, planned, before)
        for path, content in files.items():
            write_atomically(path, content)
        write_run_json(paths, node, clock, extra)
        shutil.rmtree(checkpoints(node), ignore_errors=True)


def checkpoints(node: Node) -> Path:
    """The folder of a job's checkpoints, keyed by its fingerprint (made by the stage that needs it)."""
    name = "/".join(part for part in (node.study, node.name or node.kind, node.shard) if part)
    return layout.work("checkpoints", name, fingerprint(node)[:16])


def _check_inputs(node: Node, inputs: list[str]) -> None:
    """Every file read must be what the current source would give: old bytes are never built upon."""
    wanted = {path: fingerprint(above) for above in upstream(node) for path in outputs(above)}
    for path, expected in wanted.items():
        if problem := verify(path, expected):
            raise ResultError(problem, where=f"input {path}", remedy="run `make reproduce`, which settles first")
    unknown = [i for i in inputs if Path(i) not in wanted and not i.endswith("SHA256SUMS")]
    if unknown:
        raise RestudyError(f"unexpected inputs {unknown}", where=str(outputs(node)[0]), remedy="mend the rule")


def _check_source(node: Node, planned: str, before: set[str]) -> None:
    """Refuse results of code that changed meanwhile, or of modules that the closure does not know."""
    loaded = {m for m in set(sys.modules) - before if m.partition(".")[0] == "restudy"}
    if node.kind == "stage":
        known = {m for module in code_modules(node) for m in closure(module).modules}
        if unknown := sorted(loaded - known):
            raise RestudyError(
                f"imports {', '.join(unknown)} in a way that the fingerprint cannot see",
                where=f"{node.study}.{node.name}",
                remedy="import it with an import statement",
            )
    forget()
    if fingerprint(node) != planned:
        raise RestudyError(
            "the source changed while the job ran",
            where=str(outputs(node)[0]),
            remedy="run the same command again",
        )

"""What each kind of job does: bytes by path, and facts for the `.run.json`."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restudy.bench.context import Context
from restudy.bench.facts import facts_of, run_facts
from restudy.bench.outputs import outputs
from restudy.bench.reuse import elsewhere
from restudy.catalog.schema import read_yaml
from restudy.errors import RestudyError
from restudy.provenance.fingerprint import FOREST, Node, fingerprint, upstream
from restudy.provenance.stamp import stamp_bytes, stamp_json, stamp_parquet, stamp_tensors
from restudy.results.columns import table_from
from restudy.results.tables import merge, read_table

if TYPE_CHECKING:
    import pyarrow as pa

Files = dict[Path, bytes]
Extra = dict[str, Any]


def work(node: Node, checkpoints: Path, *, reuse: bool = True) -> tuple[Files, Extra]:
    """Do the job of a node; a stage's result is taken over from another preset where that has the very same one.

    Args:
        node: the job.
        checkpoints: folder of its checkpoints.
        reuse: False computes it in any case.

    Raises:
        RestudyError: the job failed; names study, stage, job and the reason (the traceback goes to stderr).
    """
    try:
        if node.kind == "stage":
            if reuse and (found := elsewhere(node)):
                extra = {"lock_entries": lock_entries(node), "taken_from": found[0]}
                return found[1], extra | {"kernels": _kernels_there(node, found[0])}
            return _stage(node, checkpoints), {"lock_entries": lock_entries(node)}
        return _KINDS[node.kind](node)
    except RestudyError as error:
        raise RestudyError(str(error), where=_name(node)) from error
    except MemoryError:
        raise RestudyError("out of memory", where=_name(node), remedy="use fewer CORES=, or a smaller preset") from None
    except Exception as error:
        traceback.print_exc()
        reason = str(error).splitlines()[0] if str(error) else ""
        raise RestudyError(f"{type(error).__name__}: {reason}", where=_name(node)) from None


def _kernels_there(node: Node, preset: str) -> Any:
    """The kernel set that computed a job at another preset, None where it was not recorded."""
    (folder, _, *rest) = outputs(node)[0].parts
    return run_facts(Path(folder, preset, *rest)).get("kernels")


def _name(node: Node) -> str:
    return " ".join(part for part in (node.study, node.name or node.kind, node.shard) if part)


def _stage(node: Node, checkpoints: Path) -> Files:
    plan = node.plan
    stage, shard = plan.study.file.stages[node.name], plan.shard(node.name, node.shard)
    module, _, function = stage.function.partition(".")
    call = getattr(importlib.import_module(f"restudy.studies.{node.study}.{module}"), function)
    arguments = plan.parameters(node.name) | dict(shard.axes)
    if shard.seeds is not None:
        arguments["seeds"] = list(shard.seeds)
    checkpoints.mkdir(parents=True, exist_ok=True)
    _settle_torch()
    returned = call(_context(node, checkpoints), **arguments)
    declared = {*stage.tables, *stage.tensors}
    if set(returned) != declared:
        raise RestudyError(
            f"returned {sorted(returned)}, declared {sorted(declared)}", remedy="mend study.yaml or the stage"
        )
    files: Files = {}
    for path in outputs(node):
        content = returned[path.stem]
        if path.suffix == ".parquet":
            files[path] = stamp_parquet(_stage_table(path.stem, content, stage.tables[path.stem]), facts_of(node))
        else:
            files[path] = stamp_tensors(content, facts_of(node))
    return files


def _stage_table(name: str, content: Any, columns: dict[str, str]) -> pa.Table:
    try:
        return table_from(content, columns)
    except RestudyError as error:
        raise RestudyError(f"table {name}: {error}") from None


def lock_entries(node: Node) -> int:
    """How many entries claims.lock holds; it is only ever appended to, so the number names the entry in force."""
    path = node.plan.study.folder / "claims.lock"
    return len(read_yaml(path) or []) if path.is_file() else 0


def _context(node: Node, checkpoints: Path) -> Context:
    tables: dict[str, list[Path]] = {}
    weights: dict[str, list[Path]] = {}
    for above in upstream(node):
        for path in outputs(above):
            group = tables if path.suffix == ".parquet" else weights
            group.setdefault(path.stem, []).append(path)
    job = (node.study, node.preset, node.name, node.shard, fingerprint(node))
    return Context(checkpoints, node.plan.device, tables, weights, job)


def _settle_torch() -> None:
    """One thread and deterministic kernels, where the stage uses torch at all."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True, warn_only=True)


def _table(node: Node) -> tuple[Files, Extra]:
    (path,) = outputs(node)
    parts = [read_table(p) for above in upstream(node) for p in outputs(above) if p.name == path.name]
    return {path: stamp_parquet(merge(parts), facts_of(node))}, {}


def tables_of(node: Node) -> dict[str, Any]:
    """The merged tables above a node, verdicts included, by name."""
    paths = [p for above in upstream(node) for p in outputs(above) if p.suffix == ".parquet"]
    return {path.stem: read_table(path) for path in paths}


def _verdicts(node: Node) -> tuple[Files, Extra]:
    from restudy.bench.judging import judge, summary

    judged = judge(
        node.study, node.preset, tables_of(node), stamp=facts_of(node).fingerprint, recorded=recorded_entries(node)
    )
    verdicts, parts, brief = outputs(node)
    facts = facts_of(node)
    files = {
        verdicts: stamp_parquet(judged.table(), facts),
        parts: stamp_parquet(judged.parts_table(), facts),
    }
    return files | {brief: stamp_json(summary(judged), facts)}, {}


def recorded_entries(node: Node) -> int | None:
    """The lock entries that the oldest stage result was computed under; None where that is not known."""
    stages = [stage for table in upstream(node) for stage in upstream(table)]
    known = [f["lock_entries"] for f in (run_facts(outputs(s)[0]) for s in stages) if "lock_entries" in f]
    return min(map(int, known), default=None)


def _figure(node: Node) -> tuple[Files, Extra]:
    from restudy.plotting.save import figure_bytes

    tables, facts = tables_of(node), facts_of(node)
    if node.name == FOREST:
        drawn = _forest(tables)
    else:
        module, _, function = node.plan.figures[node.name].function.partition(".")
        drawn = getattr(importlib.import_module(f"restudy.studies.{node.study}.{module}"), function)(tables)
    by_suffix = figure_bytes(drawn)
    if "torch" in sys.modules or "mlflow" in sys.modules:
        raise RestudyError("figures must not import torch or mlflow", remedy="move the computation into a stage")
    return {p: stamp_bytes(by_suffix[p.suffix[1:]], p.suffix, facts) for p in outputs(node)}, {}


def _forest(tables: dict[str, Any]) -> Any:
    """The forest plot of stored verdicts, parts below their claim."""
    from restudy.claims import from_table
    from restudy.claims.forest import forest

    parts = from_table(tables["verdict_parts"])
    rows = [row for v in from_table(tables["verdicts"]) for row in (v, *(p for p in parts if p.claim == v.claim))]
    return forest(rows)


def _notebook(node: Node) -> tuple[Files, Extra]:
    from restudy.report.notebook import execute

    (path,) = outputs(node)
    return {path: stamp_bytes(execute(node.study, node.preset), ".html", facts_of(node))}, {}


def _page(node: Node) -> tuple[Files, Extra]:
    from restudy.report.page import render

    (path,) = outputs(node)
    return {path: stamp_bytes(render(node.study, node.preset), ".html", facts_of(node))}, {}


_KINDS: dict[str, Callable[[Node], tuple[Files, Extra]]] = {
    "table": _table,
    "verdicts": _verdicts,
    "figure": _figure,
    "notebook": _notebook,
    "page": _page,
}

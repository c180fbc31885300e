"""The fingerprint of every output: a hash over all facts that determine it.

A node is one job of the pipeline. Its fingerprint covers the code that it imports, its parameters, its data, the
locked versions of the third-party packages, and the fingerprints of the nodes above. The git commit is never
part of it.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.catalog.plan import Plan, derived_presets, extensions, plan
from restudy.catalog.schema import DEFAULT_NUMERICS, Figure, read_yaml
from restudy.catalog.study import slugs, study
from restudy.errors import ConfigError
from restudy.provenance.closure import _parse, closure, source_path
from restudy.provenance.environment import distributions, locked

FORMAT = 1
KINDS = ("stage", "table", "verdicts", "figure", "notebook", "page")
_IMPORT = re.compile(r"^\s*(?:from|import) (restudy[\w.]*)(?: import ([\w, ]+))?", re.MULTILINE)
FOREST = "forest"  # every study has this figure: estimates and intervals against what the claims ask for
# Our modules behind the kinds that are not a study's own stages.
WORKERS = {
    "table": "restudy.results.tables",
    "verdicts": "restudy.bench.judging",
    "notebook": "restudy.report.notebook",
    "page": "restudy.report.page",
}


@dataclass(frozen=True)
class Node:
    """One job: its kind, preset and study; `name` is the stage, table or figure."""

    kind: str
    preset: str
    study: str
    name: str = ""
    shard: str = ""

    @property
    def plan(self) -> Plan:
        """The study at the preset."""
        return plan(self.study, self.preset)


@cache
def fingerprint(node: Node) -> str:
    """The fingerprint of a node, 64 hexadecimal digits."""
    text = json.dumps(ingredients(node), sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def ingredients(node: Node) -> dict[str, Any]:
    """The facts that determine a node's output, by group: code, parameters, data, environment, upstream.

    Raises:
        ConfigError: unknown study, preset, stage or job.
    """
    code = [closure(module) for module in code_modules(node)]
    modules = {name: digest[:16] for c in code for name, digest in c.modules.items()}
    third = frozenset().union(*(c.third_party for c in code)) if code else frozenset()
    return {
        "format": FORMAT,
        "kind": node.kind,
        "code": dict(sorted(modules.items())) | _text_files(node),
        "parameters": parameters(node),
        "data": {name: _data_sum(name) for name in data_sets(node)},
        "environment": distributions(third),
        "upstream": {_label(above): fingerprint(above) for above in upstream(node)},
    }


def code_modules(node: Node) -> list[str]:
    """The modules of ours whose closure the node's output depends on."""
    package = f"restudy.studies.{node.study}"
    if node.kind == "stage":
        function = node.plan.study.file.stages[node.name].function
        return [f"{package}.{function.partition('.')[0]}", "restudy.results.columns"]
    if node.kind == "figure":
        drawer = "restudy.claims.forest"
        if node.name != FOREST:
            drawer = f"{package}.{_figure(node).function.partition('.')[0]}"
        return [drawer, "restudy.plotting.save"]
    modules = [WORKERS[node.kind]]
    if node.kind == "verdicts" and source_path(f"{package}.statistics"):
        modules.append(f"{package}.statistics")
    if node.kind == "notebook":
        modules += _imported_by(node.plan.study.folder / "notebook.md")
    return modules


def _imported_by(notebook: Path) -> list[str]:
    """List our modules that a notebook's cells import; a module that is not there fails when the cell runs."""
    text = notebook.read_text(encoding="utf-8") if notebook.is_file() else ""
    found = set()
    for module, names in _IMPORT.findall(text):
        found |= {module, *(f"{module}.{name.split()[0]}" for name in names.split(",") if name.strip())}
    return sorted(name for name in found if source_path(name))


def parameters(node: Node) -> dict[str, Any]:
    """The parameters that a node's output depends on, by name."""
    found = node.plan
    if node.kind == "stage":
        shard = found.shard(node.name, node.shard)
        stage = found.study.file.stages[node.name]
        columns = {table: list(spec.items()) for table, spec in stage.tables.items()}  # their order counts
        values: dict[str, Any] = {"function": stage.function, "tables": columns}
        values |= {"device": found.device, **found.parameters(node.name), **dict(shard.axes)}
        if found.spec.numerics != DEFAULT_NUMERICS:  # other bits; named only here, so that fingerprints stay
            values["numerics"] = found.spec.numerics
        return values | ({"seeds": list(shard.seeds)} if shard.seeds is not None else {})
    if node.kind == "verdicts":
        return {"judged_as": found.judged_as, "seeds": found.first_look, "all_seeds": found.seeds}
    if node.kind == "figure" and node.name != FOREST:
        return {"function": _figure(node).function, "tables": _figure(node).tables}
    return {}


def data_sets(node: Node) -> list[str]:
    """The data sets that a node reads."""
    return list(node.plan.study.file.stages[node.name].data) if node.kind == "stage" else []


@cache
def upstream(node: Node) -> tuple[Node, ...]:
    """The nodes whose outputs a node reads."""
    found = node.plan

    def make(kind: str, name: str = "", shard: str = "") -> Node:
        return Node(kind, node.preset, node.study, name, shard)

    if node.kind == "stage":
        above = found.upstream(node.name, found.shard(node.name, node.shard))
        return tuple(make("stage", stage, shard.label) for stage, shard in above)
    if node.kind == "table":
        if node.name not in found.tables:
            raise ConfigError(f"no table {node.name!r} at preset {node.preset}", where=found.study.where)
        stage = found.tables[node.name]
        return tuple(make("stage", stage, shard.label) for shard in found.shards(stage))
    if node.kind == "verdicts":
        return tuple(make("table", name) for name in found.tables)
    figures = tuple(make("figure", name) for name in [*found.figures, FOREST])
    if node.kind == "figure":
        names = ["verdicts"] if node.name == FOREST else list(_figure(node).tables)
        wanted = [make("table", t) for t in names if t in found.tables]
        return (*wanted, *([make("verdicts")] if {"verdicts", "verdict_parts"} & set(names) else []))
    if node.kind == "notebook":
        return (make("verdicts"), *(make("table", name) for name in found.tables), *figures)
    return (make("verdicts"), *figures, make("notebook"))


def nodes(slug: str, preset: str) -> Iterable[Node]:
    """Every node of a study at a preset, in the order of the pipeline."""
    found = plan(slug, preset)
    for stage in found.stages:
        yield from (Node("stage", preset, slug, stage, shard.label) for shard in found.shards(stage))
    yield from (Node("table", preset, slug, table) for table in found.tables)
    yield Node("verdicts", preset, slug)
    yield from (Node("figure", preset, slug, name) for name in [*found.figures, FOREST])
    yield from (Node(kind, preset, slug) for kind in ("notebook", "page"))


def _figure(node: Node) -> Figure:
    if node.name not in node.plan.figures:
        raise ConfigError(f"no figure {node.name!r} at preset {node.preset}", where=node.plan.study.where)
    return node.plan.figures[node.name]


def forget() -> None:
    """Forget what was read of source and configuration, so that the next fingerprint sees the files as they are."""
    caches: list[Any] = [fingerprint, ingredients, upstream, _yaml_digest, _file_digest, plan, study, slugs]
    caches += [closure, _parse, locked, derived_presets, extensions]
    for cached in caches:
        cached.cache_clear()


def _label(node: Node) -> str:
    return "/".join(part for part in (node.kind, node.name, node.shard) if part)


def _text_files(node: Node) -> dict[str, str]:
    """Files other than modules that determine an output: hashed by what they mean where that is known."""
    folder = node.plan.study.folder
    if node.kind == "verdicts":
        return {name: _yaml_digest(folder / name) for name in ("claims.yaml", "claims.lock")}
    if node.kind == "notebook":
        return {"notebook.md": _file_digest(folder / "notebook.md")}
    if node.kind == "page":
        templates = sorted((layout.PACKAGE / "report").glob("**/*.[jhc][2ts]*"))
        texts = {f"report/{p.name}": _file_digest(p) for p in templates if p.suffix != ".py"}
        said = node.plan.study.file.model_dump(exclude={"presets"}) | {"preset": node.plan.spec.model_dump()}
        return texts | {"study.yaml": _digest(said), "claims.yaml": _yaml_digest(folder / "claims.yaml")}
    return {}


@cache
def _yaml_digest(path: Path) -> str:
    return _digest(read_yaml(path) if path.is_file() else None)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:16]


@cache
def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else "absent"


@cache
def _data_sum(name: str) -> str:
    data = importlib.import_module("restudy.data")
    return str(data.data_sum(name))

"""The functions that the Snakefile and the rule files call: all logic of the workflow that is not a rule.

Functions used in `params` take wildcards only: with `input`, `output`, `threads` or `resources` among their arguments
Snakemake takes the value for derived, does not record it, and an edit would end in "Nothing to be done".
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.bench.outputs import outputs
from restudy.catalog.device import device_class
from restudy.catalog.plan import plan, studies_at
from restudy.catalog.study import slugs, study
from restudy.errors import ConfigError
from restudy.provenance.closure import closure
from restudy.provenance.fingerprint import Node, data_sets, fingerprint, nodes, upstream

SHELL = "python -m restudy.stage {output[0]} --fp {params.fp} --in {input} > {log} 2>&1"


def node(wildcards: Any, kind: str) -> Node:
    """The node of a job, from its wildcards."""
    found = {name: str(value) for name, value in wildcards.items()}
    return Node(kind, found["preset"], found["study"], found.get(kind, ""), found.get("shard", ""))


def fp(kind: str) -> Callable[[Any], str]:
    """A params function: the fingerprint of the job."""

    def of(wildcards: Any) -> str:
        return fingerprint(node(wildcards, kind))

    return of


def inputs(kind: str) -> Callable[[Any], list[str]]:
    """An input function: the outputs of the nodes above."""

    def of(wildcards: Any) -> list[str]:
        return [path.as_posix() for above in upstream(node(wildcards, kind)) for path in outputs(above)]

    return of


def data_inputs(wildcards: Any) -> list[str]:
    """An input function: the markers of the data sets that a stage reads."""
    return [data_marker(name) for name in data_sets(node(wildcards, "stage"))]


def data_folder() -> str:
    """The folder of raw data, relative to the project's root where it lies inside."""
    return layout.relative(Path(os.environ.get("RESTUDY_DATA", layout.root() / "data" / "raw")))


def data_marker(name: str) -> str:
    """The small file that stands for a fetched data set."""
    return f"{data_folder()}/{name}/SHA256SUMS"


def declared_sum(wildcards: Any) -> str:
    """The declared sum of a data set: another declaration is fetched again."""
    from restudy.data import data_sum

    return str(data_sum(str(wildcards.name)))


def stages() -> list[tuple[str, str]]:
    """Every study with every stage: what the named rules are made from."""
    return [(slug, stage) for slug in slugs() for stage in study(slug).file.stages]


def stage_outputs(slug: str, stage: str) -> list[str]:
    """The output patterns of a stage, with the wildcards preset, study, stage and shard."""
    found = study(slug).file.stages[stage]
    at = f"{{preset}}/{{study,{slug}}}"
    tables = [f"results/{at}/shards/{{stage,{stage}}}/{{shard}}/{table}.parquet" for table in found.tables]
    return tables + [f"models/{at}/{{stage,{stage}}}/{{shard}}/{name}.safetensors" for name in found.tensors]


def memory_mb(wildcards: Any, attempt: int) -> int:
    """Memory of a stage's job, half as much again at every further attempt."""
    declared = study(str(wildcards.study)).file.stages[str(wildcards.stage)].memory_mb
    return int(declared * (1 + 0.5 * (attempt - 1)))


def gpus(wildcards: Any) -> int:
    """Devices of a stage's job: one where the device class is cuda, none on a machine without."""
    return int(device_class() == "cuda")


def studies_pattern() -> str:
    """A regular expression of all slugs."""
    return "|".join(slugs()) or "none"


def tables_pattern() -> str:
    """A regular expression of all merged tables' names."""
    return (
        "|".join(sorted({t for slug in slugs() for s in study(slug).file.stages.values() for t in s.tables})) or "none"
    )


def targets(slug: str, preset: str, kinds: Iterable[str] = ()) -> list[str]:
    """Every output of a study at a preset (all nodes, so that a lost intermediate is made again), or of some kinds."""
    wanted = set(kinds)
    return [p.as_posix() for n in nodes(slug, preset) if not wanted or n.kind in wanted for p in outputs(n)]


def all_targets(preset: str, kinds: Iterable[str] = ()) -> list[str]:
    """The targets of every study that has the preset."""
    return [target for slug in studies_at(preset) for target in targets(slug, preset, kinds)]


def priority(kind: str) -> Callable[[Any], float]:
    """A priority function: cheap studies first, and what finishes a study before what starts another."""
    base = {"stage": 0, "table": 10, "verdicts": 20, "figure": 15, "notebook": 25, "page": 30}[kind]

    def of(wildcards: Any) -> float:
        order = _by_cost(str(wildcards.preset))
        return base + 9 * (1 - order.index(str(wildcards.study)) / len(order))

    return of


@cache
def _by_cost(preset: str) -> list[str]:
    """The studies of a preset, the one of the least declared cost first."""
    costs = {slug: sum(line.core_minutes for line in plan(slug, preset).spec.cost) for slug in studies_at(preset)}
    return sorted(costs, key=lambda slug: (costs[slug], slug))


def guard() -> None:
    """Refuse to plan from modification times alone: results without Snakemake's own records must be settled first.

    Raises:
        ConfigError: its message is the command to type.
    """
    records, results = layout.root() / ".snakemake" / "metadata", layout.root() / "results"
    if "RESTUDY_SETTLED" in os.environ or records.is_dir() or not any(results.rglob("*.parquet")):
        return
    raise ConfigError("results that this checkout has no records of", where="results/", remedy="run `restudy restore`")


def rule_files() -> list[str]:
    """The rules.smk of the studies that have rules of their own."""
    files = (study(slug).folder / "rules.smk" for slug in slugs())
    return [str(path) for path in files if path.is_file()]


def index_fp(preset: str) -> str:
    """The fingerprint of the site's index: the pages of all studies and the code that renders it."""
    pages = [fingerprint(Node("page", preset, slug)) for slug in studies_at(preset)]
    return hashlib.sha256("\n".join([closure("restudy.report.index").digest, *pages]).encode()).hexdigest()

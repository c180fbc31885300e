"""Which files a node of the pipeline writes, and which node a file belongs to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from restudy import layout
from restudy.errors import ConfigError
from restudy.provenance.fingerprint import Node, nodes


def outputs(node: Node) -> list[Path]:
    """The files that a node writes, the first one naming it, relative to the project's root."""
    results = Path("results") / node.preset / node.study
    if node.kind == "stage":
        stage = node.plan.study.file.stages[node.name]
        models = Path("models") / node.preset / node.study
        tensors = [models / node.name / node.shard / f"{name}.safetensors" for name in stage.tensors]
        return [results / "shards" / node.name / node.shard / f"{t}.parquet" for t in stage.tables] + tensors
    if node.kind == "table":
        if node.name not in node.plan.tables:
            raise ConfigError(f"no table {node.name!r} at preset {node.preset}", where=node.plan.study.where)
        return [results / f"{node.name}.parquet"]
    if node.kind == "verdicts":
        summary = Path("results") / node.preset / f"{node.study}.verdicts.json"
        return [results / "verdicts.parquet", results / "verdict_parts.parquet", summary]
    if node.kind == "figure":
        figures = Path("figures") / node.preset / node.study
        return [figures / f"{node.name}.{suffix}" for suffix in layout.FIGURE_FORMATS]
    site = Path("report") / node.preset
    return [site / "notebooks" / f"{node.study}.html"] if node.kind == "notebook" else [site / f"{node.study}.html"]


def node_of(path: str | Path) -> Node:
    """The node that writes a file.

    Args:
        path: relative to the project's root.

    Raises:
        ConfigError: no node writes it.
    """
    parts = Path(path).parts
    node = _parse(parts)
    if node is None or Path(path) not in outputs(node):
        raise ConfigError("nothing in the pipeline writes this file", where=str(path), remedy="see `restudy status`")
    return node


def _parse(parts: tuple[str, ...]) -> Node | None:
    match parts:
        case ("results", preset, study, "shards", stage, shard, _) | (
            "models",
            preset,
            study,
            stage,
            shard,
            _,
        ):
            return Node("stage", preset, study, stage, shard)
        case ("results", preset, study, "verdicts.parquet" | "verdict_parts.parquet"):
            return Node("verdicts", preset, study)
        case ("results", preset, file) if file.endswith(".verdicts.json"):
            return Node("verdicts", preset, file.removesuffix(".verdicts.json"))
        case ("results", preset, study, table):
            return Node("table", preset, study, Path(table).stem)
        case ("figures", preset, study, file):
            return Node("figure", preset, study, Path(file).stem)
        case ("report", preset, "notebooks", page):
            return Node("notebook", preset, Path(page).stem)
        case ("report", preset, page):
            return Node("page", preset, Path(page).stem)
    return None


def expected(slugs: Iterable[str], preset: str) -> dict[Path, Node]:
    """Every output of some studies at a preset, with its node, in the order of the pipeline."""
    return {path: node for slug in slugs for node in nodes(slug, preset) for path in outputs(node)}


def volatile(node: Node, path: Path) -> bool:
    """Whether a file is outside the same-bytes contract (timings)."""
    return node.kind in ("stage", "table") and path.stem in {
        table for stage in node.plan.stages.values() for table in stage.volatile
    }

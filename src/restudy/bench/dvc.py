"""dvc.yaml and fingerprints.json: DVC versions and shares what Snakemake computes.

Three stages a study and preset: models, results, figures. Each depends on its fingerprint in fingerprints.json and on
the stage above, never on source folders: DVC compares raw bytes, and a docstring would trigger. DVC's run-cache then
serves results that anybody computed before with the same fingerprints.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import yaml

from restudy import layout
from restudy.bench.outputs import outputs
from restudy.catalog.plan import plan
from restudy.catalog.study import slugs
from restudy.errors import RestudyError
from restudy.provenance.fingerprint import Node, fingerprint, forget, nodes
from restudy.results.files import write_atomically

FILE = "fingerprints.json"
PRESETS = ("smoke", "laptop", "workstation")
# The text of a command is part of the stage: it stays as it is.
COMMAND = "restudy dvc-stage {part} {preset} {study}"


def fingerprints() -> dict[str, dict[str, dict[str, str]]]:
    """For every preset and study, the fingerprint of its models, results and figures."""
    return {preset: {slug: _of(slug, preset) for slug in slugs()} for preset in PRESETS}


def _of(slug: str, preset: str) -> dict[str, str]:
    parts: dict[str, list[Node]] = {"models": [], "results": [], "figures": []}
    for node in nodes(slug, preset):
        if node.kind == "stage":
            parts["models"].append(node)
        elif node.kind in ("table", "verdicts"):
            parts["results"].append(node)
        elif node.kind == "figure":
            parts["figures"].append(node)
    return {name: _digest(found) for name, found in parts.items()}


def _digest(found: list[Node]) -> str:
    return hashlib.sha256("\n".join(fingerprint(node) for node in found).encode()).hexdigest()[:32]


def write_fingerprints() -> bool:
    """Write fingerprints.json where it differs; True when it changed."""
    text = json.dumps(fingerprints(), indent=1, sort_keys=True) + "\n"
    path = layout.root() / FILE
    if path.is_file() and path.read_text() == text:
        return False
    write_atomically(path, text.encode())
    return True


def dvc_yaml() -> str:
    """The content of dvc.yaml for the studies found."""
    stages: dict[str, Any] = {}
    for preset in PRESETS:
        for slug in slugs():
            stages |= _stages(slug, preset)
    head = "# Written by `restudy dvc-yaml`; a test holds it equal to the studies found.\n"
    return head + yaml.safe_dump({"stages": stages}, sort_keys=False, width=120)


def _stages(slug: str, preset: str) -> dict[str, Any]:
    has_models = any(stage.tensors for stage in plan(slug, preset).stages.values())
    results, models = f"results/{preset}/{slug}", f"models/{preset}/{slug}"
    found: dict[str, Any] = {}

    def stage(part: str, deps: list[str], outs: list[str], **more: Any) -> None:
        found[f"{preset}-{slug}-{part}"] = {
            "cmd": COMMAND.format(part=part, preset=preset, study=slug),
            **({"deps": deps} if deps else {}),
            "params": [{FILE: [f"{preset}.{slug}.{part}"]}],
            "outs": outs,
            **more,
        }

    if has_models:
        stage("models", [], [models])
    metrics = [{f"results/{preset}/{slug}.verdicts.json": {"cache": False}}]
    stage("results", [models] if has_models else [], [results], metrics=metrics)
    stage("figures", [results], [f"figures/{preset}/{slug}"])
    return found


def run_stage(part: str, preset: str, slug: str, cores: int) -> int:
    """What a stage of dvc.yaml does: settle, run Snakemake's targets, and refuse if the source moved meanwhile.

    Args:
        part: models, results or figures.
        preset: name of the preset.
        slug: the study.
        cores: jobs at a time.

    Raises:
        RestudyError: fingerprints.json is not what the source says, before or after.
    """
    from restudy.bench.run import run_paths

    stored = json.loads((layout.root() / FILE).read_text())[preset][slug][part]
    if stored != _of(slug, preset)[part]:
        raise RestudyError(
            "is not what the source says", where=FILE, remedy="run `restudy fingerprints`, then `dvc repro`"
        )
    kinds = {"models": ("stage",), "results": ("table", "verdicts"), "figures": ("figure",)}[part]
    wanted = [p.as_posix() for n in nodes(slug, preset) if n.kind in kinds for p in outputs(n)]
    code = run_paths(preset, [slug], wanted, cores)
    forget()
    if code == 0 and stored != _of(slug, preset)[part]:
        raise RestudyError("the source changed during the run", where=FILE, remedy="run `dvc repro` again")
    return code

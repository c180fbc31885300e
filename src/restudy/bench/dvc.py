"""dvc.yaml and fingerprints.json: DVC versions and shares what Snakemake computes.

A stage of DVC for each stage of a study, one for its results and one for its figures and pages. Each depends on its
fingerprint in fingerprints.json and on the outputs of the stages above, never on source folders: DVC compares raw
bytes, and a docstring would trigger. DVC's run-cache then serves what anybody computed before with the same
fingerprints. `laptop` stands in dvc.yaml, other presets in workflow/dvc/<preset>/dvc.yaml.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml

from restudy import layout
from restudy.bench.keep import bring_back
from restudy.bench.outputs import outputs
from restudy.catalog.plan import plan
from restudy.catalog.study import slugs
from restudy.errors import ConfigError, RestudyError
from restudy.provenance.fingerprint import Node, fingerprint, forget, nodes
from restudy.results.files import write_atomically

FILE = "fingerprints.json"
PRESETS = ("laptop", "smoke", "workstation")
# The text of a command is part of the stage: it stays as it is.
COMMAND = "restudy dvc-stage {part} {preset} {study}"
RESULTS, FIGURES = "results", "figures"
_PART_OF_KIND = {"table": RESULTS, "verdicts": RESULTS, "figure": FIGURES, "notebook": FIGURES, "page": FIGURES}


def part_of(node: Node) -> str:
    """The part of a study that a node belongs to: the name of its stage, `results` or `figures`."""
    return node.name if node.kind == "stage" else _PART_OF_KIND[node.kind]


def parts(slug: str, preset: str) -> dict[str, list[Node]]:
    """The nodes of a study by part, in the order of the pipeline.

    Raises:
        ConfigError: a stage has the name of one of our own parts.
    """
    if taken := {RESULTS, FIGURES} & set(plan(slug, preset).stages):
        raise ConfigError(f"a stage cannot be called {taken.pop()!r}", where=plan(slug, preset).study.where)
    found: dict[str, list[Node]] = {}
    for node in nodes(slug, preset):
        found.setdefault(part_of(node), []).append(node)
    return found


def fingerprints() -> dict[str, dict[str, dict[str, str]]]:
    """For every preset and study, the fingerprint of each part."""
    return {preset: {slug: part_digests(slug, preset) for slug in slugs()} for preset in PRESETS}


def part_digests(slug: str, preset: str) -> dict[str, str]:
    """The fingerprints of a study's parts."""
    return {name: _digest(found) for name, found in parts(slug, preset).items()}


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


def pipeline_file(preset: str) -> Path:
    """The dvc.yaml of a preset, relative to the project's root."""
    return Path("dvc.yaml") if preset == PRESETS[0] else Path("workflow/dvc", preset, "dvc.yaml")


def pipelines() -> dict[Path, str]:
    """The content of every dvc.yaml for the studies found."""
    head = "# Written by `restudy dvc-yaml`; a test holds it equal to the studies found.\n"
    found = {}
    for preset in PRESETS:
        path = pipeline_file(preset)
        stages: dict[str, Any] = {}
        if preset == PRESETS[0]:
            # It always runs, first: DVC then sees what changed, and nothing uncommitted is lost.
            outs = [{FILE: {"cache": False}}]
            stages["fingerprints"] = {"cmd": "restudy fingerprints --keep", "always_changed": True, "outs": outs}
        for slug in slugs():
            stages |= {f"{slug}-{part}": stage for part, stage in _stages(slug, preset).items()}
        up = "/".join([".."] * (len(path.parts) - 1))
        if up:
            stages = {name: {"wdir": up, **stage} for name, stage in stages.items()}
        found[path] = head + yaml.safe_dump({"stages": stages}, sort_keys=False, width=120)
    return found


def _stages(slug: str, preset: str) -> dict[str, Any]:
    found, file = {}, plan(slug, preset).study.file
    for part, members in parts(slug, preset).items():
        if part == RESULTS:
            above = [out for stage in plan(slug, preset).stages for out in part_outs(slug, preset, stage)]
        elif part == FIGURES:
            above = part_outs(slug, preset, RESULTS)
        else:
            above = [out for stage in file.stages[part].needs for out in part_outs(slug, preset, stage)]
        summaries = [p.as_posix() for n in members if n.kind == "verdicts" for p in outputs(n) if p.suffix == ".json"]
        outs = [out for out in part_outs(slug, preset, part) if out not in summaries]
        found[part] = {
            "cmd": COMMAND.format(part=part, preset=preset, study=slug),
            **({"deps": above} if above else {}),
            "params": [{FILE: [f"{preset}.{slug}.{part}"]}],
            "outs": outs,
            **({"metrics": summaries} if summaries else {}),
        }
    return found


def part_outs(slug: str, preset: str, part: str) -> list[str]:
    """The files and folders of a part; folders where a part owns the whole folder, `.run.json` included."""
    results, models = f"results/{preset}/{slug}", f"models/{preset}/{slug}"
    if part == FIGURES:
        site = f"report/{preset}"
        pages = [f"{site}/{slug}.html", f"{site}/notebooks/{slug}.html", f"{site}/downloads/{slug}"]
        return [f"figures/{preset}/{slug}", *pages]
    if part == RESULTS:
        return [p.as_posix() for n in parts(slug, preset)[part] for p in outputs(n)]
    stage = plan(slug, preset).study.file.stages[part]
    tables, tensors = [f"{results}/shards/{part}"], [f"{models}/{part}"]
    return (tables if stage.tables else []) + (tensors if stage.tensors else [])


def run_stage(part: str, preset: str, slug: str, cores: int) -> int:
    """What a stage of dvc.yaml does: bring back, settle, run Snakemake's targets, refuse if the source moved meanwhile.

    Args:
        part: name of a stage, results or figures.
        preset: name of the preset.
        slug: the study.
        cores: jobs at a time.

    Raises:
        RestudyError: fingerprints.json is not what the source says, before or after.
    """
    from restudy.bench.run import run_paths

    path = layout.root() / FILE
    stored = json.loads(path.read_text()) if path.is_file() else {}
    wanted = stored.get(preset, {}).get(slug, {}).get(part)
    if wanted != part_digests(slug, preset).get(part):
        raise RestudyError("is not what the source says", where=FILE, remedy="run `dvc repro` without --single-item")
    targets = [p for node in parts(slug, preset)[part] for p in outputs(node)]
    bring_back(targets)
    code = run_paths(preset, [slug], [p.as_posix() for p in targets], cores)
    forget()
    if code == 0 and wanted != part_digests(slug, preset).get(part):
        raise RestudyError("the source changed during the run", where=FILE, remedy="run `dvc repro` again")
    return code

"""A small project on disk with made-up studies and results, stamped as the pipeline stamps them."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from restudy import layout
from restudy.bench.facts import facts_of
from restudy.bench.outputs import outputs
from restudy.claims.paper import paper_verdict
from restudy.claims.table import PART_SCHEMA, VERDICT_SCHEMA, from_table
from restudy.provenance import forget
from restudy.provenance.fingerprint import Node, fingerprint, nodes
from restudy.provenance.stamp import stamp_bytes, stamp_json, stamp_parquet

TOPICS = [
    "Sanity checks for saliency maps", "Pruning attention heads", "Batch normalisation and smoothness", "Large batches",
    "Talking heads attention", "Neural ordinary differential equations", "Trellis networks", "Generative replay",
]  # fmt: skip
SAYS = [
    "With only the logit layer random, guided backprop maps stay closer to the trained ones than gradient maps do.",
    "After a full cascade the signed correlation of gradient maps with the trained ones vanishes.",
    "Most heads can be removed at test time without a loss of more than half a point.",
    "Training with large batches ends in sharper minima, and generalises worse.",
    "The score grows with the number of seeds that are averaged, over the whole range tested.",
    "Both arms reach the same accuracy to within one point.",
]
KINDS = ["direction", "threshold", "non_inferiority", "no_difference", "trend", "ordering", "exact", "qualitative"]
OUTCOMES = [
    ("reproduced", ""), ("reproduced", ""), ("reproduced", ""), ("partially", "magnitude"),
    ("partially", "family-wise error"),
    ("not reproduced", "negligible"), ("not reproduced", "contradicted"), ("inconclusive", "width"),
    ("inconclusive", "gate"),
    ("not testable", "preset laptop: judged at workstation, paper"), ("error", "statistic: no rows"),
]  # fmt: skip
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="468pt" height="200pt" viewBox="0 0 468 200"><rect width="468" '
    'height="200" fill="#fff"/><path d="M40 10V170H450" fill="none" stroke="#333"/><path d="M40 150C140 140 180 60 '
    '440 30" fill="none" stroke="#0072B2" stroke-width="2"/><path d="M40 140C160 150 240 120 440 110" fill="none" '
    'stroke="#D55E00" stroke-width="2" stroke-dasharray="6 3"/></svg>\n'
)


@contextmanager
def project(root: Path) -> Iterator[Path]:
    """Make `root` the project that restudy sees: our own modules by link, studies of its own, the real lock."""
    package, studies = root / "src" / "restudy", root / "src" / "restudy" / "studies"
    studies.mkdir(parents=True)
    for entry in layout.PACKAGE.iterdir():
        if entry.name not in ("studies", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    (studies / "__init__.py").write_text('"""Studies."""\n')
    (root / "Snakefile").write_text("")
    shutil.copy(layout.PACKAGE.parents[1] / "constraints.txt", root / "constraints.txt")
    before = (layout.PACKAGE, layout.STUDIES, os.environ.get("RESTUDY_ROOT"))
    layout.PACKAGE, layout.STUDIES = package, studies
    os.environ["RESTUDY_ROOT"] = str(root)
    layout.root.cache_clear()
    forget()
    try:
        yield root
    finally:
        layout.PACKAGE, layout.STUDIES = before[:2]
        os.environ.pop("RESTUDY_ROOT")
        if before[2]:
            os.environ["RESTUDY_ROOT"] = before[2]
        layout.root.cache_clear()
        forget()


TABLES = {"training": ["seed", "value"]}


def study_file(title: str, **changes: Any) -> dict[str, Any]:
    """A valid study.yaml."""
    presets = {
        name: {"seeds": seeds, "budget_core_minutes": 10.0}
        for name, seeds in {"smoke": 1, "laptop": 5, "workstation": 5, "paper": 10}.items()
    }
    return {
        "title": title,
        "citation": {"authors": "A. Author, B. Writer", "title": title, "venue": "NeurIPS", "year": 2018,
                     "arxiv": "1810.03292", "url": "https://example.org/paper"},
        "summary": "The paper trains a network and compares two ways of looking at it.\n\nWe train a smaller one on "
                   "smaller data, five times, and compare the same two ways.",
        "deviations": [{"what": "architecture", "paper": "Inception v3", "here": "three convolutions, 32/64/256"},
                       {"what": "training data", "paper": "ImageNet, 1.2 million images", "here": "Fashion-MNIST"}],
        "stages": {"train": {"function": "train.train", "shards": ["seeds"], "tables": TABLES}},
        "parameters": {"train": {"epochs": {"type": "integer", "default": 5, "says": "passes over the training set"}}},
        "figures": {"F1_curves": {"function": "figures.curves", "tables": ["training"], "says": "Accuracy by epoch.",
                                  "where": "figure 2", "alt": "Accuracy rises faster with the second method."}},
        "presets": presets,
    } | changes  # fmt: skip


def claim(number: int, rng: random.Random) -> dict[str, Any]:
    """A claim as in claims.yaml."""
    kind = KINDS[number % len(KINDS)] if number > 4 else "direction"
    needs = {"threshold": {"bound": 0.05, "side": "above", "sesoi": 0.1}, "non_inferiority": {"margin": 0.1},
             "no_difference": {"margin": 0.1}, "exact": {"tolerance": 1e-6}, "qualitative": {}}  # fmt: skip
    return {
        "id": f"A{number}", "says": SAYS[rng.randrange(len(SAYS))], "where": "section 4, figure 4", "mission": ["M1"],
        "kind": kind, "statistic": "difference_of_means", "unit": "seed", "primary": number <= 4,
        "presets": ["laptop", "workstation", "paper"], "why": "Half of the pilot's effect.",
        "control": "two_random_nets" if number % 3 else None, **needs.get(kind, {"sesoi": 0.15}),
    }  # fmt: skip


def verdict(entry: dict[str, Any], slug: str, outcome: tuple[str, str], rng: random.Random) -> dict[str, Any]:
    """A row of verdicts.parquet that goes with a claim and an outcome."""
    word, reason = outcome
    kind = entry["kind"]
    if kind == "qualitative":
        word, reason = "not testable", "qualitative"
    centre = {"reproduced": 0.35, "partially": 0.1, "not reproduced": 0.04, "inconclusive": 0.12}.get(word)
    if reason == "contradicted":
        centre = -0.2
    width = 0.2 if word == "inconclusive" else 0.03 + 0.04 * rng.random()
    row: dict[str, Any] = dict.fromkeys(VERDICT_SCHEMA.names)
    row |= {
        "study": slug, "claim": entry["id"], "kind": kind, "primary": entry["primary"], "verdict": word, "flags": [],
        "alpha": 0.05, "look": 1, "n": 0, "n_failed": 0, "gate": "", "control_verdict": "", "unit": "seed",
        "reason": reason, "lock": "", "fingerprint": "", "scale": "identity", "leave_one_out": "",
        "sesoi": entry.get("sesoi"), "margin": entry.get("margin"), "bound": entry.get("bound"),
    }  # fmt: skip
    if centre is None:
        return row
    centre += 0.02 * rng.random()
    row |= {"estimate": centre, "ci_low": centre - width, "ci_high": centre + width, "p_value": 0.004, "p_holm": 0.012,
            "p_sign_flip": 0.031, "prob_superiority": 1.0, "n": 5, "leave_one_out": f"5 {word}",
            "gate": f"test_accuracy 0.87 >= 0.8: {'failed' if reason == 'gate' else 'passed'}",
            "control_verdict": "not reproduced" if entry["control"] else "",
            "seeds_needed": 14 if reason == "width" else None}  # fmt: skip
    if rng.random() < 0.1:
        row["flags"] = ["fragile"]
    return row


def write_study(slug: str, file: dict[str, Any], claims: list[dict[str, Any]]) -> None:
    """Write the folder of a study."""
    folder = layout.STUDIES / slug
    folder.mkdir()
    (folder / "study.yaml").write_text(yaml.safe_dump(file, allow_unicode=True), encoding="utf-8")
    kept = [{k: v for k, v in entry.items() if v is not None} for entry in claims]
    (folder / "claims.yaml").write_text(yaml.safe_dump(kept, allow_unicode=True), encoding="utf-8")
    for module in ("__init__", "train", "figures", "statistics"):
        (folder / f"{module}.py").write_text('"""Made up."""\n')
    forget()


def write_results(slug: str, preset: str, rows: list[dict[str, Any]], parts: list[dict[str, Any]] | None = None,
                  *, day: int = 1) -> None:  # fmt: skip
    """Write stamped outputs for every job of a study but its page."""
    judged = from_table(pa.Table.from_pylist(rows, schema=VERDICT_SCHEMA))
    brief = {"paper": paper_verdict([v for v in judged if v.primary]).text if preset != "smoke" else None}
    for node in nodes(slug, preset):
        if node.kind != "page":
            _write_node(node, rows, parts or [], brief, day)


def _write_node(node: Node, rows: list[dict[str, Any]], parts: list[dict[str, Any]], brief: dict[str, Any],
                day: int) -> None:  # fmt: skip
    facts = facts_of(node)
    for path in outputs(node):
        target = layout.root() / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(_content(node, path, rows, parts, brief, facts))
        run = {"fingerprint": fingerprint(node), "finished": f"2026-03-{day:02}T10:00:00+00:00", "host": "bench-1",
               "cpu": "Example CPU 3 GHz", "cores": 2, "python": "3.11.9", "platform": "Linux", "commit": "0" * 40,
               "dirty": False, "wall_seconds": 42.0, "cpu_seconds": 61.5, "peak_mb": 512.0}  # fmt: skip
        layout.run_json(target).write_text(json.dumps(run))


def _content(node: Node, path: Path, rows: Any, parts: Any, brief: dict[str, Any], facts: Any) -> bytes:
    if path.name == "verdicts.parquet":
        return stamp_parquet(pa.Table.from_pylist(rows, schema=VERDICT_SCHEMA), facts)
    if path.name == "verdict_parts.parquet":
        return stamp_parquet(pa.Table.from_pylist(parts, schema=PART_SCHEMA), facts)
    if path.suffix == ".json":
        return stamp_json(brief, facts)
    if path.suffix == ".parquet":
        table = {"seed": [0, 1], "metric": ["accuracy"] * 2, "value": [0.91, 0.92], "curve": [[0.1, 0.2], [0.3, 0.4]]}
        return stamp_parquet(pa.table(table), facts)
    if path.suffix == ".svg":
        return stamp_bytes(SVG.encode(), ".svg", facts)
    if path.suffix == ".html":
        return stamp_bytes(b"<!DOCTYPE html><html lang=en><title>n</title><p>notebook</p></html>", ".html", facts)
    return b"%PDF-1.4" if path.suffix == ".pdf" else b"\x89PNG\r\n\x1a\n"


def fabricate(papers: int = 25, each: int = 12, seed: int = 0, preset: str = "laptop") -> list[str]:
    """Write `papers` studies with results; the last is not run, the one before it only begun. Gives their slugs."""
    rng = random.Random(seed)
    slugs = []
    for number in range(papers):
        slug = f"study_{chr(97 + number)}"
        slugs.append(slug)
        lean = rng.random()
        entries = [claim(n, rng) for n in range(1, each + 1)]
        write_study(slug, study_file(f"{TOPICS[number % len(TOPICS)]} {number + 1}"), entries)
        outcomes = [OUTCOMES[0] if rng.random() < lean else rng.choice(OUTCOMES) for _ in entries]
        rows = [verdict(e, slug, o, rng) for e, o in zip(entries, outcomes, strict=True)]
        if number < papers - 1 or papers == 1:
            write_results(slug, preset, rows, day=number + 1)
        if number == papers - 2 and papers > 2:
            for path in (layout.root() / "results" / preset / slug).glob("verdict*"):
                path.unlink()
    return slugs

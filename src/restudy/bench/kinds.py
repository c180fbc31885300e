"""Results that another kind of machine made: equal fingerprints, but not equal numbers (docs/decisions/0005)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from restudy import layout
from restudy.bench.facts import run_facts
from restudy.bench.outputs import outputs
from restudy.provenance import kernels
from restudy.provenance.fingerprint import Node, nodes
from restudy.provenance.stamp import kernels_in


def kernels_here(node: Node) -> str:
    """The kernel set that a job would have on this machine."""
    return kernels.name("portable" if node.plan.spec.numerics == "portable" else None)


def elsewhere_line(files: Mapping[Path, Node]) -> str | None:
    """One line that names the other kinds of machine which made some results; None where there are none.

    Args:
        files: tables and tensors, relative to the project's root, with their nodes; others are passed over.
    """
    found: Counter[str] = Counter()
    here: dict[tuple[str, str], str] = {}
    for path, node in files.items():
        here.setdefault((node.preset, node.study), kernels_here(node))
        found.update(set(kernels_in(layout.root() / path)) - {here[node.preset, node.study]})
    if not found:
        return None
    made = "; ".join(f"{name} ({n} files)" for name, n in sorted(found.items()))
    return f"made on another kind of machine: {made}; this one: {'; '.join(sorted(set(here.values())))}"


def kernels_of_study(slug: str, preset: str) -> list[str]:
    """The kernel sets that computed a study's stages, from the facts beside them; empty where none was recorded."""
    stages = (run_facts(outputs(node)[0]) for node in nodes(slug, preset) if node.kind == "stage")
    return sorted({str(facts["kernels"]["name"]) for facts in stages if facts.get("kernels")})

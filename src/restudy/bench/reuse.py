"""A job that another preset has already done, with the very same fingerprint, is taken over instead of done again.

A preset derived from laptop with more seeds trains only the seeds that laptop does not have.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from restudy import layout
from restudy.bench.facts import facts_of
from restudy.bench.outputs import outputs
from restudy.provenance.fingerprint import Node, fingerprint
from restudy.provenance.stamp import kernels_in, stamp_parquet, stamp_tensors, verify
from restudy.results.tables import read_table


def elsewhere(node: Node) -> tuple[str, dict[Path, bytes]] | None:
    """The preset that has a stage's job with this fingerprint, and its outputs stamped for this preset."""
    wanted, paths = fingerprint(node), outputs(node)
    for preset in sorted(p.name for p in (layout.root() / paths[0].parts[0]).glob("*/") if p.name != node.preset):
        others = [layout.root().joinpath(path.parts[0], preset, *path.parts[2:]) for path in paths]
        if all(other.is_file() and verify(other, wanted) is None for other in others):
            return preset, {path: _stamped(node, other) for path, other in zip(paths, others, strict=True)}
    return None


def _stamped(node: Node, other: Path) -> bytes:
    facts = replace(facts_of(node), kernels=kernels_in(other))  # who computed it, not who took it over
    if other.suffix == ".parquet":
        return stamp_parquet(read_table(other).replace_schema_metadata(None), facts)
    from safetensors.torch import load_file

    return stamp_tensors(load_file(other), facts)

"""Whether stored outputs are what the source of today would give."""

from __future__ import annotations

from pathlib import Path

from restudy.bench.status import State, state_of
from restudy.errors import RestudyError
from restudy.provenance.fingerprint import Node


def state(path: Path, node: Node) -> State:
    """The state of an output; `unknown`, with the reason, where the source itself cannot be read."""
    try:
        return state_of(path, node)
    except RestudyError as error:
        return State(path, node, "unknown", (str(error),))

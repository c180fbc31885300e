"""Fresh or stale, and why: read from the outputs themselves, without Snakemake's records."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.bench.outputs import expected, node_of
from restudy.errors import ConfigError, ResultError
from restudy.provenance.fingerprint import Node, fingerprint, ingredients
from restudy.provenance.stamp import read_stamp


@dataclass(frozen=True)
class State:
    """An output's state: `fresh`, `stale`, `tampered`, `broken` or `missing`, with the reasons for stale."""

    path: Path
    node: Node
    state: str
    reasons: tuple[str, ...] = ()


def state_of(path: Path, node: Node) -> State:
    """The state of one output."""
    full = layout.root() / path
    if not full.is_file():
        return State(path, node, "missing")
    try:
        facts, content = read_stamp(full)
    except ResultError as error:
        return State(path, node, "broken", (error.what,))
    if content != facts.content:
        return State(path, node, "tampered", ("its content does not match its own sum",))
    if facts.fingerprint == fingerprint(node):
        return State(path, node, "fresh")
    return State(path, node, "stale", tuple(changes(facts.ingredients, ingredients(node))))


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """What changed between two lists of ingredients: `group name: old -> new`."""
    found = []
    for group in sorted(old.keys() | new.keys()):
        before, after = old.get(group), new.get(group)
        if not isinstance(before, dict) or not isinstance(after, dict):
            if before != after:
                found.append(f"{group}: {before} -> {after}")
            continue
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                found.append(f"{group} {name}: {_short(before.get(name))} -> {_short(after.get(name))}")
    return found


def _short(value: Any) -> str:
    if value is None:
        return "absent"
    text = str(value)
    return text[:12] if len(text) in (16, 64) and " " not in text else text


def status(slugs: Iterable[str], preset: str) -> list[State]:
    """The state of every output of some studies at a preset."""
    return [state_of(path, node) for path, node in expected(slugs, preset).items()]


def lines(states: Iterable[State], everything: bool = False) -> list[str]:
    """Every output that is not fresh with its reasons; one line for a study of which nothing is there.

    Args:
        states: of whole studies. everything: every output in a line, fresh ones as well.
    """
    studies: dict[tuple[str, str], list[State]] = {}
    for state in states:
        studies.setdefault((state.node.preset, state.node.study), []).append(state)
    found = []
    for (preset, slug), own in studies.items():
        if not everything and all(state.state == "missing" for state in own):
            found.append(
                f"not run   {slug}: `make reproduce PRESET={preset} STUDY={slug}` makes its {len(own)} outputs"
            )
            continue
        for state in own:
            if everything or state.state != "fresh":
                found += [f"{state.state:<9} {state.path}", *(f"          {reason}" for reason in state.reasons[:6])]
    return found


def explain(target: str) -> str:
    """Why an output is stale, down to the change that started it.

    Args:
        target: a path relative to the project's root.

    Raises:
        ConfigError: nothing in the pipeline writes it.
    """
    path = Path(target)
    if path.is_absolute():
        path = Path(layout.relative(path))
    here = state_of(path, node_of(path))
    lines = [f"{path}: {here.state}"]
    groups: dict[str, list[str]] = {"code": [], "parameters": [], "data": [], "environment": [], "upstream": []}
    for reason in here.reasons:
        groups.setdefault(reason.split(" ", 1)[0], []).append(reason)
    for group, reasons in groups.items():
        lines += [f"  {reason}" for reason in reasons if group != "upstream"]
    for reason in groups["upstream"]:
        label = reason.split(" ", 1)[1].partition(":")[0]
        lines.append(f"  {reason}")
        lines += [f"    {line}" for line in _why(here.node, label)]
    return "\n".join(lines)


def _why(node: Node, label: str) -> list[str]:
    """The reasons of an upstream node, by its label `kind/name/shard`."""
    kind, name, shard = [*label.split("/"), "", ""][:3]
    above = Node(kind, node.preset, node.study, name, shard)
    try:
        from restudy.bench.outputs import outputs

        found = state_of(outputs(above)[0], above)
    except ConfigError:
        return ["no longer part of the study"]
    return [f"{found.path}: {found.state}", *(f"  {r}" for r in found.reasons if not r.startswith("upstream"))]

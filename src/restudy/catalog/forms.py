"""Short forms of study.yaml: columns of tables, functions named by their stage, costs in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

TYPES: Final = ("int", "float", "str", "bool", "floats", "doubles", "ints")
"""Types of columns; `floats` are lists of float32, `doubles` of float64, `ints` of int64."""
USUAL: Final[Mapping[str, str]] = {
    **dict.fromkeys(("seed", "step", "epoch"), "int"),
    "value": "float",
    **dict.fromkeys(("condition", "arm", "method", "net", "pair", "claim", "metric", "unit"), "str"),
}
"""Columns that need no type."""
_TERM = re.compile(r"(?:(?:\d[\d_,.]*)\s*x\s*)*\d[\d_,.]*\s*ms")
_NUMBER = re.compile(r"\d[\d_,.]*")
_FIGURE = re.compile(r"[A-Z]+\d+[a-z]?_")


def columns_of(tables: Any) -> Any:
    """Read the tables of a stage: `{toy: [seed, arm, run: int, value]}` -> {"toy": {"seed": "int", ...}}.

    Raises:
        ValueError: a column without a type that is not usual, an unknown type, or a column named twice.
    """
    if not isinstance(tables, Mapping):
        raise ValueError("give each table its columns, as in `toy: [seed, arm, run: int, value]`")
    return {name: dict(_columns(name, columns)) for name, columns in tables.items()}


def _columns(table: str, columns: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(columns, list) or not columns:
        raise ValueError(f"{table}: a list of columns is needed")
    seen = set()
    for column in columns:
        pair = column if isinstance(column, Mapping) else {column: USUAL.get(column)}
        ((name, kind),) = pair.items()
        if kind is None:
            raise ValueError(f"{table}.{name}: needs a type, as in `{name}: int`")
        if kind not in TYPES:
            raise ValueError(f"{table}.{name}: unknown type {kind!r}; known: {', '.join(TYPES)}")
        if name in seen:
            raise ValueError(f"{table}.{name}: named twice")
        seen.add(name)
        yield name, kind


def cost_lines(cost: Any) -> Any:
    """Read the cost of a preset: `{train: 5 x 470 x 100 ms + 2000 ms}` -> [{"stage": "train", "ms": 237000.0}].

    Raises:
        ValueError: not a sum of products that end in `ms`.
    """
    if not isinstance(cost, Mapping):
        raise ValueError("give each stage its time, as in `train: 5 x 470 x 100 ms`")
    return [{"stage": stage, "ms": _milliseconds(stage, str(text))} for stage, text in cost.items()]


def _milliseconds(stage: str, text: str) -> float:
    total = 0.0
    for term in text.split("+"):
        if not _TERM.fullmatch(term.strip()):
            raise ValueError(f"{stage}: {term.strip()!r} is no time; write it like `5 x 470 x 100 ms + 2000 ms`")
        product = 1.0
        for number in _NUMBER.findall(term):
            product *= float(number.replace(",", "").replace("_", ""))
        total += product
    return total


def with_functions(content: Any) -> Any:
    """Name the functions that a study.yaml leaves out: `experiment.<stage>`, and `figures.<name>` less its number."""
    if not isinstance(content, Mapping):
        return content
    found = dict(content)
    for key, default in (("stages", _of_stage), ("figures", _of_figure)):
        if isinstance(entries := found.get(key), Mapping):
            found[key] = {
                name: {"function": default(str(name)), **entry} if isinstance(entry, Mapping) else entry
                for name, entry in entries.items()
            }
    return found


def _of_stage(name: str) -> str:
    return f"experiment.{name}"


def _of_figure(name: str) -> str:
    return f"figures.{_FIGURE.sub('', name, count=1).lower()}"

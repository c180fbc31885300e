"""Calling a study's statistics: by name, once each, with every failure turned into one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import pyarrow as pa

from ..errors import ClaimError, RestudyError
from .schema import Claim

Tables = Mapping[str, pa.Table]
Statistics = ModuleType | Mapping[str, Callable[[Tables], pa.Table]]


class Caller:
    """Statistics of one study over one set of results tables; each is computed once."""

    def __init__(self, statistics: Statistics, tables: Tables) -> None:
        self._statistics, self._tables = statistics, tables
        self._done: dict[str, pa.Table | ClaimError] = {}

    def __call__(self, name: str | None, where: str) -> pa.Table:
        """The table of statistic ``name``. Raises ClaimError when it is absent, fails or returns no table."""
        if name is None:
            raise ClaimError("statistic: none is named", where=where, remedy="name a function of statistics.py")
        if name not in self._done:
            self._done[name] = self._call(name, where)
        found = self._done[name]
        if isinstance(found, ClaimError):
            raise found
        return found

    def _call(self, name: str, where: str) -> pa.Table | ClaimError:
        function = lookup(self._statistics, name)
        if function is None:
            return ClaimError(f"statistic: {name} does not exist", where=where, remedy="add it to statistics.py")
        try:
            table = function(self._tables)
        except RestudyError as error:
            return ClaimError(f"statistic {name}: {error.what}", where=where, remedy=error.remedy)
        except Exception as error:  # a study's code may fail in any way; the other claims go on
            message = " ".join(str(error).split())
            return ClaimError(f"statistic {name}: {type(error).__name__}: {message}", where=where)
        if not isinstance(table, pa.Table):
            return ClaimError(f"statistic {name}: returned {type(table).__name__}, not a pyarrow Table", where=where)
        return table


def lookup(statistics: Statistics, name: str) -> Callable[[Tables], Any] | None:
    """The function of that name, or None (private names and non-functions do not count)."""
    if name.startswith("_"):
        return None
    found = statistics.get(name) if isinstance(statistics, Mapping) else getattr(statistics, name, None)
    return found if callable(found) else None


def formula(function: Callable[..., Any] | None) -> str:
    """Say in one line what a statistic computes: its formula, or the first line of its docstring, or "".

    A statistic that is an expression has an attribute ``formula`` and is its own text.
    """
    if function is None:
        return ""
    if hasattr(function, "formula"):
        return str(function)
    # An instance without text of its own shows its class's, which says nothing about this statistic.
    own = isinstance(function, FunctionType) or "__doc__" in getattr(function, "__dict__", {})
    lines = (function.__doc__ or "").strip().splitlines() if own else []
    return lines[0] if lines else ""


def named(claims: Iterable[Claim]) -> dict[str, list[str]]:
    """Every statistic that claims name (also as control or gate) -> ids of the claims that name it."""
    found: dict[str, list[str]] = {}
    for claim in claims:
        for s in (claim, *claim.parts):
            for name in (s.statistic, s.control):
                if name is not None:
                    found.setdefault(name, []).append(claim.id)
        for gate in claim.gate:
            found.setdefault(gate.statistic, []).append(claim.id)
    return found


def missing(claims: Iterable[Claim], statistics: Statistics) -> list[str]:
    """One line for each statistic that a claim names and that does not exist."""
    return [
        f"claim {', '.join(dict.fromkeys(ids))}: no statistic {name}"
        for name, ids in named(claims).items()
        if lookup(statistics, name) is None
    ]

"""Compare the numbers of moved code with those of the code that was frozen, on all stored results of a study."""

from __future__ import annotations

import math
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from restudy import layout
from restudy.bench.frozen_code import frozen_source
from restudy.bench.numbers import Numbers, numbers
from restudy.claims.lock import Compared, Entry
from restudy.errors import ResultError
from restudy.results.tables import read_table

RELATIVE: Final = 1e-12
NAMES: Final = ("replicate", "part", "group", "cluster")
"""Columns of a statistic's table that name a row; the others hold numbers."""


def compare(slug: str, names: Sequence[str], entry: Entry, against: str | None = None) -> Compared:
    """Recompute statistics with frozen and present code on all stored results.

    Args:
        slug: the study.
        names: the statistics that claims name.
        entry: the freeze whose code is compared with.
        against: a git revision that holds that code; found in the history by default.

    Raises:
        ResultError: no stored results, or a number differs (statistic, preset, replicate and values are named).
        ConfigError: the frozen code is not found.
    """
    folders = stored(slug)
    if not folders:
        raise ResultError("no stored results to compare on", where=slug, remedy="run `make reproduce` first")
    with frozen_source(slug, entry, against) as source:
        old = numbers(source, slug, names, folders)
    try:
        new = numbers(layout.PACKAGE.parent, slug, names, folders)
    except subprocess.CalledProcessError as error:
        said = (error.stderr.strip().splitlines() or ["failed"])[-1]
        raise ResultError(f"statistics.py: {said}", where=slug, remedy="mend statistics.py") from None
    for line in differences(old, new):
        raise ResultError(
            f"numbers differ: {line}", where=slug, remedy="freeze without --same-numbers: that is an amendment"
        )
    equal = {name for preset in new for name, columns in new[preset].items() if isinstance(columns, Mapping)}
    if not equal:
        raise ResultError("stored results allow to compute no statistic", where=slug, remedy="run `make reproduce`")
    return Compared(tuple(sorted(folders)), len(equal), tuple(sorted(set(names) - equal)))


def stored(slug: str) -> dict[str, Path]:
    """Find the stored results tables of a study: preset -> their folder.

    Raises:
        ResultError: a table is cut short.
    """
    found = {}
    for folder in sorted((layout.root() / "results").glob(f"*/{slug}")):
        tables = [p for p in folder.glob("*.parquet") if p.stem not in ("verdicts", "verdict_parts")]
        for path in tables:
            read_table(path)
        if tables:
            found[folder.parent.name] = folder
    return found


def differences(old: Numbers, new: Numbers) -> Iterator[str]:
    """Say in a line each where two computations differ by more than 1e-12 (relative; NaN equals NaN)."""
    for preset, statistics in old.items():
        for name, before in statistics.items():
            after = new[preset][name]
            place = f"statistic {name}, preset {preset}"
            if _nothing(before) or _nothing(after):
                if _nothing(before) != _nothing(after):
                    yield f"{place}: frozen code gives {_brief(before)}, present code {_brief(after)}"
                continue
            yield from (f"{place}, {line}" for line in _tables(before, after))


def _nothing(found: Any) -> bool:
    """Whether no number came out: an error, or a table without one."""
    return isinstance(found, str) or not any(value == value for value in found.get("value", [0]))


def _brief(found: Any) -> str:
    return f"`{found}`" if isinstance(found, str) else "a table"


def _tables(old: Mapping[str, list[Any]], new: Mapping[str, list[Any]]) -> Iterator[str]:
    if set(old) != set(new):
        yield f"columns: frozen code gives {', '.join(sorted(old))}, present code {', '.join(sorted(new))}"
        return
    if _renamed(old, new):
        new = {**new, "replicate": old["replicate"]}
    before, after = _rows(old), _rows(new)
    mine, theirs = Counter(key for key, _ in before), Counter(key for key, _ in after)
    for key in sorted((mine - theirs) + (theirs - mine)):
        yield f"replicate {' '.join(key)}: frozen code gives {mine[key]} rows, present code {theirs[key]}"
        return
    for (key, one), (_, other) in zip(before, after, strict=True):
        for column, value in one.items():
            if not _close(value, other[column]):
                both = f"frozen code gives {value!r}, present code {other[column]!r}"
                yield f"replicate {' '.join(key)}, {column}: {both}"


def _renamed(old: Mapping[str, list[Any]], new: Mapping[str, list[Any]]) -> bool:
    """Whether replicates only have other names: as many, distinct, none in common; numbers are compared row by row."""
    mine, theirs = (list(map(str, found.get("replicate", []))) for found in (old, new))
    distinct = len(set(mine)) == len(mine) == len(theirs) == len(set(theirs))
    return distinct and not set(mine) & set(theirs)


def _rows(columns: Mapping[str, list[Any]]) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
    """Sort the rows of a table, since their order means nothing: what names a row, and its numbers by column."""
    names = [name for name in NAMES if name in columns]
    numeric = sorted(set(columns) - set(names), key=lambda name: (name == "value", name))
    keys = zip(*([str(v) for v in columns[name]] for name in names), strict=True)
    values = zip(*(columns[name] for name in numeric), strict=True)
    rows = [(key, dict(zip(numeric, v, strict=True))) for key, v in zip(keys, values, strict=True)]
    return sorted(rows, key=lambda row: (row[0], [_sortable(v) for v in row[1].values()]))


def _sortable(value: Any) -> tuple[bool, Any]:
    missing = value is None or value != value
    return (missing, 0.0 if missing else value)


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=0.0) or (math.isnan(one) and math.isnan(other))
    return bool(one == other)

"""Whether stored verdicts still follow from the stored results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .table import from_table
from .verdict import Verdict

_RELATIVE = 1e-9
_ABSOLUTE = 1e-12


@dataclass(frozen=True, slots=True)
class Difference:
    """One column of one verdict row that does not follow; ``column`` is "row" where a whole row is missing."""

    claim: str
    part: str
    column: str
    stored: Any
    fresh: Any

    def __str__(self) -> str:
        name = f"{self.claim}/{self.part}" if self.part else self.claim
        return f"claim {name}: {self.column}: stored {self.stored!r}, recomputed {self.fresh!r}"


def check(
    stored: pa.Table, fresh: Iterable[Verdict], *, ignore: Iterable[str] = ("lock", "fingerprint", "flags")
) -> list[Difference]:
    """Every difference between a stored verdict table and freshly judged rows, in the stored order.

    Numbers agree within 1e-9 (relative). ``ignore``: columns that say where a row comes from, not what it
    says. Raises ClaimError when the stored table lacks columns.
    """
    old = {(row.claim, row.part): row for row in from_table(stored)}
    new = {(row.claim, row.part): row for row in fresh}
    skip = set(ignore)
    found: list[Difference] = []
    for key in dict.fromkeys([*old, *new]):
        a, b = old.get(key), new.get(key)
        if a is None or b is None:
            found.append(Difference(*key, "row", "present" if a else "absent", "present" if b else "absent"))
            continue
        mine, theirs = a.row(), b.row()
        found += [
            Difference(*key, column, mine[column], theirs[column])
            for column in mine
            if column not in skip and not _same(mine[column], theirs[column])
        ]
    return found


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE) or (math.isnan(a) and math.isnan(b))
    return bool(a == b)

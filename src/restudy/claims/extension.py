"""The declared extension: a second look at more seeds, with wider bounds at both looks."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ClaimError
from .statistics import Tables
from .verdict import Verdict
from .words import ALPHA, ALPHA_EXTENSION, INCONCLUSIVE, WIDTH


def alpha_of(extension: int | None) -> float:
    """One-sided error of each bound: .03 at both looks where an extension is declared, else .05."""
    return ALPHA if extension is None else ALPHA_EXTENSION


def open_for_width(verdict: Verdict) -> bool:
    """True when only the width of the interval kept a claim from a decision: more seeds may settle it."""
    return verdict.verdict == INCONCLUSIVE and verdict.reason == WIDTH


def first_look(tables: Tables, seeds: int) -> dict[str, pa.Table]:
    """The results as they stood at the first look: rows with ``seed`` below ``seeds``."""
    return {
        name: table.filter(pc.less(table.column("seed"), seeds)) if "seed" in table.column_names else table
        for name, table in tables.items()
    }


def may_extend(verdicts: Iterable[Verdict], extension: int | None, seeds: int) -> list[str]:
    """The ids of the primary claims that an extension would judge again.

    Raises ClaimError when the study declares none, or when no primary claim is inconclusive for width.
    """
    rows = list(verdicts)
    study = rows[0].study if rows else "study"
    if extension is None or extension <= seeds:
        raise ClaimError(
            "declares no extension", where=study, remedy="it must be declared before the run, not after its results"
        )
    if any(row.look > 1 for row in rows):
        raise ClaimError("has been extended already", where=study, remedy="there is no third look")
    found = [row.claim for row in rows if row.primary and open_for_width(row)]
    if not found:
        raise ClaimError(
            "no primary claim is inconclusive for width", where=study, remedy="what is decided stays decided"
        )
    return found

"""Verdicts as Arrow tables: the schemas of ``verdicts.parquet`` and ``verdict_parts.parquet``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from ..errors import ClaimError
from .verdict import Verdict

_FIELDS: Final = [
    ("study", pa.string()),
    ("claim", pa.string()),
    ("kind", pa.string()),
    ("primary", pa.bool_()),
    ("verdict", pa.string()),
    ("flags", pa.list_(pa.string())),
    ("estimate", pa.float64()),
    ("ci_low", pa.float64()),
    ("ci_high", pa.float64()),
    ("alpha", pa.float64()),
    ("look", pa.int64()),
    ("sesoi", pa.float64()),
    ("margin", pa.float64()),
    ("p_value", pa.float64()),
    ("p_holm", pa.float64()),
    ("prob_superiority", pa.float64()),
    ("n", pa.int64()),
    ("n_failed", pa.int64()),
    ("seeds_needed", pa.int64()),
    ("gate", pa.string()),
    ("control_verdict", pa.string()),
    ("paper_value", pa.float64()),
    ("unit", pa.string()),
    ("reason", pa.string()),
    ("lock", pa.string()),
    ("fingerprint", pa.string()),
    ("bound", pa.float64()),
    ("side", pa.string()),
    ("scale", pa.string()),
    ("p_sign_flip", pa.float64()),
    ("leave_one_out", pa.string()),
]

VERDICT_SCHEMA: Final = pa.schema(_FIELDS)
"""Columns of ``verdicts.parquet``, one row per claim; units as in :class:`Verdict`."""

PART_SCHEMA: Final = pa.schema([*_FIELDS[:2], ("part", pa.string()), *_FIELDS[2:]])
"""Columns of ``verdict_parts.parquet``, one row per part of a claim."""


def to_table(verdicts: Iterable[Verdict], *, parts: bool = False) -> pa.Table:
    """Verdicts as a table of ``VERDICT_SCHEMA`` (``PART_SCHEMA`` with ``parts=True``), in the given order."""
    schema = PART_SCHEMA if parts else VERDICT_SCHEMA
    rows = [verdict.row() for verdict in verdicts]
    return pa.Table.from_pydict({name: [row[name] for row in rows] for name in schema.names}, schema=schema)


def from_table(table: pa.Table) -> list[Verdict]:
    """The verdicts of a stored table. Raises ClaimError where a column is missing."""
    missing = [name for name in VERDICT_SCHEMA.names if name not in table.column_names]
    if missing:
        raise ClaimError(f"columns are missing: {', '.join(missing)}", where="verdicts", remedy="judge the study again")
    names = {*VERDICT_SCHEMA.names, *(["part"] if "part" in table.column_names else [])}
    rows = table.select([name for name in table.column_names if name in names]).to_pylist()
    return [Verdict(**{"part": "", **row, "flags": tuple(row["flags"] or ())}) for row in rows]

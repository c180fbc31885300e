"""Filter and read the long tables that stages return. numpy and pyarrow only."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def where(table: pa.Table, **columns: object) -> pa.Table:
    """Filter rows by column values; a tuple matches any of its members."""
    for name, wanted in columns.items():
        values = list(wanted) if isinstance(wanted, tuple) else [wanted]
        table = table.filter(pc.is_in(table[name], value_set=pa.array(values, type=table.schema.field(name).type)))
    return table


def levels(table: pa.Table, column: str = "seed") -> list[Any]:
    """List the distinct values of a column in rising order."""
    return sorted(set(table[column].to_pylist()))

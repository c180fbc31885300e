"""Every table as CSV beside the site: written from Parquet, for readers without a Parquet library."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv

from restudy import layout
from restudy.catalog.plan import Plan
from restudy.errors import RestudyError
from restudy.results.files import write_atomically
from restudy.results.tables import read_table


def csv_path(preset: str, slug: str, table: str) -> Path:
    """Where the CSV of a table lies."""
    return layout.report(preset) / "downloads" / slug / f"{table}.csv"


def write_csv_files(plan: Plan, slug: str) -> None:
    """Write the CSV of each stored table of a study; a table that cannot be read is left out."""
    for name in ["verdicts", "verdict_parts", *plan.tables]:
        path = layout.results(plan.preset, slug) / f"{name}.parquet"
        if not path.is_file():
            continue
        try:
            content = csv_bytes(read_table(path))
        except RestudyError:
            csv_path(plan.preset, slug, name).unlink(missing_ok=True)
            continue
        write_atomically(csv_path(plan.preset, slug, name), content)


def csv_bytes(table: pa.Table) -> bytes:
    """A table as CSV with a header line; lists and structures are written as JSON."""
    columns = [_flat(column) for column in table.columns]
    sink = pa.BufferOutputStream()
    pacsv.write_csv(pa.table(dict(zip(table.column_names, columns, strict=True))), sink)
    return bytes(sink.getvalue())


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    if not pa.types.is_nested(column.type) and not pa.types.is_binary(column.type):
        return column
    texts = (None if value is None else json.dumps(value, default=str) for value in column.to_pylist())
    return pa.array(texts, pa.string())

"""Arrow tables in and out of Parquet, the same bytes for the same content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from restudy.errors import ResultError

STAMP_KEY = b"restudy"


def table_bytes(table: pa.Table, facts: bytes | None = None) -> bytes:
    """A table as Parquet bytes, with the facts in its schema metadata."""
    metadata = {STAMP_KEY: facts} if facts else None
    sink = pa.BufferOutputStream()
    plain = table.combine_chunks().replace_schema_metadata(metadata)
    pq.write_table(plain, sink, compression="zstd", row_group_size=1 << 20, write_statistics=True)
    return bytes(sink.getvalue().to_pybytes())


def read_table(path: Path) -> pa.Table:
    """Read a Parquet file, facts kept in the schema metadata.

    Raises:
        ResultError: missing, cut short, or not Parquet.
    """
    try:
        return pq.read_table(pa.BufferReader(path.read_bytes()))
    except FileNotFoundError:
        raise ResultError("missing", where=str(path), remedy="run `make reproduce`") from None
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).splitlines()[0][:120]
        raise ResultError(
            f"not readable as Parquet ({reason})", where=str(path), remedy="run `make reproduce`"
        ) from None


def merge(tables: Sequence[pa.Table]) -> pa.Table:
    """One table from the tables of all jobs of a stage, in the jobs' order.

    Raises:
        ResultError: the schemas differ.
    """
    plain = [t.replace_schema_metadata(None) for t in tables]
    try:
        return pa.concat_tables(plain, promote_options="permissive").combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ResultError(
            f"tables of one stage differ: {error}", remedy="return the same columns from every job"
        ) from None

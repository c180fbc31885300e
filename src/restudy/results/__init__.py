"""Parquet tables: schemas, atomic writing, reading."""

from restudy.results.files import write_atomically
from restudy.results.tables import merge, read_table, table_bytes

__all__ = ["merge", "read_table", "table_bytes", "write_atomically"]

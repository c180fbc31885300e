"""Tables from what a stage returns, by the columns that study.yaml declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from restudy.errors import ResultError

TYPES: Final = {
    "int": pa.int64(),
    "float": pa.float64(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "floats": pa.list_(pa.float32()),
    "doubles": pa.list_(pa.float64()),
    "ints": pa.list_(pa.int64()),
}


def table_from(returned: Any, columns: Mapping[str, str]) -> pa.Table:
    """Make the table of a stage.

    Args:
        returned: rows (mappings with exactly these columns), or columns by name (all of one length).
        columns: name -> type, in the table's order.

    Raises:
        ResultError: an unknown or missing column, or a value that its type does not hold.
    """
    if isinstance(returned, Mapping):
        _same(returned, columns)
        values = {name: returned[name] for name in columns}
    else:
        for row in returned:
            _same(row, columns)
        values = {name: [row[name] for row in returned] for name in columns}
    schema = pa.schema([(name, TYPES[kind]) for name, kind in columns.items()])
    arrays = [_array(name, values[name], schema.field(name).type) for name in columns]
    try:
        return pa.table(arrays, schema=schema)
    except pa.ArrowInvalid as error:
        raise ResultError(str(error).splitlines()[0], remedy="return columns of one length") from None


def _same(row: Mapping[str, Any], columns: Mapping[str, str]) -> None:
    if row.keys() == columns.keys():
        return
    unknown, missing = sorted(row.keys() - columns.keys()), sorted(columns.keys() - row.keys())
    said = [f"{word} column {', '.join(names)}" for word, names in (("unknown", unknown), ("no", missing)) if names]
    raise ResultError("; ".join(said), remedy="mend the stage, or the columns in study.yaml")


def _array(name: str, values: Any, kind: pa.DataType) -> pa.Array:
    try:
        # Arrow cuts a float given as int; a cast refuses to.
        return pa.array(values).cast(kind) if pa.types.is_integer(kind) else pa.array(values, type=kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise ResultError(f"column {name}: {reason}", remedy=f"declare its type; it is {kind} now") from None

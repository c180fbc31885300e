"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

Tables = Mapping[str, pa.Table]


def _swapped(tables: Tables) -> dict[str, pa.Table]:
    """Swap the arms: momentum's steps count as plain and the other way round."""
    steps = tables["steps"]
    names = {"plain": "momentum", "momentum": "plain"}
    methods = pa.array([names.get(m, m) for m in steps["method"].to_pylist()])
    return {**tables, "steps": steps.set_column(steps.schema.get_field_index("method"), "method", methods)}


planted_nulls: dict[str, Callable[[Tables], dict[str, pa.Table]]] = {"Q1": _swapped}
"""Claim -> results without the effect."""

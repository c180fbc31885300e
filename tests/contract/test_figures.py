"""Every figure draws from the smoke results, also with several seeds, and leaves its tables as they are."""

from __future__ import annotations

import importlib

import pyarrow as pa
import pytest

from restudy.bench.judging import judge
from restudy.catalog import plan
from restudy.contract import smoke
from restudy.tables import with_column
from tests.contract.conftest import Smoke

SEEDS = 3


def with_seeds(table: pa.Table) -> pa.Table:
    """The table with its rows given to further seeds."""
    if "seed" not in table.column_names:
        return table
    seeds = table["seed"].to_pylist()
    return pa.concat_tables([with_column(table, "seed", [s + more for s in seeds]) for more in range(SEEDS)])


@pytest.mark.parametrize("several", [False, True], ids=["one seed", "several seeds"])
def test_figures_draw(slug: str, several: bool, smoke_of: Smoke) -> None:
    planned = plan(slug, smoke.PRESET)
    found = smoke.tables(slug, smoke_of(slug))
    tables = {name: with_seeds(table) for name, table in found.items()} if several else found
    judged = judge(slug, smoke.PRESET, tables)
    tables |= {"verdicts": judged.table(), "verdict_parts": judged.parts_table()}
    for name, figure in planned.figures.items():
        module, _, function = figure.function.partition(".")
        given = {table: tables[table] for table in figure.tables}
        drawn = getattr(importlib.import_module(f"restudy.studies.{slug}.{module}"), function)(given)
        drawn.draw_without_rendering()
        assert drawn.axes and any(axis.has_data() for axis in drawn.axes), name
        assert all(table is tables[key] for key, table in given.items()), f"{name} changes its tables"

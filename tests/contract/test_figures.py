"""Every figure draws from its declared tables when they hold several seeds."""

from __future__ import annotations

import importlib

import pyarrow as pa

from restudy.bench.judging import judge
from restudy.catalog import plan
from restudy.contract import smoke
from restudy.tables import with_column
from tests.contract.conftest import Smoke
from tests.examples import tables as read_by_claims

SEEDS = 3


def with_seeds(table: pa.Table) -> pa.Table:
    """The table with its rows given to further seeds."""
    if "seed" not in table.column_names:
        return table
    seeds = table["seed"].to_pylist()
    return pa.concat_tables([with_column(table, "seed", [s + more for s in seeds]) for more in range(SEEDS)])


def _pictures(table: pa.Table) -> bool:
    return any(pa.types.is_list(field.type) for field in table.schema)


def test_figures_draw_several_seeds(slug: str, smoke_of: Smoke) -> None:
    """With one seed the smoke run draws them. Tables with lists are pictures of one seed, unless a claim reads them."""
    planned = plan(slug, smoke.PRESET)
    found = smoke.tables(slug, smoke_of(slug))
    tables = {n: with_seeds(t) if n in read_by_claims(slug) or not _pictures(t) else t for n, t in found.items()}
    judged = judge(slug, smoke.PRESET, tables)
    tables |= {"verdicts": judged.table(), "verdict_parts": judged.parts_table()}
    for name, figure in planned.figures.items():
        module, _, function = figure.function.partition(".")
        given = {table: tables[table] for table in figure.tables}
        drawn = getattr(importlib.import_module(f"restudy.studies.{slug}.{module}"), function)(dict(given))
        drawn.draw_without_rendering()
        assert any(axis.has_data() or axis.tables or axis.texts for axis in drawn.axes), f"{name} is empty"

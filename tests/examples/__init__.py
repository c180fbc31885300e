"""Hand-made results of each study in which every claim holds, one module a study.

`tests/examples/<slug>.py` has `SEEDS`, the number of seeds, and `tables()`, results tables by name: those that claims
read. Where a study needs it, also

- `HOLDS_ON`: claim -> results on which it holds instead, for a claim that excludes another;
- `NULL_IS_REFUSED`: claim -> why the engine refuses to judge its planted null;
- `SPARED`: (claim, table) -> why a seed missing from that table alone leaves the claim as it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from types import ModuleType
from typing import Any

import pyarrow as pa

from restudy.bench.judging import claims_of, statistics_of
from restudy.catalog import study
from restudy.claims import Claim, StudyVerdicts, Verdict, judge_study
from restudy.results.columns import table_from
from restudy.tables import Tables

Row = dict[str, Any]


def declared(slug: str, **rows: Iterable[Row]) -> dict[str, pa.Table]:
    """Make tables with the columns that the study declares."""
    columns = {name: found for stage in study(slug).file.stages.values() for name, found in stage.tables.items()}
    return {name: table_from(list(content), columns[name]) for name, content in rows.items()}


def grid(**axes: Iterable[Any]) -> Iterator[Row]:
    """Yield every combination of the axes' values, the last axis fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


def long(where: Row, values: Mapping[str, float], unit: str = "1") -> list[Row]:
    """One row for each metric."""
    return [where | {"metric": metric, "value": float(value), "unit": unit} for metric, value in values.items()]


def cases(metrics: Mapping[str, Iterable[str]], number: int = 3, key: str = "claim", value: float = 0.0) -> list[Row]:
    """Deviations of identities: `number` cases of each metric of a claim."""
    named = [(claim, metric) for claim, found in metrics.items() for metric in found]
    return [r for c, m in named for i in range(number) for r in long({key: c, "case": f"case {i}"}, {m: value})]


@cache
def example(slug: str) -> ModuleType:
    """Import the example of a study."""
    return importlib.import_module(f"tests.examples.{slug}")


@cache
def tables(slug: str, claim: str = "") -> Tables:
    """The example's tables, or those on which a claim holds instead."""
    return getattr(example(slug), "HOLDS_ON", {}).get(claim, example(slug).tables)()


def home(claim: Claim) -> str:
    """The smallest preset that judges a claim in earnest."""
    return "laptop" if "laptop" in claim.presets else next(name for name in claim.presets if name != "smoke")


def judged(slug: str, given: Tables, preset: str = "laptop", only: Collection[str] = ()) -> StudyVerdicts:
    """Judge a study's claims, or some of them, on tables given."""
    chosen = [claim for claim in claims_of(slug) if not only or claim.id in only]
    seeds = example(slug).SEEDS
    return judge_study(chosen, dict(given), statistics_of(slug), preset=preset, study=slug, seeds=seeds)


def verdict(slug: str, claim: str, given: Tables) -> Verdict:
    """Judge one claim on tables given, where it is judged in earnest."""
    (found,) = [one for one in claims_of(slug) if one.id == claim]
    return judged(slug, given, home(found), [claim])[claim]

"""Figures, tables and data sets of a study, with the addresses by which the site reaches them."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from restudy import layout
from restudy.bench.outputs import outputs
from restudy.catalog.plan import Plan
from restudy.errors import RestudyError
from restudy.provenance.fingerprint import FOREST, Node
from restudy.report import words
from restudy.report.csv_files import csv_path
from restudy.report.model import Claim, DataSet, Figure, Table
from restudy.report.states import state

_SIZE = re.compile(rb'<svg[^>]*?\bwidth="([\d.]+)(?:pt|px)?"[^>]*?\bheight="([\d.]+)(?:pt|px)?"', re.DOTALL)
_TURNED = re.compile(rb'<svg[^>]*?\bheight="([\d.]+)(?:pt|px)?"[^>]*?\bwidth="([\d.]+)(?:pt|px)?"', re.DOTALL)


def address(path: Path) -> str:
    """The address of a file of the project, seen from a page in `report/<preset>/`."""
    return "../../" + quote(layout.relative(path) if path.is_absolute() else path.as_posix())


def figures_of(plan: Plan, slug: str, claims: tuple[Claim, ...]) -> tuple[Figure, ...]:
    """The figures of a preset, the forest plot first; those not drawn yet have no files."""
    found = [_figure(slug, plan.preset, FOREST, FOREST_CAPTION, "", forest_alt(claims))]
    for name, figure in plan.figures.items():
        found.append(_figure(slug, plan.preset, name, figure.says, figure.where, figure.alt))
    return tuple(found)


FOREST_CAPTION = (
    "Every claim's estimate with its interval, against the smallest effect of interest. Each effect is signed so "
    "that positive is the paper's direction."
)


def forest_alt(claims: tuple[Claim, ...]) -> str:
    """What the forest plot shows, in words: the verdicts by claim."""
    by: dict[str, list[str]] = {}
    for claim in claims:
        by.setdefault(claim.verdict, []).append(claim.id)
    said = [f"{word}: {', '.join(by[word])}" for word in words.VERDICTS if word in by]
    return "Forest plot of the claims. " + "; ".join(said) + "."


def _figure(slug: str, preset: str, name: str, says: str, where: str, alt: str) -> Figure:
    node = Node("figure", preset, slug, name)
    there = [path for path in outputs(node) if (layout.root() / path).is_file()]
    size = next((_size(layout.root() / path) for path in there if path.suffix == ".svg"), None)
    return Figure(
        name=name,
        says=says,
        where=where,
        alt=alt,
        files={path.suffix[1:]: address(path) for path in there},
        width=size[0] if size else None,
        height=size[1] if size else None,
        state=state(there[0], node).state if there else "missing",
    )


def _size(svg: Path) -> tuple[float, float] | None:
    with svg.open("rb") as file:
        head = file.read(4096)
    if match := _SIZE.search(head):
        return float(match[1]), float(match[2])
    match = _TURNED.search(head)
    return (float(match[2]), float(match[1])) if match else None


def tables_of(plan: Plan, slug: str) -> tuple[Table, ...]:
    """The merged tables of a study and its verdicts; those not computed yet have no addresses."""
    return tuple(_table(slug, plan.preset, name) for name in ["verdicts", "verdict_parts", *plan.tables])


def _table(slug: str, preset: str, name: str) -> Table:
    path = layout.results(preset, slug) / f"{name}.parquet"
    if not path.is_file():
        return Table(name, note="not run yet")
    try:
        found = pq.read_metadata(path)
        columns = tuple(pq.read_schema(path).names)
    except (pa.ArrowException, OSError, ValueError):
        return Table(name, parquet=address(path), note="cut short: run `make reproduce` again")
    csv = csv_path(preset, slug, name)
    href = f"downloads/{quote(slug)}/{quote(csv.name)}"
    return Table(name, found.num_rows, columns, address(path), href if csv.is_file() else "")


def data_of(plan: Plan) -> tuple[DataSet, ...]:
    """The data sets that the stages of a preset read, with licence and source."""
    from restudy.data import catalogue

    names = dict.fromkeys(name for stage in plan.stages.values() for name in stage.data)
    found = []
    for name in names:
        try:
            declared = catalogue.dataset(name)
        except RestudyError as error:
            found.append(DataSet(name, summary=str(error)))
            continue
        found.append(
            DataSet(
                name,
                declared.summary,
                declared.licence,
                declared.citation,
                declared.homepage,
                declared.comparable_note,
                declared.data_sum,
            )
        )
    return tuple(found)

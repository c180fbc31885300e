"""Discovery of studies and the checks that one schema cannot express."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from restudy import layout
from restudy.catalog.schema import STANDARD_PRESETS, StudyFile, read_yaml, validated
from restudy.errors import ConfigError

SLUG = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
RESERVED_SLUGS = frozenset(
    [
        "all",
        "data",
        "stage",
        "merge",
        "verdicts",
        "figures",
        "figure",
        "notebook",
        "notebooks",
        "page",
        "report",
        "tables",
        "models",
        "smoke",
        "index",
    ]
)
RESERVED_TABLES = frozenset({"verdicts", "verdict_parts"})


@dataclass(frozen=True, eq=False)
class Study:
    """One study: its slug, its folder and its validated study.yaml."""

    slug: str
    folder: Path
    file: StudyFile

    @property
    def where(self) -> str:
        """The path of study.yaml, for messages."""
        return layout.relative(self.folder / "study.yaml")

    def table_stage(self, table: str) -> str:
        """The stage that returns a table.

        Raises:
            ConfigError: no stage declares it.
        """
        for name, stage in self.file.stages.items():
            if table in stage.tables:
                return name
        raise ConfigError(f"no stage returns a table {table!r}", where=self.where)


@cache
def slugs() -> tuple[str, ...]:
    """The slugs of all studies found, sorted."""
    return tuple(sorted(path.parent.name for path in layout.STUDIES.glob("*/study.yaml")))


@cache
def study(slug: str) -> Study:
    """Load and validate one study.

    Raises:
        ConfigError: unknown slug, or a study.yaml that is not valid.
    """
    folder = layout.STUDIES / slug
    path = folder / "study.yaml"
    if not path.is_file():
        raise ConfigError(f"unknown study {slug!r}", where="STUDY", remedy=f"known: {', '.join(slugs()) or 'none'}")
    where = layout.relative(path)
    if not SLUG.fullmatch(slug) or slug in RESERVED_SLUGS:
        raise ConfigError(f"{slug!r} cannot be a slug", where=where, remedy="use lower_snake_case, no rule's name")
    found = Study(slug, folder, validated(StudyFile, read_yaml(path), where))
    _check_stages(found)
    _check_presets(found)
    _check_figures(found)
    return found


def discover() -> dict[str, Study]:
    """All studies by slug, each validated."""
    return {slug: study(slug) for slug in slugs()}


def check_parameter(found: Study, stage: str, name: str, value: Any, where: str) -> None:
    """Refuse a parameter that its schema in study.yaml does not allow.

    Raises:
        ConfigError: unknown stage or parameter, wrong type or range.
    """
    if stage not in found.file.stages:
        raise ConfigError(f"unknown stage {stage!r}", where=where, remedy=f"known: {', '.join(found.file.stages)}")
    schemas = found.file.parameters.get(stage, {})
    if name not in schemas:
        known = ", ".join(schemas) or "none"
        raise ConfigError(f"{stage}: unknown parameter {name!r}", where=where, remedy=f"known: {known}")
    schema = schemas[name]
    errors = sorted(Draft202012Validator(schema).iter_errors(value), key=str)
    if errors:
        allowed = ", ".join(f"{k} {v}" for k, v in schema.items() if k not in ("says", "default", "unit"))
        raise ConfigError(f"{stage}.{name} = {value!r}: {errors[0].message}", where=where, remedy=f"allowed: {allowed}")


def check_axis(found: Study, name: str, values: list[Any], where: str) -> None:
    """Refuse axis values that study.yaml does not list.

    Raises:
        ConfigError: unknown axis or value, or an empty or repeating list.
    """
    if name not in found.file.axes:
        raise ConfigError(f"unknown axis {name!r}", where=where, remedy=f"known: {', '.join(found.file.axes)}")
    known = found.file.axes[name].values
    wrong = [v for v in values if v not in known]
    if wrong or not values or len(set(values)) != len(values):
        raise ConfigError(f"axis {name} = {values!r}", where=where, remedy=f"allowed: a choice of {known!r}")


def _check_stages(found: Study) -> None:
    file, where = found.file, found.where
    tables: dict[str, str] = {}
    above: set[str] = set()
    for name, stage in file.stages.items():
        if not SLUG.fullmatch(name):
            raise ConfigError(f"stage name {name!r}", where=where, remedy="use lower_snake_case")
        if unknown := [n for n in stage.needs if n not in above]:
            raise ConfigError(f"stages.{name}.needs {unknown}", where=where, remedy="name stages declared above it")
        if unknown := [a for a in stage.shards if a != "seeds" and a not in file.axes]:
            raise ConfigError(f"stages.{name}.shards {unknown}", where=where, remedy="name `seeds` or an axis")
        if not stage.tables and not stage.tensors:
            raise ConfigError(f"stages.{name} returns nothing", where=where, remedy="declare tables or tensors")
        for table in stage.tables:
            if table in tables or table in RESERVED_TABLES or not SLUG.fullmatch(table):
                raise ConfigError(f"stages.{name}: table name {table!r}", where=where, remedy="choose a free name")
            tables[table] = name
        if unknown := [v for v in stage.volatile if v not in stage.tables]:
            raise ConfigError(f"stages.{name}.volatile {unknown}", where=where, remedy="name tables of this stage")
        above.add(name)
    _check_parameter_schemas(found)


def _check_parameter_schemas(found: Study) -> None:
    for stage, schemas in found.file.parameters.items():
        for name, schema in schemas.items():
            key = f"parameters.{stage}.{name}"
            try:
                Draft202012Validator.check_schema(schema)
            except SchemaError as error:
                raise ConfigError(f"{key}: {error.message}", where=found.where, remedy="mend the schema") from None
            if "default" not in schema or "says" not in schema or "type" not in schema:
                raise ConfigError(f"{key} lacks type, default or says", where=found.where, remedy="declare them")
            check_parameter(found, stage, name, schema["default"], found.where)
    for axis, spec in found.file.axes.items():
        check_axis(found, axis, list(spec.default), found.where)
        if wrong := [v for v in spec.values if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", str(v))]:
            raise ConfigError(f"axes.{axis} values {wrong}", where=found.where, remedy="use letters, digits, _ . -")


def _check_presets(found: Study) -> None:
    file, where = found.file, found.where
    if missing := [p for p in STANDARD_PRESETS if p not in file.presets]:
        raise ConfigError(f"presets lack {', '.join(missing)}", where=where, remedy="declare all four")
    for name, preset in file.presets.items():
        at = f"{where}: presets.{name}"
        for stage, values in preset.parameters.items():
            for parameter, value in values.items():
                check_parameter(found, stage, parameter, value, at)
        for axis, chosen in preset.axes.items():
            check_axis(found, axis, list(chosen), at)
        if unknown := [c.stage for c in preset.cost if c.stage not in file.stages]:
            raise ConfigError(f"cost names unknown stages {unknown}", where=at, remedy=f"known: {list(file.stages)}")
    for stage_name, spec in file.stages.items():
        if unknown := [p for p in spec.presets if p not in file.presets]:
            raise ConfigError(f"stages.{stage_name}.presets {unknown}", where=where, remedy="name declared presets")
    for device, stages in file.devices.items():
        for stage_name, values in stages.items():
            for parameter, value in values.items():
                check_parameter(found, stage_name, parameter, value, f"{where}: devices.{device}")


def _check_figures(found: Study) -> None:
    known = {t for stage in found.file.stages.values() for t in stage.tables} | RESERVED_TABLES
    if found.file.picture is not None and found.file.picture not in {*found.file.figures, "forest"}:
        raise ConfigError(f"picture {found.file.picture!r}", where=found.where, remedy="name a figure of the study")
    for name, figure in found.file.figures.items():
        if unknown := [t for t in figure.tables if t not in known]:
            raise ConfigError(f"figures.{name}.tables {unknown}", where=found.where, remedy=f"known: {sorted(known)}")

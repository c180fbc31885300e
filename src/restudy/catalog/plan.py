"""A study at a preset: every parameter resolved, every job listed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

from restudy import layout
from restudy.catalog.device import device_class
from restudy.catalog.schema import DerivedPreset, Figure, Preset, Stage, read_yaml, validated
from restudy.catalog.study import Study, check_axis, check_parameter, slugs, study
from restudy.errors import ConfigError


@dataclass(frozen=True)
class Shard:
    """One job of a stage: its label in paths, the axis values and the seeds that it covers."""

    label: str
    axes: tuple[tuple[str, Any], ...]
    seeds: tuple[int, ...] | None

    def meets(self, other: Shard) -> bool:
        """Whether two shards share every axis value they both have, and a seed where both have seeds."""
        mine, theirs = dict(self.axes), dict(other.axes)
        if any(mine[k] != theirs[k] for k in mine.keys() & theirs.keys()):
            return False
        return self.seeds is None or other.seeds is None or bool(set(self.seeds) & set(other.seeds))


@dataclass(frozen=True, eq=False)
class Plan:
    """A study at a preset.

    `judged_as` names the frozen preset that a derived one stands on; `first_look` the seeds before an extension.
    """

    study: Study
    preset: str
    judged_as: str
    spec: Preset
    changes: DerivedPreset | None
    device: str
    first_look: int

    @property
    def frozen(self) -> bool:
        """False for a user's derived preset."""
        return self.changes is None

    @property
    def seeds(self) -> int:
        """Number of seeds; seeds are 0..n-1."""
        return self.spec.seeds

    @property
    def look(self) -> int:
        """2 after an extension that was declared and made, else 1."""
        return 2 if self.seeds > self.first_look else 1

    @cached_property
    def stages(self) -> Mapping[str, Stage]:
        """The stages that this preset runs, in order."""
        found = self.study.file.stages
        return {n: s for n, s in found.items() if not s.presets or self.judged_as in s.presets}

    @cached_property
    def figures(self) -> Mapping[str, Figure]:
        """The figures that can be drawn at this preset."""
        figures = self.study.file.figures.items()
        return {n: f for n, f in figures if not f.presets or self.judged_as in f.presets}

    @cached_property
    def tables(self) -> Mapping[str, str]:
        """The merged tables of this preset: name -> stage."""
        return {table: name for name, stage in self.stages.items() for table in stage.tables}

    def parameters(self, stage: str) -> dict[str, Any]:
        """A stage's parameters: defaults, then the device class's table, then the preset."""
        values = {n: s["default"] for n, s in self.study.file.parameters.get(stage, {}).items()}
        values |= self.study.file.devices.get(self.device, {}).get(stage, {})  # type: ignore[call-overload]
        return values | self.spec.parameters.get(stage, {})

    def axis(self, name: str) -> list[Any]:
        """The values of an axis at this preset."""
        return list(self.spec.axes.get(name, self.study.file.axes[name].default))

    @cache  # noqa: B019 - plans live as long as the process
    def shards(self, stage: str) -> tuple[Shard, ...]:
        """Every job of a stage."""
        axes = [a for a in self.study.file.stages[stage].shards if a != "seeds"]
        chunks: list[tuple[int, ...] | None] = [None]
        if "seeds" in self.study.file.stages[stage].shards:
            chunks = list(_chunks(self.spec.seeds, self.spec.seeds_per_job))
        shards = []
        for values in product(*(self.axis(a) for a in axes)):
            for seeds in chunks:
                parts = [str(v) for v in values] + ([_seed_label(seeds)] if seeds else [])
                shards.append(Shard(".".join(parts) or "all", tuple(zip(axes, values, strict=True)), seeds))
        return tuple(shards)

    def shard(self, stage: str, label: str) -> Shard:
        """The shard with a label.

        Raises:
            ConfigError: this preset has no such job.
        """
        for shard in self.shards(stage):
            if shard.label == label:
                return shard
        raise ConfigError(f"{stage} has no job {label!r} at preset {self.preset}", where=self.study.where)

    def upstream(self, stage: str, shard: Shard) -> Iterator[tuple[str, Shard]]:
        """The jobs of the stages above that a job reads."""
        for name in self.study.file.stages[stage].needs:
            if name not in self.stages:
                raise ConfigError(
                    f"{stage} needs {name}, which preset {self.preset} leaves out", where=self.study.where
                )
            yield from ((name, other) for other in self.shards(name) if shard.meets(other))


def _chunks(seeds: int, size: int) -> Iterator[tuple[int, ...]]:
    size = size or seeds
    for start in range(0, seeds, size):
        yield tuple(range(start, min(start + size, seeds)))


def _seed_label(seeds: tuple[int, ...]) -> str:
    return f"s{seeds[0]}" if len(seeds) == 1 else f"s{seeds[0]}-{seeds[-1]}"


@cache
def derived_presets() -> dict[str, DerivedPreset]:
    """The user's own presets, from presets.yaml beside the Snakefile.

    Raises:
        ConfigError: the file is not valid; a name is taken; an unknown parent, study, stage, parameter or value.
    """
    path = layout.root() / "presets.yaml"
    if not path.is_file():
        return {}
    content = read_yaml(path) or {}
    if not isinstance(content, dict):
        raise ConfigError("not a mapping of presets", where="presets.yaml", remedy="write `mine: {inherits: laptop}`")
    found = {}
    for name, entry in content.items():
        where = f"presets.yaml: {name}"
        if not isinstance(name, str) or not name.replace("-", "_").isidentifier():
            raise ConfigError("not a usable name", where=where, remedy="use letters, digits, _ and -")
        found[name] = validated(DerivedPreset, entry, where)
        for slug, change in found[name].studies.items():
            target = study(slug)
            if name in target.file.presets:
                raise ConfigError(f"{slug} has a preset of that name", where=where, remedy="choose another name")
            for stage, values in change.parameters.items():
                for parameter, value in values.items():
                    check_parameter(target, stage, parameter, value, f"{where}: {slug}")
            for axis, chosen in change.axes.items():
                check_axis(target, axis, list(chosen), f"{where}: {slug}")
    return found


@cache
def extensions() -> dict[str, dict[str, int]]:
    """The declared extensions that were made: preset -> study -> number of seeds, from extensions.yaml."""
    path = layout.root() / "extensions.yaml"
    content = (read_yaml(path) or {}) if path.is_file() else {}
    return {p: {s: int(n) for s, n in studies.items()} for p, studies in content.items()}


@cache
def plan(slug: str, preset: str) -> Plan:
    """A study at a preset, all parameters resolved.

    Raises:
        ConfigError: unknown study or preset, or a preset that is not valid.
    """
    found, changes = study(slug), derived_presets().get(preset)
    parent = changes.inherits if changes else preset
    if parent not in found.file.presets:
        known = ", ".join([*found.file.presets, *derived_presets()])
        raise ConfigError(f"unknown preset {parent!r} for {slug}", where="PRESET", remedy=f"known: {known}")
    spec = found.file.presets[parent]
    if changes:
        spec = _with_changes(spec, changes, slug)
    first_look = spec.seeds
    if seeds := extensions().get(preset, {}).get(slug):
        spec = spec.model_copy(update={"seeds": seeds})
    return Plan(found, preset, parent, spec, changes, device_class(), first_look)


def _with_changes(spec: Preset, changes: DerivedPreset, slug: str) -> Preset:
    mine = changes.studies.get(slug)
    update: dict[str, Any] = {}
    if seeds := (mine and mine.seeds) or changes.seeds:
        update["seeds"] = seeds
    if changes.seeds_per_job is not None:
        update["seeds_per_job"] = changes.seeds_per_job
    if changes.numerics is not None:
        update["numerics"] = changes.numerics
    if mine:
        update["parameters"] = {
            stage: spec.parameters.get(stage, {}) | mine.parameters.get(stage, {})
            for stage in {*spec.parameters, *mine.parameters}
        }
        update["axes"] = spec.axes | mine.axes
    return spec.model_copy(update=update)


def studies_at(preset: str) -> list[str]:
    """The studies that have a preset (an extra preset, such as a track of its own, belongs to some studies only).

    Raises:
        ConfigError: no study has it.
    """
    changes = derived_presets().get(preset)
    parent = changes.inherits if changes else preset
    having = [slug for slug in slugs() if parent in study(slug).file.presets]
    if not having:
        known = sorted({p for slug in slugs() for p in study(slug).file.presets} | set(derived_presets()))
        raise ConfigError(f"unknown preset {preset!r}", where="PRESET", remedy=f"known: {', '.join(known)}")
    return having

"""Optional dependency groups: refuse a run before it begins where one that it needs is not installed."""

from __future__ import annotations

import importlib.metadata as metadata
import tomllib
from collections.abc import Iterable
from functools import cache

from packaging.requirements import Requirement

from restudy import layout
from restudy.catalog.plan import plan
from restudy.errors import ConfigError


def check_groups(slugs: Iterable[str], preset: str) -> None:
    """Every group that a stage of these studies declares must be installed.

    Raises:
        ConfigError: a distribution is missing, or pyproject.toml has no such group.
    """
    for slug in slugs:
        for name, stage in plan(slug, preset).stages.items():
            if stage.group and (missing := _missing(stage.group)):
                raise ConfigError(
                    f"{slug}: stage {name} needs {', '.join(missing)} (not installed)",
                    where=f"preset {preset}",
                    remedy=f"run `make {stage.group}`",
                )


@cache
def _missing(group: str) -> list[str]:
    path = layout.root() / "pyproject.toml"
    groups = tomllib.loads(path.read_text()).get("dependency-groups", {})
    if group not in groups:
        raise ConfigError(f"no dependency group {group!r}", where="pyproject.toml", remedy="declare it")
    found = []
    for line in groups[group]:
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            try:
                metadata.version(requirement.name)
            except metadata.PackageNotFoundError:
                found.append(requirement.name)
    return found

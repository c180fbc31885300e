"""The contract suite runs over every study found; nobody writes a test to add a study."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pytest

from restudy.bench.dvc import FIGURES, RESULTS, fingerprints
from restudy.bench.judging import claims_of
from restudy.bench.planting import nulls_of
from restudy.catalog import slugs
from restudy.contract import smoke
from tests.conftest import ROOT, Project, copy_project, once

# One study a day repeats the whole pipeline; the suite's time is what a contributor waits for.
IN_ROTATION = 1
BASE = "HEAD~20"
Smoke = Callable[[str], Path]


@pytest.fixture(scope="session")
def computed(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Every study, computed at smoke in a copy of the project; shared: nothing may be changed in it."""

    def make(folder: Path) -> Project:
        project = copy_project(folder, studies=True)
        project.reproduce()
        return project

    return once(tmp_path_factory, "computed_studies", make)


@pytest.fixture(scope="session")
def smoke_of(tmp_path_factory: pytest.TempPathFactory) -> Smoke:
    """The folder in which a study's stages are computed at smoke, in this process; shared: nothing may be changed."""

    @cache
    def folder(slug: str) -> Path:
        def make(target: Path) -> Project:
            target.mkdir()
            smoke.compute_study(slug, target)
            return Project(target)

        return once(tmp_path_factory, f"smoke_{slug}", make).root

    return folder


@cache
def costly_slugs() -> frozenset[str]:
    """Studies that get the costly checks: one a day, of those with changed stages if there are any; on request all."""
    if os.environ.get("RESTUDY_TEST_FULL"):
        return frozenset(slugs())
    candidates = sorted(changed_slugs() or slugs())
    start = datetime.now(UTC).timetuple().tm_yday * IN_ROTATION
    return frozenset(candidates[(start + i) % len(candidates)] for i in range(IN_ROTATION))


@cache
def changed_slugs() -> frozenset[str]:
    """Studies whose stages changed since `BASE`."""
    show = subprocess.run(["git", "-C", str(ROOT), "show", f"{BASE}:fingerprints.json"], capture_output=True, text=True)
    before = json.loads(show.stdout).get("smoke", {}) if show.returncode == 0 else {}
    now = fingerprints()["smoke"]
    return frozenset(slug for slug in slugs() if slug in before and _stages(before[slug]) != _stages(now[slug]))


def _stages(parts: dict[str, str]) -> dict[str, str]:
    """The parts that compute: how figures and pages look is no reason to kill and repeat a study."""
    return {name: digest for name, digest in parts.items() if name not in (FIGURES, RESULTS)}


PARTS: dict[str, Callable[[str], list[str]]] = {
    "stage": lambda slug: list(dict.fromkeys(job.name for job in smoke.stage_jobs(slug))),
    "primary": lambda slug: [claim.id for claim in claims_of(slug) if claim.primary],
    "claim_with_null": lambda slug: list(nulls_of(slug)),
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`slug` runs over every study, with `stage`, `primary` or `claim_with_null` over its parts."""
    for name, parts in PARTS.items():
        if name in metafunc.fixturenames:
            metafunc.parametrize(("slug", name), [(slug, part) for slug in slugs() for part in parts(slug)])
            return
    if "slug" in metafunc.fixturenames:
        metafunc.parametrize("slug", slugs())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Costly checks of studies out of rotation are skipped, and say so."""
    for item in items:
        slug = getattr(item, "callspec", None) and item.callspec.params.get("slug")  # type: ignore[attr-defined]
        if slug and item.get_closest_marker("costly") and slug not in costly_slugs():
            item.add_marker(pytest.mark.skip(reason="not in today's rotation; `make test-full` runs it"))

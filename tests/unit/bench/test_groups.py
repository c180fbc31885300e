"""A missing optional group is said before a run begins."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from restudy import layout
from restudy.bench import groups
from restudy.errors import ConfigError


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[dependency-groups]\nhere = ["numpy>=1", "nowhere-at-all; sys_platform == \'never\'"]\n'
        'away = ["numpy", "nowhere-at-all>=3"]\n'
    )
    monkeypatch.setattr(layout, "root", lambda: tmp_path)
    groups._missing.cache_clear()


def planned(monkeypatch: pytest.MonkeyPatch, **stages: str) -> None:
    found = {name: SimpleNamespace(group=group) for name, group in stages.items()}
    monkeypatch.setattr(groups, "plan", lambda slug, preset: SimpleNamespace(stages=found))


def test_what_is_installed_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    planned(monkeypatch, plain="", parsed="here")
    groups.check_groups(["toy"], "laptop")


def test_what_is_missing_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    planned(monkeypatch, plain="", parsed="away")
    with pytest.raises(ConfigError, match=r"toy: stage parsed needs nowhere-at-all .*make away"):
        groups.check_groups(["toy"], "laptop")


def test_an_undeclared_group_is_a_mistake_of_the_study(monkeypatch: pytest.MonkeyPatch) -> None:
    planned(monkeypatch, parsed="unheard_of")
    with pytest.raises(ConfigError, match="no dependency group 'unheard_of'"):
        groups.check_groups(["toy"], "laptop")

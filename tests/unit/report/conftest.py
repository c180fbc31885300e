from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.report import report_material as material


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """An empty made-up project in force."""
    with material.project(tmp_path / "project") as root:
        yield root


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A made-up project of four studies: two with results, one only begun, one not run."""
    with material.project(tmp_path_factory.mktemp("house")) as root:
        material.fabricate(4)
        yield root

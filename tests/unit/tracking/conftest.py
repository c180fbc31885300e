from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from restudy import layout
from restudy.catalog.study import slugs, study
from tests.unit.tracking import tracking_material as material


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up project with stored results, in force as the project's root."""
    for name in [n for n in os.environ if n.startswith(("MLFLOW_", "RESTUDY_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("RESTUDY_ROOT", str(tmp_path))
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setattr(layout, "STUDIES", tmp_path / "studies")
    cached = (layout.root, study, slugs)
    for function in cached:
        function.cache_clear()
    material.write_study(tmp_path)
    material.write_results(tmp_path)
    yield tmp_path
    for function in cached:
        function.cache_clear()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty MLflow database, made once for all tests."""
    from restudy.tracking.store import client

    path = tmp_path_factory.mktemp("template") / "mlflow.db"
    client(f"sqlite:///{path}")
    return path


@pytest.fixture
def ready(project: Path, template: Path) -> Path:
    """The project with its database already made."""
    shutil.copy(template, project / "mlflow.db")
    return project

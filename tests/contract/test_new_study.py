"""What `restudy new` writes passes the suite as it is."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, copy_project

pytestmark = pytest.mark.workflow
SUITE = ("test_files.py", "test_examples.py", "test_stages.py", "test_figures.py")


def test_a_new_study_passes_the_suite(tmp_path: Path) -> None:
    project = copy_project(tmp_path / "project", studies=False)
    shutil.copytree(ROOT / "tests", project.root / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    project.restudy("new", "toy_study")
    project.restudy("claims", "freeze", "toy_study", "--reason", "as it is")
    chosen = [f"tests/contract/{name}" for name in SUITE]
    said = project.run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen)
    assert "toy_study" not in said and " passed" in said

"""What a run will cost: declared before the first run, recorded afterwards, with the error of the declaration."""

from __future__ import annotations

import re
import shutil

import pytest

from tests.conftest import Project
from tests.workflow.material import edit

pytestmark = pytest.mark.workflow


def rows(said: str) -> dict[str, list[str]]:
    lines = [line.split() for line in said.splitlines()]
    return {words[0]: words[1:] for words in lines if words and re.fullmatch(r"toy_\w+|total", words[0])}


def test_estimates(toys: Project) -> None:
    # Nothing is left: no job, no minutes; the last run and the error of what was declared are shown.
    done = rows(toys.restudy("estimate", "--preset", "smoke"))
    assert done["toy_one"][:2] == ["0", "0.0"] and done["total"][0] == "0"
    last = float(done["toy_one"][4])
    assert 0 < last < 5
    assert re.search(r"\(-\d+% declared\)", toys.restudy("estimate", "--preset", "smoke"))
    # One study is stale: its jobs are counted at what they took, the other's are not.
    edit(toys.study("toy_one") / "experiment.py", "return float(((root", "return float(0.999 * ((root")
    stale = rows(toys.restudy("estimate", "--preset", "smoke"))
    assert stale["toy_one"][0] == "8" and stale["toy_two"][0] == "0"
    assert float(stale["toy_one"][1]) == pytest.approx(last, abs=0.11)
    # `restudy run` says it before it starts.
    said = toys.reproduce("smoke", "--", "--dry-run")
    assert said.index("core-min left") < said.index("jobs would run")
    # Without any record the declared costs count: 5 seeds x 20 quadratics x 2 methods x 5000 steps x 0.01 ms.
    shutil.rmtree(toys.root / "work")
    laptop = toys.restudy("estimate", "--preset", "laptop", "--study", "toy_two", "--cores", "2")
    assert rows(laptop)["toy_two"][3] == "0.2" and "on 2 cores" in laptop
    assert "declared by the studies, not measured (never run here): all of them" in laptop
    assert "declared by the studies" not in toys.restudy("estimate", "--preset", "smoke")

"""study.yaml, the budget, and figures without torch."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from batch_size_tables import FOLDER, everything

from restudy.catalog import plan, study
from restudy.studies.batch_size.drawing import NAMES
from restudy.studies.batch_size.workloads import parse

STUDY = study("batch_size")
DRAW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import pickle
from restudy.plotting.save import figure_bytes
from restudy.studies.batch_size import figures, statistics
tables = pickle.load(open(sys.argv[1], "rb"))
for name in figures.__all__:
    assert figure_bytes(getattr(figures, name)(tables)) == figure_bytes(getattr(figures, name)(tables)), name
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_cost_is_within_the_budget(preset: str) -> None:
    spec = plan("batch_size", preset).spec
    total = sum(line.core_minutes for line in spec.cost)
    assert 0 < total <= spec.budget_core_minutes


def test_budgets_and_seeds() -> None:
    presets = STUDY.file.presets
    assert presets["laptop"].budget_core_minutes <= 30 and presets["workstation"].budget_core_minutes <= 150
    assert min(presets[name].seeds for name in ("laptop", "workstation", "paper")) >= 5


def test_every_workload_has_a_name_a_goal_batch_sizes_and_a_budget() -> None:
    defaults = {n: s["default"] for n, s in STUDY.file.parameters["sweep"].items()}
    for workload in STUDY.file.axes["workload"].values:
        found = parse(str(workload))
        assert workload in NAMES and found.goal in defaults["goals"]
        assert found.source in defaults["batch_sizes"] and found.source in defaults["first_budget"]


def test_the_full_batch_and_a_quarter_of_it_are_on_the_grid_of_the_digits() -> None:
    sizes = STUDY.file.parameters["sweep"]["batch_sizes"]["default"]["mnist5k"]
    assert sizes[-2:] == [750, 3000]


def test_rules_inherit_the_base_rule() -> None:
    text = (FOLDER / "rules.smk").read_text()
    for stage in STUDY.file.stages:
        assert f"use rule stage as batch_size_{stage} with:" in text


def test_figures_redraw_without_torch_to_the_same_bytes(tmp_path: Path) -> None:
    (tmp_path / "tables.pkl").write_bytes(pickle.dumps(everything()))
    subprocess.run([sys.executable, "-c", DRAW, str(tmp_path / "tables.pkl")], check=True)

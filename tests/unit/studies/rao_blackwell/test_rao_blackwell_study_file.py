"""study.yaml, the budget, and figures without torch."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from rao_blackwell_tables import FOLDER, everything

from restudy.catalog import plan, study

STUDY = study("rao_blackwell")
DRAW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import pickle
from restudy.plotting.save import figure_bytes
from restudy.studies.rao_blackwell import figures, statistics
tables = pickle.load(open(sys.argv[1], "rb"))
for draw in (figures.loss_paths, figures.variance_by_k, figures.optimal_numbers, figures.validation_curves,
             figures.moving_curves, figures.attention_maps):
    assert figure_bytes(draw(tables)) == figure_bytes(draw(tables)), draw
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_cost_is_within_the_budget(preset: str) -> None:
    spec = plan("rao_blackwell", preset).spec
    total = sum(line.core_minutes for line in spec.cost)
    assert 0 < total <= spec.budget_core_minutes


def test_budgets_and_seeds() -> None:
    presets = STUDY.file.presets
    assert (presets["laptop"].budget_core_minutes, presets["workstation"].budget_core_minutes) == (8, 40)
    assert min(presets[name].seeds for name in ("laptop", "workstation", "paper")) >= 5


def test_every_arm_has_a_step_size() -> None:
    for stage in ("semi_supervised", "moving_digit"):
        schemas = STUDY.file.parameters[stage]
        assert set(schemas["arms"]["items"]["enum"]) == set(schemas["learning_rates"]["default"])


def test_the_search_for_step_sizes_was_equal() -> None:
    rates = STUDY.file.parameters["semi_supervised"]["learning_rates"]["default"]
    assert set(rates.values()) == {0.001}


def test_rules_inherit_the_base_rule() -> None:
    text = (FOLDER / "rules.smk").read_text()
    for stage in STUDY.file.stages:
        assert f"use rule stage as rao_blackwell_{stage} with:" in text


def test_figures_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "tables.pkl"
    path.write_bytes(pickle.dumps(everything()))
    done = subprocess.run([sys.executable, "-c", DRAW, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

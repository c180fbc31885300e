"""study.yaml, the budget, and figures without torch."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from neural_ode_tables import FOLDER, everything

from restudy.catalog import plan, study
from restudy.provenance.closure import closure

STUDY = study("neural_ode")
DRAW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import importlib, pickle
from restudy.plotting.save import figure_bytes
tables = pickle.load(open(sys.argv[1], "rb"))
for name in sys.argv[2:]:
    module, _, function = name.partition(".")
    draw = getattr(importlib.import_module("restudy.studies.neural_ode." + module), function)
    assert figure_bytes(draw(tables)) == figure_bytes(draw(tables)), name
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_cost_is_within_the_budget(preset: str) -> None:
    spec = plan("neural_ode", preset).spec
    assert 0 < sum(line.core_minutes for line in spec.cost) <= spec.budget_core_minutes


def test_budgets_and_seeds() -> None:
    presets = STUDY.file.presets
    assert (presets["laptop"].budget_core_minutes, presets["workstation"].budget_core_minutes) == (15, 60)
    assert min(presets[name].seeds for name in ("laptop", "workstation", "paper")) >= 5


def test_trained_and_exchanged_nets_have_the_same_sizes() -> None:
    for preset in STUDY.file.presets:
        planned = plan("neural_ode", preset)
        found = {stage: planned.parameters(stage) for stage in ("classify", "solvers")}
        for name in ("side", "channels", "train_images", "tolerance"):
            assert found["classify"][name] == found["solvers"][name], (preset, name)
        assert {0.01, 0.001, 1e-8} <= set(found["solvers"]["tolerances"])
        assert set(found["classify"]["arms"]) <= set(found["classify"]["learning_rates"])


def test_rules_inherit_the_base_rule() -> None:
    text = (FOLDER / "rules.smk").read_text()
    for stage in STUDY.file.stages:
        assert f"use rule stage as neural_ode_{stage} with:" in text


def test_methods_know_no_study() -> None:
    for module in (FOLDER.parents[1] / "continuous").glob("*.py"):
        name = f"restudy.methods.continuous.{module.stem}".removesuffix(".__init__")
        assert not [m for m in closure(name).modules if m.startswith(("restudy.studies.", "restudy.bench"))], name


def test_figures_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "tables.pkl"
    path.write_bytes(pickle.dumps(everything()))
    functions = [figure.function for figure in STUDY.file.figures.values()]
    done = subprocess.run(
        [sys.executable, "-c", DRAW, str(path), *functions], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr

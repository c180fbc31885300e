"""study.yaml, the stage functions, the budget, and figures without torch."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from saliency_tables import FOLDER

from restudy.catalog import plan, study

STUDY = study("saliency_sanity")
DRAW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import pyarrow as pa, pickle
from restudy.plotting.save import figure_bytes
from restudy.studies.saliency_sanity import figures, map_figures, statistics, verdict_table
tables = pickle.load(open(sys.argv[1], "rb"))
for draw in (figures.cascade_curves, figures.independent_heat, figures.data_bars, figures.metric_bump,
             figures.training_curves, figures.photo_curves, verdict_table.verdict_table):
    assert figure_bytes(draw(tables)) == figure_bytes(draw(tables)), draw
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("stage", STUDY.file.stages)
def test_keywords_are_the_parameters(stage: str) -> None:
    declared = STUDY.file.stages[stage]
    module, _, name = declared.function.partition(".")
    function = getattr(importlib.import_module(f"restudy.studies.saliency_sanity.{module}"), name)
    first, *rest = inspect.signature(function).parameters.values()
    assert first.name == "context"
    assert all(p.kind is p.KEYWORD_ONLY for p in rest)
    assert {p.name for p in rest} == {*STUDY.file.parameters.get(stage, {}), *declared.shards}


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_cost_is_within_the_budget(preset: str) -> None:
    spec = plan("saliency_sanity", preset).spec
    total = sum(line.core_minutes for line in spec.cost)
    assert 0 < total <= spec.budget_core_minutes
    assert {line.stage for line in spec.cost} == set(plan("saliency_sanity", preset).stages)


def test_budgets() -> None:
    budget = {name: spec.budget_core_minutes for name, spec in STUDY.file.presets.items()}
    assert (budget["laptop"], budget["workstation"]) == (20, 60)


def test_nets_of_both_stages_agree() -> None:
    for preset in STUDY.file.presets:
        found = plan("saliency_sanity", preset)
        for name in ("channels", "hidden", "mlp_hidden", "init"):
            assert found.parameters("train")[name] == found.parameters("measure")[name]


def test_rules_inherit_the_base_rule() -> None:
    text = (FOLDER / "rules.smk").read_text()
    for stage in STUDY.file.stages:
        assert f"use rule stage as saliency_sanity_{stage} with:" in text
    assert "lambda" not in text


def test_figures_without_torch(tmp_path: Path) -> None:
    import pickle

    from saliency_tables import everything

    path = tmp_path / "tables.pkl"
    path.write_bytes(pickle.dumps(everything()))
    done = subprocess.run([sys.executable, "-c", DRAW, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

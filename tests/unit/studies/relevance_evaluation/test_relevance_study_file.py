"""study.yaml, the budget, and figures without torch."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.studies.relevance_evaluation.relevance_tables import everything

from restudy.catalog import plan, study

STUDY = study("relevance_evaluation")
DRAW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import pickle
from restudy.plotting.save import figure_bytes
from restudy.studies.relevance_evaluation import figures, map_figures, statistics
tables = pickle.load(open(sys.argv[1], "rb"))
for draw in (figures.area_bars, figures.fill_matrix, map_figures.heatmaps):
    assert figure_bytes(draw(tables)) == figure_bytes(draw(tables)), draw
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_cost_is_within_the_budget(preset: str) -> None:
    spec = plan("relevance_evaluation", preset).spec
    total = sum(line.core_minutes for line in spec.cost)
    assert 0 < total <= spec.budget_core_minutes


def test_budgets_seeds_and_scenes() -> None:
    presets = STUDY.file.presets
    assert (presets["laptop"].budget_core_minutes, presets["workstation"].budget_core_minutes) == (10, 40)
    assert min(presets[name].seeds for name in ("laptop", "workstation", "paper")) >= 5
    assert plan("relevance_evaluation", "photos").parameters("photos")["stamps_used"] >= 100


def test_figures_draw_the_same_bytes_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "tables.pickle"
    path.write_bytes(pickle.dumps(everything()))
    subprocess.run([sys.executable, "-c", DRAW, str(path)], check=True)

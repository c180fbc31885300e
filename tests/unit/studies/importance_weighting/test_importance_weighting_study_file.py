"""study.yaml, the budget, and figures without torch."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest
from importance_weighting_tables import FOLDER, everything

from restudy.catalog import plan, study
from restudy.studies.importance_weighting.arms import PATTERN, Arm, largest_k, parse_swap

STUDY = study("importance_weighting")
DRAW = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "mlflow"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
import pickle
from restudy.plotting.save import figure_bytes
from restudy.studies.importance_weighting import figures, statistics
tables = pickle.load(open(sys.argv[1], "rb"))
for draw in (figures.likelihood_and_units, figures.bounds_by_k, figures.unit_histograms, figures.learning_curves,
             figures.fixed_and_resampled, figures.toy_signal, figures.trained_signal, figures.samples):
    assert figure_bytes(draw(tables)) == figure_bytes(draw(tables)), draw
assert "torch" not in sys.modules
"""


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_cost_is_within_the_budget(preset: str) -> None:
    spec = plan("importance_weighting", preset).spec
    assert 0 < sum(line.core_minutes for line in spec.cost) <= spec.budget_core_minutes


def test_budgets_and_seeds() -> None:
    presets = STUDY.file.presets
    assert (presets["laptop"].budget_core_minutes, presets["workstation"].budget_core_minutes) == (15, 90)
    assert min(presets[name].seeds for name in ("laptop", "workstation", "paper")) >= 5


@pytest.mark.parametrize("preset", STUDY.file.presets)
def test_a_preset_trains_what_its_claims_compare(preset: str) -> None:
    planned = plan("importance_weighting", preset)
    values = {name: planned.parameters(name) for name in planned.stages}
    arms, swaps = set(values["train"]["arms"]), values["train"]["swaps"]
    k = largest_k(arms)
    assert {"vae_k1", f"iwae_k{k}", f"vae_k{k}", "vae_k1_fixed"} <= arms
    ends = {"vae_k1", f"iwae_k{k}"}
    assert set(swaps) == {f"{one}_then_{other}" for one in ends for other in ends}
    assert all(parse_swap(name)[0].name in arms for name in swaps)
    assert set(values["evaluate"]["bound_arms"]) == ends
    for stage in values:
        if "train_images" in values[stage]:
            assert values[stage]["train_images"] == values["train"]["train_images"]
            assert values[stage]["test_images"] == values["train"]["test_images"]
    three_quarters = 0.75 * values["train"]["steps"]
    assert three_quarters % values["train"]["measure_every"] == 0 or preset == "smoke"


def test_names_of_arms_match_the_schema() -> None:
    schema = STUDY.file.parameters["train"]["arms"]
    assert schema["items"]["pattern"] == PATTERN
    assert all(re.match(PATTERN, name) and Arm.parse(name).name == name for name in schema["default"])


def test_rules_inherit_the_base_rule() -> None:
    text = (FOLDER / "rules.smk").read_text()
    for stage in STUDY.file.stages:
        assert f"use rule stage as importance_weighting_{stage} with:" in text


def test_figures_without_torch(tmp_path: Path) -> None:
    path = tmp_path / "tables.pkl"
    path.write_bytes(pickle.dumps(everything()))
    done = subprocess.run([sys.executable, "-c", DRAW, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

"""What this study alone knows: shared searches, what follows a search, what the tables say of the measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from restudy.bench.context import Context
from restudy.catalog import study
from restudy.data import synthetic
from restudy.errors import ConfigError
from restudy.methods.sweeps import steps_to_result
from restudy.methods.sweeps.trainer import Trial
from restudy.results.columns import table_from
from restudy.studies.batch_size import exact, experiment, models
from restudy.studies.batch_size.experiment import follow_ups
from restudy.studies.batch_size.trials import MOMENTUM, SGD
from restudy.tables import where

SIZES: dict[str, Any] = {
    "seeds": [0], "trials": 4, "batch_sizes": {"fashion": [2, 8, 16]}, "first_budget": {"fashion": 60},
    "least_budget": 10, "goals": {"fashion-mlp64": 0.5}, "goal_steps": [0.1, 0.1], "rates": [0.01, 10.0],
    "one_minus_momentum": [0.05, 0.5], "reruns": 2, "line_trials": 2, "noise_looks": 2, "noise_batch": 16,
    "noise_pieces": 2, "train_images": 40, "validation_images": 20, "test_images": 20, "monitor_images": 10,
    "side": 14, "ratio": 1.3, "method": "auto",
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic.load(test_per_class=6)
    monkeypatch.setattr(models.fashion_mnist, "load", lambda: data)
    monkeypatch.setattr(models.mnist5k, "load", lambda: data)


def test_tables_say_what_the_measurements_say(tmp_path: Path) -> None:
    rows = experiment.sweep(Context(tmp_path), workload=MOMENTUM, **SIZES)
    columns = study("batch_size").file.stages["sweep"].tables
    found = {name: table_from(rows[name], columns[name]) for name in columns}
    for size in (2, 8, 16):
        rows = where(found["measurements"], batch_size=size, kind="search")
        best = steps_to_result(rows, 0.5).to_pylist()[0]
        trials = where(found["trials"], batch_size=size, kind="search", metric="steps", status="complete")
        values = trials["value"].to_numpy()
        assert np.isnan(best["steps"]) if np.isnan(values).all() else best["steps"] == np.nanmin(values)
    kinds = where(found["trials"], metric="steps", batch_size=16)["kind"].to_pylist()
    assert {k: kinds.count(k) for k in set(kinds)} == {
        "search": 4,
        "rerun": 2,
        "frozen": 2,
        "linear": 2,
        "square_root": 2,
    }
    assert set(where(found["noise"])["batch_size"].to_pylist()) <= {2}


def test_both_optimizers_search_the_same_effective_rates_with_the_same_weights(tmp_path: Path) -> None:
    box = models.searched((0.01, 10.0), (0.05, 0.5))
    plain, moving = (models.draw_trials(models.parse(w), 3, 8, box) for w in (SGD, MOMENTUM))
    for one, two in zip(plain, moving, strict=True):
        assert one.learning_rate == pytest.approx(two.learning_rate / (1 - two.momentum)) and one.momentum == 0
        assert one.init_seed == two.init_seed
    for name in ("fashion-mlp64", "fashion-mlp64-adam", "mnist-mlp64-sgd", "fashion-mlp7-sgd"):
        with pytest.raises(ConfigError):
            models.parse(name)


def test_rules_predict_effective_rates_from_the_smallest_batch() -> None:
    box = models.searched((0.01, 10.0), (0.05, 0.5))
    best = {4: (Trial(1, 0.02, 0.5, 0), 100.0), 64: (Trial(3, 0.3, 0.4, 0), 20.0)}
    found = follow_ups(best, 4, 64, 0, 2, 3, box)
    effective = {n: t.learning_rate / (1 - t.momentum) for n, (_, t) in found.items()}
    kinds = {n: kind for n, (kind, _) in found.items()}
    for number, rate in effective.items():
        expected = {"rerun": 0.5, "frozen": 0.04, "linear": 0.64, "square_root": 0.16}[kinds[number]]
        assert rate == pytest.approx(expected), kinds[number]
    assert len({t.init_seed for n, (k, t) in found.items() if k == "linear"}) == 3
    assert [k for k, _ in follow_ups(best, 4, 4, 0, 2, 3, box).values()] == ["rerun", "rerun"]


def test_images_of_the_parts_do_not_overlap_and_half_is_a_half() -> None:
    sizes = {"train": 40, "validation": 20, "test": 10, "monitor": 5, "side": 14}
    whole, half = (models.load(models.parse(n), 0, **sizes) for n in (SGD, "fashion_half-mlp64-momentum"))
    rows = {tuple(x.tolist()) for x in whole.train[0]}
    assert not rows & {tuple(x.tolist()) for x in whole.validation[0]}
    assert torch.equal(half.train[0], whole.train[0][:20]) and torch.equal(half.validation[0], whole.validation[0])
    assert whole.train[0].shape == (40, 196) and torch.equal(whole.monitor[0], whole.train[0][:5])
    cnn = models.load(models.parse("fashion-cnn-momentum"), 0, **sizes)
    assert cnn.train[0].shape == (40, 1, 14, 14)
    assert models.make_model(models.parse("fashion-cnn-momentum"), 14, 0)(cnn.test[0]).shape == (10, 10)


def test_identities_hold_and_time_passes(tmp_path: Path) -> None:
    found = exact.check(Context(tmp_path), tables=5, update_steps=5, noise_draws=200)["identities"]
    assert max(row["value"] for row in found if row["claim"] == "X1") == 0
    assert max(row["value"] for row in found if row["claim"] == "X2") < 1e-12
    timed = experiment.timing(Context(tmp_path), seeds=[0], timed_batch_sizes=[4, 8], timed_steps=5, side=14)
    assert min(row["value"] for row in timed["timings"]) > 0

"""What this study alone knows: the arms share what they compare, probes change nothing, the identities hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.studies.batch_norm import exact, experiment, models, probes

TRAIN: dict[str, Any] = {
    "width": 2, "steps": 12, "batch_size": 16, "train_images": 64, "test_images": 20, "watched_images": 16,
    "window": 2, "dense_every": 4, "dense_until": 4, "sparse_every": 4, "lengths": 2, "eigenvalue_products": 0,
    "probed": ["bn-0.1", "noisy-0.1", "std-0.1"], "layers": [2, 5], "samples": 32, "bins": 8, "channels_last": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models.fashion_mnist, "load", lambda: synthetic.load(test_per_class=6))
    torch.set_num_threads(1)


def run(folder: Path, name: str, seeds: list[int], **changes: Any) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    return experiment.train(Context(folder), run=name, seeds=seeds, **(TRAIN | changes))


def test_probes_change_nothing(tmp_path: Path) -> None:
    with_probes = run(tmp_path / "a", "noisy-0.1", [0])
    without = run(tmp_path / "b", "noisy-0.1", [0], probed=[])
    for name in ("training", "curves"):
        assert with_probes[name] == without[name]
    assert with_probes["probes"] and not without["probes"]


def test_seeds_are_used_and_independent_of_the_job(tmp_path: Path) -> None:
    both, second = (run(tmp_path / str(len(seeds)), "std-0.1", seeds) for seeds in ([0, 1], [1]))
    losses = [[row["loss"] for row in found["curves"]] for found in (both, second)]
    assert losses[0][6:] == losses[1] != losses[0][:6]


def test_diverged_run_is_said_and_counts_as_chance(tmp_path: Path) -> None:
    outputs = run(tmp_path, "std-1e30", [0], probed=[])
    numbers = {row["metric"]: row["value"] for row in outputs["training"]}
    assert numbers["diverged"] == 1.0 and numbers["test_accuracy"] == pytest.approx(0.1)
    assert len(outputs["curves"]) == 6 and outputs["curves"][-1]["accuracy"] == pytest.approx(0.1)


@pytest.mark.parametrize("arm", list(models.NORMS))
def test_arms_share_their_initial_weights(arm: str) -> None:
    plain, other = models.VGG("std", 2, seed=3), models.VGG(arm, 2, seed=3)
    for number in range(1, 9):
        name = f"conv{number}.conv.weight"
        assert torch.equal(plain.get_parameter(name), other.get_parameter(name))
    assert other(torch.randn(4, 1, 28, 28)).shape == (4, 10)
    assert len([m for m in other.modules() if isinstance(m, torch.nn.MaxPool2d)]) == 4


def test_deep_linear_network_is_linear() -> None:
    model = models.DeepLinear("std", depth=5, size=4, seed=0)
    data = models.regression(7, 4, seed=0)
    assert torch.allclose(model(2 * data.inputs), 2 * model(data.inputs))
    assert data.inputs.dtype == torch.float64
    assert isinstance(models.DeepLinear("bn", depth=3, seed=0).get_submodule("layer3").norm, torch.nn.Identity)


def test_identities_hold(tmp_path: Path) -> None:
    table = pd.DataFrame(exact.identities(Context(tmp_path), draws=30, largest_batch=63)["identities"])
    largest = table.groupby("check")["value"].max()
    assert largest["theorem_error"] < 1e-10 and largest["observation_gap"] < 1e-10
    assert largest["printed_bound_holds"] == 0 and largest["shift_without_lower_step"] == 0
    assert largest[["gradient_excess", "weight_bound_excess"]].max() <= 1e-12
    assert largest[["missing_part_error", "weight_bound_error"]].max() < 1e-10


def test_probe_steps() -> None:
    assert probes.probe_steps(1200, 50, 300, 200) == [0, 50, 100, 150, 200, 250, 300, 500, 700, 900, 1100]
    assert probes.probe_steps(10, 50, 300, 200) == [0]
    assert models.split("std-1e-7") == ("std", 1e-7)

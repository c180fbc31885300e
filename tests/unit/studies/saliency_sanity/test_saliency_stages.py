"""What this study alone knows: the right nets are compared, the class is held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.methods.models import SmallCNN
from restudy.studies.saliency_sanity import experiment, models
from restudy.studies.saliency_sanity.statistics import MLP

SIZES: dict[str, Any] = {"channels": [4, 6], "hidden": 16, "mlp_hidden": [16], "init": "torch"}
TRAIN: dict[str, Any] = SIZES | {
    "train_images": 120, "images_seen": 240, "batch_size": 32, "learning_rate": 0.003, "permuted_images": 40,
    "permuted_epochs": 2, "permuted_batch_size": 20, "permuted_target": 0.97, "precision": "float32",
    "channels_last": True, "test_images": 30,
}  # fmt: skip
MEASURE: dict[str, Any] = SIZES | {
    "methods": ["gradient", "gradient_x_input", "integrated_gradients", "guided_backprop", "gradcam", "smoothgrad"],
    "orders": ["top_down", "bottom_up", "independent"], "images": 6, "ig_steps": 2, "samples": 2,
    "sg_ig_samples": 2, "sg_ig_steps": 2, "top_redraws": 2, "full_redraws": 2, "examples": 1, "batch_size": 16,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "LOADERS", dict.fromkeys((MLP,), lambda: synthetic.load(test_per_class=6)))
    torch.set_num_threads(1)


def trained(folder: Path, pair: str) -> Context:
    folder.mkdir(parents=True, exist_ok=True)
    outputs = experiment.train(Context(folder), pair=pair, seeds=[0], **TRAIN)
    save_file(outputs["weights"], folder / "weights.safetensors")
    return Context(folder, weights={"weights": [folder / "weights.safetensors"]})


def test_permuted_labels_are_the_same_labels() -> None:
    labels = torch.arange(50) % 10
    found = experiment.permuted(labels, 3)
    assert not torch.equal(found, labels)
    assert torch.equal(found.sort().values, labels.sort().values)


def test_arms_share_what_they_compare() -> None:
    assert experiment.arm_seed(0, "permuted") == experiment.arm_seed(0, "retrain") != experiment.arm_seed(0, "true")


def test_every_set_of_layers_is_measured_once() -> None:
    layers = SmallCNN((2, 2), 4).layers_top_down()
    found = list(models.steps(layers, orders=["top_down", "bottom_up", "independent"], top_redraws=3, full_redraws=2))
    sets = [(tuple(layer.name for layer in step.layers), step.redraw) for step in found]
    assert len(sets) == len(set(sets)) == 4 + 3 + 4 - 2 + 2 + 1 - 1 - 1 + 2
    roles = [role for step in found if step.redraw == 0 for role in step.roles]
    assert len(roles) == len(set(roles)) == 12
    full = [step for step in found if len(step.layers) == 4]
    assert {role.state for role in full[0].roles} == {"top_down", "bottom_up"}


def test_layers_have_seeds_of_their_own_and_keep_them() -> None:
    model = SmallCNN((2, 2), 4, seed=1)
    layers = model.layers_top_down()
    steps = list(models.steps(layers, orders=["top_down"], top_redraws=1, full_redraws=2))
    one, two = (models.randomized(model, step, 0).get_parameter("logits.weight") for step in steps[:2])
    assert torch.equal(one, two)
    pair = [models.randomized(model, step, 0).get_parameter("conv1.weight") for step in steps[-2:]]
    assert not torch.equal(*pair)
    assert not torch.equal(one, model.get_parameter("logits.weight"))


def test_class_is_held_and_gradcam_is_left_out_of_an_mlp(tmp_path: Path) -> None:
    rows = experiment.measure(trained(tmp_path, MLP), pair=MLP, seeds=[0], **MEASURE)["similarity"]

    def among(**columns: object) -> list[dict[str, Any]]:
        return [row for row in rows if all(row[name] == value for name, value in columns.items())]

    assert not among(method="gradcam")
    full = among(state="top_down", depth=2, redraw=0, method="gradient", metric="spearman")
    assert {row["target"] for row in full} == {"fixed", "recomputed"}
    edges = [row["value"] for row in among(method="edges", against="trained", metric="spearman")]
    assert edges == pytest.approx([1.0] * len(edges))
    (pair,) = among(state="two_random_nets", metric="spearman", method="gradient")
    assert pair["against"] == "random_net"


def test_blocks_join_layers() -> None:
    model = SmallCNN((2, 2), 4)
    joined = models.top_down_layers(model, ["fc1"])
    assert [layer.modules for layer in joined] == [("logits", "fc1"), ("conv2", "conv1")]

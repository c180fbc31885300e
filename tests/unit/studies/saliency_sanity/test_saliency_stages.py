"""The stages on small nets: the right nets are compared, the class is held, the same seed gives the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.methods.models import SmallCNN
from restudy.results.tables import table_bytes
from restudy.studies.saliency_sanity import measure, nets, states, train
from restudy.studies.saliency_sanity.tidy import CNN, MLP
from restudy.tables import where

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
    monkeypatch.setattr(nets, "LOADERS", dict.fromkeys((CNN, MLP), lambda: synthetic.load(test_per_class=6)))
    torch.set_num_threads(1)


def trained(folder: Path, pair: str, seed: int = 0) -> tuple[dict[str, Any], Context]:
    folder.mkdir(parents=True, exist_ok=True)
    outputs = train.train_models(Context(folder), pair=pair, seeds=[seed], **TRAIN)
    save_file(outputs["weights"], folder / "weights.safetensors")
    return outputs, Context(folder, weights={"weights": [folder / "weights.safetensors"]})


def test_same_seed_same_bytes(tmp_path: Path) -> None:
    first, above = trained(tmp_path / "a", CNN)
    second, again = trained(tmp_path / "b", CNN)
    assert all(torch.equal(first["weights"][key], second["weights"][key]) for key in first["weights"])
    one, two = (measure.measure_maps(c, pair=CNN, seeds=[0], **MEASURE) for c in (above, again))
    for name in ("similarity", "maps"):
        assert table_bytes(one[name]) == table_bytes(two[name])


def test_another_seed_gives_other_numbers(tmp_path: Path) -> None:
    first, second = (trained(tmp_path / str(seed), MLP, seed)[0]["training"] for seed in (0, 1))
    assert first["value"].to_pylist() != second["value"].to_pylist()


def test_permuted_labels_are_the_same_labels() -> None:
    labels = torch.arange(50) % 10
    found = train.permuted(labels, 3)
    assert not torch.equal(found, labels)
    assert torch.equal(found.sort().values, labels.sort().values)


def test_arms_share_what_they_compare(tmp_path: Path) -> None:
    assert train.arm_seed(0, "permuted") == train.arm_seed(0, "retrain") != train.arm_seed(0, "true")


def test_every_set_of_layers_is_measured_once() -> None:
    layers = SmallCNN((2, 2), 4).layers_top_down()
    found = list(states.steps(layers, orders=["top_down", "bottom_up", "independent"], top_redraws=3, full_redraws=2))
    sets = [(tuple(layer.name for layer in step.layers), step.redraw) for step in found]
    assert len(sets) == len(set(sets)) == 4 + 3 + 4 - 2 + 2 + 1 - 1 - 1 + 2
    roles = [role for step in found if step.redraw == 0 for role in step.roles]
    assert len(roles) == len(set(roles)) == 12
    full = [step for step in found if len(step.layers) == 4]
    assert {role.state for role in full[0].roles} == {"top_down", "bottom_up"}


def test_layers_have_seeds_of_their_own_and_keep_them() -> None:
    model = SmallCNN((2, 2), 4, seed=1)
    layers = model.layers_top_down()
    steps = list(states.steps(layers, orders=["top_down"], top_redraws=1, full_redraws=2))
    one, two = (states.randomized(model, step, 0).get_parameter("logits.weight") for step in steps[:2])
    assert torch.equal(one, two)
    pair = [states.randomized(model, step, 0).get_parameter("conv1.weight") for step in steps[-2:]]
    assert not torch.equal(*pair)
    assert not torch.equal(one, model.get_parameter("logits.weight"))


def test_class_is_held_and_gradcam_is_left_out_of_an_mlp(tmp_path: Path) -> None:
    _, above = trained(tmp_path, MLP)
    table = measure.measure_maps(above, pair=MLP, seeds=[0], **MEASURE)["similarity"]
    assert "gradcam" not in table["method"].to_pylist()
    full = where(table, state="top_down", depth=2, redraw=0, method="gradient", metric="spearman")
    assert set(full["target"].to_pylist()) == {"fixed", "recomputed"}
    edges = where(table, method="edges", against="trained", metric="spearman")["value"].to_pylist()
    assert edges == pytest.approx([1.0] * len(edges))
    pairs = where(table, state="two_random_nets", metric="spearman", method="gradient")
    assert pairs["against"].to_pylist() == ["random_net"]


def test_blocks_join_layers() -> None:
    model = SmallCNN((2, 2), 4)
    joined = states.top_down_layers(model, ["fc1"])
    assert [layer.modules for layer in joined] == [("logits", "fc1"), ("conv2", "conv1")]

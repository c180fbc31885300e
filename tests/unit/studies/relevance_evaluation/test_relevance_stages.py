"""What this study alone knows: each probe measures what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.methods.perturbation import Grid
from restudy.studies.relevance_evaluation import exact, experiment, photos, probe
from restudy.studies.relevance_evaluation.experiment import LRP

SIZES: dict[str, Any] = {"channels": [4, 6], "hidden": 16}
TRAIN: dict[str, Any] = SIZES | {
    "train_images": 120, "images_seen": 240, "batch_size": 32, "learning_rate": 0.003, "channels_last": True,
    "test_images": 30,
}  # fmt: skip
PERTURB: dict[str, Any] = SIZES | {
    "methods": ["sensitivity", "deconvolution", LRP, "edges", "noise"], "fills": ["uniform", "dataset", "black"],
    "regions": [7], "shares": [0.16, 0.5], "images": 6, "pool": 10, "draws": 2, "random_orders": 2, "epsilon": 0.01,
    "blur_sigma": 2.0, "batch_size": 32,
}  # fmt: skip
PROBE: dict[str, Any] = SIZES | {
    "images": 20, "region": 7, "epsilon": 0.01, "walk_images": 3, "walk_steps": 3, "walk_length": 0.05,
    "noise_level": 0.05, "noise_draws": 1, "class_images": 3, "hidden_share": 0.2, "share": 0.16,
    "epsilons": [0, 0.01, 1.0], "epsilon_images": 3, "examples": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    images = synthetic.load(test_per_class=6)
    monkeypatch.setattr(experiment, "LOADERS", dict.fromkeys(experiment.LOADERS, lambda: images))
    pieces = torch.rand(20, 28, 28, generator=torch.Generator().manual_seed(0)) * 0.5 + 0.25
    monkeypatch.setattr(experiment, "backgrounds", lambda part: pieces)
    torch.set_num_threads(1)


def trained(folder: Path, pair: str) -> tuple[dict[str, Any], Context]:
    folder.mkdir(parents=True, exist_ok=True)
    outputs = experiment.train(Context(folder), pair=pair, seeds=[0], **TRAIN)
    save_file(outputs["weights"], folder / "weights.safetensors")
    return outputs, Context(folder, weights={"weights": [folder / "weights.safetensors"]})


def test_the_net_without_biases_has_none(tmp_path: Path) -> None:
    outputs, above = trained(tmp_path, "fashion_mnist")
    biases = [v for k, v in outputs["weights"].items() if "/bias_free/" in k and k.endswith("bias")]
    assert len(biases) == 4 and all(not bool(value.any()) for value in biases)
    assert bool(outputs["weights"]["fashion_mnist/s0/true/conv1.bias"].any())
    found = pd.DataFrame(probe.probe(above, pair="fashion_mnist", seeds=[0], **PROBE)["epsilons"])
    gaps = found[found.metric == "gap"].groupby("epsilon").value.max()
    assert gaps[0.0] < 1e-9 < gaps[1.0]


def test_areas_are_those_of_the_curves(tmp_path: Path) -> None:
    _, above = trained(tmp_path, "mnist5k")
    found = experiment.perturb(above, pair="mnist5k", seeds=[0], **PERTURB)
    chosen = {"fill": "dataset", "method": LRP, "order": "morf", "score": "logit"}
    (curve,) = [row["values"] for row in found["curves"] if chosen.items() <= _plain(row).items()]
    for share, steps in ((0.16, 3), (0.5, 8)):
        (row,) = [row for row in found["aopc"] if (chosen | {"share": share}).items() <= _plain(row).items()]
        assert row["steps"] == steps and row["images"] == 6
        assert row["value"] == pytest.approx(-curve[: steps + 1].mean(), abs=1e-6)
        assert row["value"] == pytest.approx(np.mean(row["values"]), abs=1e-5)
    orders = {(row["method"], row["order"]) for row in found["aopc"]}
    assert ("random", "random") in orders and ("sensitivity", "lerf") in orders


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name != "values"}


def test_garments_keep_the_object_and_change_the_rest() -> None:
    plain = experiment.drawn("fashion_mnist", "test", 8, 3, "explain")
    pasted = experiment.drawn("garments", "test", 8, 3, "explain")
    assert bool(pasted.images[:, 0][~pasted.foreground].min() > 0)
    assert bool((plain.images[:, 0][~plain.foreground] == 0).all())


class Corner(nn.Module):
    """A net that looks at the upper left corner of 8 x 8 pixels only."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(64, 2, bias=False)
        self.fc.weight.data = torch.stack([torch.linspace(1, 2, 64), -torch.ones(64)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc(x[:, :, :8, :8].flatten(1))


def corner_case(images: torch.Tensor) -> probe.Case:
    foreground = torch.zeros(len(images), 28, 28, dtype=torch.bool)
    foreground[:, 20:, 20:] = True
    shown = experiment.Images(images, torch.zeros(len(images), dtype=torch.int64), foreground)
    return probe.Case("garments", 0, Corner().eval(), shown, torch.zeros(len(images), dtype=torch.int64), 0.01, 4)


def test_relevance_outside_the_object_is_found() -> None:
    images = torch.rand(6, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    case = corner_case(images)
    maps = case.maps(images, case.target, [LRP, "noise"])
    rows = {(r["method"], r["metric"]): r["value"] for r in probe.outside_rows(case, maps, 0.16)}
    assert rows[LRP, "outside_share"] == pytest.approx(1.0)
    assert rows[LRP, "outside_aopc"] > rows["random", "outside_aopc"] + 0.3
    assert abs(rows["noise", "outside_aopc"] - rows["random", "outside_aopc"]) < 0.5


def test_regions_with_a_pixel_of_the_object_are_never_replaced() -> None:
    images = torch.rand(4, 1, 28, 28, generator=torch.Generator().manual_seed(1))
    case = corner_case(images)
    inside = ~torch.zeros(4, 28, 28, dtype=torch.bool)
    inside[:, 16:, 16:] = False  # only the lower right is outside, which the net does not see
    maps = case.maps(images, case.target, [LRP, "noise"])
    found, used = experiment.outside_aopc(case.model, images, case.target, maps, inside, Grid(28, 28, 4), 3, 0)
    assert bool(used.all()) and all(float(values.abs().max()) == 0.0 for values in found.values())


def test_hidden_regions_are_hidden() -> None:
    images = torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(2))
    covered = probe.occluded(images, torch.tensor([0, 48]), Grid(28, 28, 4))
    assert torch.allclose(covered[:, 0, :4, :4], images.mean((1, 2, 3)).view(3, 1, 1).expand(3, 4, 4))
    assert torch.equal(covered[:, 0, 4:24, 4:24], images[:, 0, 4:24, 4:24])


def test_a_linear_net_has_stable_relevance_and_a_walk_without_jumps() -> None:
    images = torch.rand(6, 1, 28, 28, generator=torch.Generator().manual_seed(3))
    case = corner_case(images)
    maps = case.maps(images, case.target, probe.STABLE)
    stable = {r["method"]: r["value"] for r in probe.stability_rows(case, maps, 0.05, 1)}
    assert abs(stable["noise"]) < 0.5
    jumps = {r["method"]: r["value"] for r in probe.jump_rows(case, 4, 5, 0.05)}
    assert jumps["sensitivity"] == pytest.approx(0.0, abs=1e-6)
    assert 0 < jumps["gradient_x_input"] < 0.1


def test_likeness_of_equal_maps_is_one() -> None:
    same = torch.rand(1, 8, 8).expand(5, 8, 8)
    rows = probe.likeness_rows({"a": same, "b": torch.rand(5, 8, 8)}, torch.tensor([0, 0, 0, 1, 1]))
    values = {(r["method"], r["condition"], r["metric"]): r["value"] for r in rows}
    assert values["a", "signed", "likeness_same_class"] == pytest.approx(1.0)
    assert abs(values["b", "signed", "likeness_same_class"]) < 0.5


def test_identities_hold_and_cover_four_architectures() -> None:
    table = pd.DataFrame(exact.check(Context(Path()), images=2)["identities"])
    assert set(table[table.claim == "S8"].model) == {"cnn", "vgg", "resnet", "lite"}
    assert table[table.metric.isin(["gap", "layer_gap"])].value.max() < 1e-4
    assert table[table.metric == "gradient_x_input"].value.max() < 1e-5
    assert {"sum", "average", "convolution", "linear"} <= {case.split()[-1] for case in table[table.claim == "S8"].case}


def test_scenes_have_exact_masks() -> None:
    generator = np.random.default_rng(0)
    pictures = {n: generator.integers(0, 256, s).astype(np.uint8) for n, s in (("a", (90, 120, 3)), ("b", (80, 80)))}
    stamps = {}
    for number in range(3):
        stamp = np.full((60, 80, 4), 255, np.uint8)
        stamp[..., :3] = 20 * number
        stamp[:30, :40, 3] = 0
        stamps[f"s{number}"] = stamp
    found = photos.scenes(pictures, stamps, pixels=64, crops=2, object_share=(0.5, 0.6), seed=0)
    again = photos.scenes(pictures, stamps, pixels=64, crops=2, object_share=(0.5, 0.6), seed=0)
    assert torch.equal(found.images, again.images)
    assert found.kind == ["scene"] * 3 + ["crop"] * 4
    assert len({image.numpy().tobytes() for image in found.images}) == 7
    for number in range(3):
        inside = found.inside[number]
        rows, columns = inside.any(1).nonzero(), inside.any(0).nonzero()
        wide = int(columns.max() - columns.min()) + 1
        assert 0.45 * 64 <= wide <= 0.65 * 64
        assert 0.6 < float(inside.sum()) / (wide * (int(rows.max() - rows.min()) + 1)) < 0.85
        core = found.images[number][:, inside]
        assert float((core - core.median()).abs().median()) < 0.05
    assert not bool(found.inside[3:].any())

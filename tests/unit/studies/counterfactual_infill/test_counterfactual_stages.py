"""The stages on small sizes: scenes are what they say, the same bits twice and after a kill, nothing mixes seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from restudy.bench.context import Context
from restudy.catalog import plan, study
from restudy.studies.counterfactual_infill import check, explain, fill, measure, train
from restudy.studies.counterfactual_infill.nets import SceneCNN, load_nets
from restudy.studies.counterfactual_infill.scenes import SILHOUETTE, empty_squares, make
from restudy.tables import by_seed, where

SLUG = "counterfactual_infill"
FUNCTIONS = {
    "train": train.train_nets,
    "fill": fill.measure_fills,
    "explain": explain.explain_scenes,
    "measure": measure.measure_maps,
}


class Memory(Context):
    """A context whose upstream tensors are at hand."""

    def tensors(self, name: str) -> dict[str, torch.Tensor]:
        return self.weights[name]  # type: ignore[return-value]


FEW = {
    "explain": {"penalties": [0.6], "infillers": ["mean", "vae"], "restart_infillers": ["vae"]}
    | {"bbmp_infillers": ["blur"], "iterations": 4},
    "fill": {"real_scenes": 20},
}


def parameters(stage: str) -> dict[str, Any]:
    return plan(SLUG, "smoke").parameters(stage) | FEW.get(stage, {})


def run_all(folder: Path, seeds: list[int]) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    for stage, function in FUNCTIONS.items():
        held = {name: value for name, value in outputs.items() if isinstance(value, dict)}
        (folder / stage).mkdir(exist_ok=True)
        outputs |= function(Memory(folder / stage, weights=held), seeds=seeds, **parameters(stage))
    return outputs


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_all(tmp_path_factory.mktemp("work"), [0, 1])


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(
        all(torch.equal(value[key], other[name][key]) for key in value)
        if isinstance(value, dict)
        else value.equals(other[name])
        for name, value in one.items()
    )


def test_the_same_seeds_give_the_same_bits_also_after_a_kill(outputs: dict[str, Any], tmp_path: Path) -> None:
    assert same(run_all(tmp_path, [0, 1]), outputs)
    for path in [*(tmp_path / "train").glob("s1-*.pt"), *(tmp_path / "explain").glob("*bbmp*.pt")]:
        path.unlink()
    assert same(run_all(tmp_path, [0, 1]), outputs)


def test_a_seed_alone_gives_its_part(outputs: dict[str, Any], tmp_path: Path) -> None:
    alone = run_all(tmp_path, [1])
    assert all(torch.equal(value, outputs["masks"][key]) for key, value in alone["masks"].items())
    assert where(outputs["maps"], seed=1).equals(alone["maps"])


def test_tables_hold_what_the_statistics_read(outputs: dict[str, Any]) -> None:
    arms = set(zip(*(outputs["maps"][n].to_pylist() for n in ("method", "infiller", "restart")), strict=True))
    assert {("sdr", "vae", 1), ("bbmp", "blur", 0), ("ssr", "vae", 0), ("joint", "mean", 0), ("random", "", 0)} <= arms
    assert set(outputs["fills"]["infiller"].to_pylist()) == set(fill.NAMES)
    leaks = {name: max(by_seed(outputs["fills"], metric="leak", infiller=name).values()) for name in fill.NAMES}
    assert all(value == 0 for name, value in leaks.items() if name != "blur") and leaks["blur"] > 0
    ground = by_seed(outputs["fills"], metric="odd_change", infiller="ground")
    assert all(value == pytest.approx(0, abs=1e-4) for value in ground.values()), "an empty square is ground already"


def test_explained_scenes_are_right_and_otherwise_without_the_object(outputs: dict[str, Any]) -> None:
    nets = load_nets(outputs["weights"], 0, "cpu")
    chosen = explain.explained(nets, 4, 0, "cpu")
    assert torch.equal(chosen.images, outputs["masks"]["s0/scenes/images"])
    assert torch.equal(nets.classifier(chosen.images).argmax(1), chosen.labels)
    assert (nets.classifier(chosen.grounds).argmax(1) != chosen.labels).all()


@pytest.mark.parametrize("canvas", [28, 56])
def test_scenes(canvas: int) -> None:
    scenes = make("test", 30, canvas, (1, 7, 9), 5, "a test")
    assert scenes.images.shape == scenes.objects.shape == (30, 1, canvas, canvas)
    assert scenes.images.min() >= 0 and scenes.images.max() <= 1 and set(scenes.labels.tolist()) <= {0, 1, 2}
    outside = ~scenes.objects
    assert torch.equal(scenes.images[outside], scenes.grounds[outside])
    assert (scenes.images[scenes.objects] >= 0.25 + 0.75 * SILHOUETTE - 1e-6).all()
    assert not (scenes.objects & ~scenes.squares()).any(), "the square holds the object"
    empty = empty_squares(scenes, 5)
    assert (empty.sum((1, 2, 3)) == (canvas // 4) ** 2).all() and not (empty & scenes.squares()).any()
    again = make("test", 30, canvas, (1, 7, 9), 5, "a test")
    assert torch.equal(again.images, scenes.images)
    assert not torch.equal(make("test", 30, canvas, (1, 7, 9), 6, "a test").images, scenes.images)


def test_grounds_of_training_and_test_are_disjoint() -> None:
    """No 8 x 8 patch of a training texture occurs in a test texture."""
    from restudy.studies.counterfactual_infill.scenes import _textures

    for one, other in zip(_textures("train"), _textures("test"), strict=True):
        patches = {one[y : y + 8, x : x + 8].tobytes() for y in range(0, 200, 8) for x in range(one.shape[1] - 8)}
        mine = {other[y : y + 8, x : x + 8].tobytes() for y in range(0, 200, 8) for x in range(other.shape[1] - 8)}
        assert not patches & mine


def test_the_classifier_is_blind_to_where_an_object_lies_away_from_the_borders() -> None:
    net = SceneCNN(3, seed=1)
    image = torch.full((1, 1, 56, 56), 0.4)
    image[0, 0, 20:28, 20:28] = torch.rand(8, 8, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(net(image), net(image.roll((8, 4), (2, 3))), atol=1e-5)
    assert not torch.allclose(net(image), net(torch.full_like(image, 0.4)), atol=1e-3)
    assert torch.equal(SceneCNN(3, seed=1)(image), net(image))


def test_the_check_finds_a_wrong_sign(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sizes = {"problems": 3, "points": 500, "images": 2, "iterations": 5}
    right = check.check_program(Context(tmp_path), **sizes)["identities"]
    assert max(right["value"].to_pylist()) < 1e-9
    monkeypatch.setattr(check, "saliency", lambda theta, objective: theta)
    wrong = where(check.check_program(Context(tmp_path), **sizes)["identities"], claim="sign", case="ssr")
    assert wrong["value"].to_pylist()[0] > 0.5


def test_at_laptop_there_are_scenes_to_tune_and_to_judge() -> None:
    for preset in ("smoke", "laptop", "workstation", "paper"):
        found = plan(SLUG, preset)
        assert 0 < found.parameters("measure")["tuning_images"] < found.parameters("explain")["images"]
    penalties = plan(SLUG, "laptop").parameters("explain")["penalties"]
    assert np.allclose(penalties, sorted(penalties)) and study(SLUG).file.picture in study(SLUG).file.figures

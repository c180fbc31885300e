"""What the stages' own code must keep: scenes are what they say, nothing mixes seeds, checks find a wrong sign."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from restudy.bench.context import Context
from restudy.catalog import plan, study
from restudy.studies.counterfactual_infill import exact, experiment, measure
from restudy.studies.counterfactual_infill.models import SILHOUETTE, SceneCNN, _textures, load_nets, make

SLUG = "counterfactual_infill"
STAGES = (experiment.train, experiment.fill, experiment.explain, measure.measure)
FEW = {
    "explain": {"penalties": [0.6], "infillers": ["mean", "vae"], "restart_infillers": ["vae"]}
    | {"bbmp_infillers": ["blur"], "iterations": 4},
    "fill": {"real_scenes": 20},
}


class Memory(Context):
    """A context whose upstream tensors are at hand."""

    def tensors(self, name: str) -> dict[str, torch.Tensor]:
        return self.weights[name]  # type: ignore[return-value]


def run_all(folder: Path, seeds: list[int]) -> dict[str, Any]:
    outputs: dict[str, Any] = {}
    for stage in STAGES:
        parameters = plan(SLUG, "smoke").parameters(stage.__name__) | FEW.get(stage.__name__, {})
        held = {name: value for name, value in outputs.items() if isinstance(value, dict)}
        outputs |= stage(Memory(folder / stage.__name__, weights=held), seeds=seeds, **parameters)
    return outputs


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return run_all(tmp_path_factory.mktemp("work"), [0, 1])


def test_a_seed_alone_gives_its_part(outputs: dict[str, Any], tmp_path: Path) -> None:
    alone = run_all(tmp_path, [1])
    assert all(torch.equal(value, outputs["masks"][key]) for key, value in alone["masks"].items())
    assert alone["maps"] == [row for row in outputs["maps"] if row["seed"] == 1]


def test_tables_hold_what_the_statistics_read(outputs: dict[str, Any]) -> None:
    arms = {(row["method"], row["infiller"], row["restart"]) for row in outputs["maps"]}
    assert {("sdr", "vae", 1), ("bbmp", "blur", 0), ("ssr", "vae", 0), ("joint", "mean", 0), ("random", "", 0)} <= arms
    worst: dict[tuple[str, str], float] = {}
    for row in outputs["fills"]:
        key = row["infiller"], row["metric"]
        worst[key] = max(worst.get(key, 0.0), row["value"])
    assert {name for name in experiment.FILLERS if worst[name, "leak"]} == {"blur"}
    assert worst["ground", "odd_change"] == pytest.approx(0, abs=1e-4), "an empty square is ground already"


def test_explained_scenes_are_right_and_otherwise_without_the_object(outputs: dict[str, Any]) -> None:
    nets = load_nets(outputs["weights"], 0, "cpu")
    chosen = experiment.explained(nets, 4, 0, "cpu")
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
    empty = experiment.empty_squares(scenes, 5)
    assert (empty.sum((1, 2, 3)) == (canvas // 4) ** 2).all() and not (empty & scenes.squares()).any()
    again = make("test", 30, canvas, (1, 7, 9), 5, "a test")
    assert torch.equal(again.images, scenes.images)
    assert not torch.equal(make("test", 30, canvas, (1, 7, 9), 6, "a test").images, scenes.images)


def test_grounds_of_training_and_test_are_disjoint() -> None:
    """No 8 x 8 patch of a training texture occurs in a test texture."""
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
    assert max(row["value"] for row in exact.check(Context(tmp_path), **sizes)["identities"]) < 1e-9
    monkeypatch.setattr(exact, "saliency", lambda theta, objective: theta)
    wrong = exact.check(Context(tmp_path), **sizes)["identities"]
    assert [row["value"] > 0.5 for row in wrong if (row["claim"], row["case"]) == ("sign", "ssr")] == [True]


def test_at_laptop_there_are_scenes_to_tune_and_to_judge() -> None:
    for preset in ("smoke", "laptop", "workstation", "paper"):
        found = plan(SLUG, preset)
        assert 0 < found.parameters("measure")["tuning_images"] < found.parameters("explain")["images"]
    penalties = plan(SLUG, "laptop").parameters("explain")["penalties"]
    assert np.allclose(penalties, sorted(penalties)) and study(SLUG).file.picture in study(SLUG).file.figures

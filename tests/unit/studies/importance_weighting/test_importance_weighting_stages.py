"""What the stages' own code must keep: arms share what they must share, a kill at any measurement changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.errors import ConfigError, RestudyError, ResultError
from restudy.methods.training import resumable
from restudy.studies.importance_weighting import experiment
from restudy.studies.importance_weighting.arms import Arm, parse_swap
from restudy.studies.importance_weighting.models import Batches, Images

Rows = list[dict[str, Any]]
DATA: dict[str, Any] = {"train_images": 40, "test_images": 20}
TRAIN = DATA | {
    "seeds": [0], "arms": ["vae_k1", "iwae_k3", "vae_k1_fixed_n20", "vae_k1_n20", "dreg_k2_two_layers"],
    "swaps": ["vae_k1_then_iwae_k3", "vae_k1_then_vae_k1"], "batch_size": 10, "hidden": 6, "latent": 3, "steps": 8,
    "swap_steps": 4, "learning_rate": 0.004, "last_learning_rate": 0.001, "rate_stages": 2, "stage_growth": 1.0,
    "measure_every": 3,
}  # fmt: skip
ALONE = TRAIN | {"arms": ["vae_k1"], "swaps": []}


@pytest.fixture(scope="module", autouse=True)
def small() -> Any:
    data = synthetic.load(test_per_class=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment.fashion_mnist, "load", lambda: data)
        yield


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return experiment.train(Context(tmp_path_factory.mktemp("trained")), **TRAIN)


def numbers(rows: Rows, **columns: object) -> list[float]:
    return [row["value"] for row in rows if columns.items() <= row.items()]


def test_a_kill_after_a_leg_of_another_length_changes_nothing(
    trained: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A continuation from step 8 to 12 measures at 9 and 12, every third step of the whole."""
    steps = [row["step"] for row in trained["training"] if row["metric"] == "test_bound" and "_then_" in row["arm"]]
    assert steps == [8, 9, 12] * 2
    saved = resumable.save_checkpoint

    def killed(path: Path, content: dict[str, Any]) -> None:
        saved(path, content)
        if "_then_" in path.name:
            raise KeyboardInterrupt

    monkeypatch.setattr(resumable, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        experiment.train(Context(tmp_path), **TRAIN)
    monkeypatch.undo()
    found = experiment.train(Context(tmp_path), **TRAIN)
    assert found["training"] == trained["training"]
    assert all(torch.equal(found["weights"][key], value) for key, value in trained["weights"].items())


def test_likelihoods_are_measured_on_the_same_pixels(trained: dict[str, Any], tmp_path: Path) -> None:
    save_file(trained["weights"], tmp_path / "weights.safetensors")
    context = Context(tmp_path, weights={"weights": [tmp_path / "weights.safetensors"]})
    sizes = DATA | {"likelihood_images": 10, "likelihood_samples": 12, "bound_samples": 4, "bound_k": [1, 8]}
    rows = experiment.evaluate(context, seeds=[0], bound_arms=["vae_k1"], shown_images=2, **sizes)["likelihood"]
    assert {row["arm"] for row in rows if row["part"] == "train"} == {"vae_k1_fixed_n20", "vae_k1_n20"}
    assert {row["arm"] for row in rows if row["part"] == "test"} == {*TRAIN["arms"], *TRAIN["swaps"]}
    assert min(numbers(rows, metric="standard_error")) > 0


def test_arms_start_from_the_same_weights_and_go_on_from_the_end(trained: dict[str, Any]) -> None:
    first = {row["arm"]: row["value"] for row in trained["training"] if row["step"] == 0 and row["unit"] == "nats"}
    assert first["vae_k1"] == first["iwae_k3"] != first["dreg_k2_two_layers"]
    for swap in TRAIN["swaps"]:
        for metric in ("test_bound", "active_units_1"):
            ends, begins = (numbers(trained["training"], arm=a, step=8, metric=metric) for a in ("vae_k1", swap))
            assert ends == begins


def test_k_of_one_is_the_same_run_under_both_objectives_and_seeds_differ(tmp_path: Path) -> None:
    found = experiment.train(Context(tmp_path), **ALONE | {"arms": ["vae_k1", "iwae_k1"], "seeds": [0, 1]})
    weights = found["weights"]
    for key in [key for key in weights if "/vae_k1/" in key]:
        assert torch.allclose(weights[key], weights[key.replace("vae", "iwae")], rtol=1e-6, atol=1e-7), key
    one, other = (numbers(found["training"], seed=seed, step=8, metric="test_bound") for seed in (0, 1))
    assert one != other


def test_batches_depend_on_seed_and_step_alone() -> None:
    images = Images.draw(synthetic.load(test_per_class=6), 3, 40, 20)
    one, other = (Batches(images, 3, 10, fixed) for fixed in (False, True))
    assert torch.equal(one.at(5), one.at(5)) and not torch.equal(one.at(5), one.at(9))
    assert set(one.at(2).unique().tolist()) <= {0.0, 1.0}
    epoch = torch.cat([other.at(step) for step in range(4)])
    assert sorted(map(tuple, epoch.tolist())) == sorted(map(tuple, images.fixed.tolist()))
    again = torch.cat([other.at(step) for step in range(4, 8)])
    assert sorted(map(tuple, again.tolist())) == sorted(map(tuple, epoch.tolist())) and not torch.equal(again, epoch)
    # The order is shared: where fixed pixels are dark at grey value 0, resampled ones are too.
    assert (one.at(1)[other.at(1).sum(1) == 0].sum() == 0).item()


def test_schedule() -> None:
    equal = experiment.Schedule(100, 0.01, 0.0001, 3, 1.0, measure_every=3)
    assert [s for s, _ in equal.stages] == [0, 33, 67]
    assert [equal.rate(step) for step in (0, 33, 500)] == pytest.approx([0.01, 0.001, 0.0001])
    assert equal.marks(0, 8) == [3, 6, 8] and equal.marks(8, 12) == [9, 12]
    paper = experiment.Schedule(3280, 0.001, 0.0001, 8, 3.0, measure_every=100).stages
    assert [s for s, _ in paper] == [0, 1, 4, 13, 40, 121, 364, 1093]
    rounded = [round(1e-4 * round(10 ** (1 - i / 7), 1), 6) for i in range(8)]
    assert [r for _, r in paper] == pytest.approx(rounded, rel=0.06)


def test_another_checkpoint_divergence_and_too_many_images_are_refused(tmp_path: Path) -> None:
    experiment.train(Context(tmp_path / "one"), **ALONE)
    with pytest.raises(ResultError, match="another run"):
        experiment.train(Context(tmp_path / "one"), **ALONE | {"steps": 9})
    with pytest.raises(RestudyError, match="vae_k1 diverged"):
        experiment.train(Context(tmp_path), **ALONE | {"learning_rate": 1e30, "last_learning_rate": 1e30})
    with pytest.raises(ConfigError, match="images asked for"):
        experiment.train(Context(tmp_path), **ALONE | {"train_images": 10**6})


def test_names_of_arms() -> None:
    for name in ("vae_k1", "iwae_k50_two_layers", "vae_k1_fixed_n1000", "dreg_k20_two_layers_fixed_n7"):
        assert Arm.parse(name).name == name and parse_swap(name) == (Arm.parse(name),) * 2
    for wrong in ("vae", "vae_k0", "iwae_k5_fast", "vae_k1_n1000_fixed"):
        with pytest.raises(ConfigError, match="unknown arm"):
            Arm.parse(wrong)
    assert parse_swap("vae_k1_fixed_then_iwae_k5_fixed")[1] == Arm("iwae", 5, fixed=True)
    with pytest.raises(ConfigError, match="more than the objective"):
        parse_swap("vae_k1_then_iwae_k5_fixed")

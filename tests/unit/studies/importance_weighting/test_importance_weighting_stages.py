"""The stages on small sizes: the same bits twice and after a kill, arms that share what they must share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.errors import ConfigError, RestudyError, ResultError
from restudy.results.tables import table_bytes
from restudy.studies.importance_weighting import check, evaluate, fitting, signal_to_noise, toy, train
from restudy.studies.importance_weighting.arms import Arm, parse_swap
from restudy.studies.importance_weighting.images import Batches, Images
from restudy.tables import by_seed, where

DATA: dict[str, Any] = {"train_images": 40, "test_images": 20}
TRAIN: dict[str, Any] = DATA | {
    "seeds": [0], "arms": ["vae_k1", "iwae_k3", "vae_k1_fixed_n20", "vae_k1_n20", "dreg_k2_two_layers"],
    "swaps": ["vae_k1_then_iwae_k3", "vae_k1_then_vae_k1"], "batch_size": 10, "hidden": 6, "latent": 3, "steps": 8,
    "swap_steps": 4, "learning_rate": 0.004, "last_learning_rate": 0.001, "rate_stages": 2, "stage_growth": 1.0,
    "measure_every": 3,
}  # fmt: skip
EVALUATE: dict[str, Any] = DATA | {
    "seeds": [0], "likelihood_images": 10, "likelihood_samples": 12, "bound_arms": ["vae_k1"], "bound_samples": 4,
    "bound_k": [1, 8], "shown_images": 2,
}  # fmt: skip
SIGNAL: dict[str, Any] = DATA | {
    "seeds": [0], "signal_arms": ["vae_k1"], "signal_k": [1, 4], "signal_batch": 3, "signal_draws": 6,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic.load(test_per_class=6)
    for module in (train, evaluate, signal_to_noise):
        monkeypatch.setattr(module.fashion_mnist, "load", lambda: data)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Context]:
    """What training returns, and a context in which the stages below it find the weights."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        data = synthetic.load(test_per_class=6)
        patch.setattr(train.fashion_mnist, "load", lambda: data)
        found = train.train_autoencoders(Context(folder), **TRAIN)
    save_file(found["weights"], folder / "weights.safetensors")
    return found, Context(folder, weights={"weights": [folder / "weights.safetensors"]})


def same(one: dict[str, Any], other: dict[str, Any], but: tuple[str, ...] = ()) -> bool:
    weights = one.get("weights", {})
    return all(torch.equal(weights[key], other["weights"][key]) for key in weights) and all(
        table_bytes(one[n]) == table_bytes(other[n]) for n in one if n not in ("weights", *but)
    )


def test_training_gives_the_same_bits_twice_and_after_kills(
    trained: tuple[dict[str, Any], Context], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = fitting.save_checkpoint
    for stop_after in (1, 2, 9):
        left = stop_after

        def killed(path: Path, content: dict[str, Any]) -> None:
            nonlocal left
            saved(path, content)
            left -= 1
            if not left:
                raise KeyboardInterrupt

        monkeypatch.setattr(fitting, "save_checkpoint", killed)
        with pytest.raises(KeyboardInterrupt):
            train.train_autoencoders(Context(tmp_path), **TRAIN)
    monkeypatch.setattr(fitting, "save_checkpoint", saved)
    assert same(train.train_autoencoders(Context(tmp_path), **TRAIN), trained[0], but=("timings",))


def test_later_stages_give_the_same_bytes_twice(trained: tuple[dict[str, Any], Context], tmp_path: Path) -> None:
    context = trained[1]
    for stage, sizes in (
        (evaluate.evaluate_autoencoders, EVALUATE),
        (signal_to_noise.measure_signal, SIGNAL),
        (toy.measure_toy, {"seeds": [0], "dimensions": 2, "perturbation": 0.1, "toy_k": [1, 3], "toy_draws": 30}),
        (check.check_identities, {"draws": 200, "bound_repeats": 50}),
    ):
        one, other = (stage(context, **sizes) for _ in range(2))
        assert same(one, other), stage
        assert all(np.isfinite(t["value"].to_numpy()).all() for t in one.values() if "value" in t.column_names) or (
            stage is signal_to_noise.measure_signal
        )


def test_another_seed_gives_other_values(tmp_path: Path) -> None:
    few = TRAIN | {"arms": ["vae_k1"], "swaps": [], "seeds": [0, 1]}
    table = train.train_autoencoders(Context(tmp_path), **few)["training"]
    values = by_seed(where(table, step=8), metric="test_bound")
    assert values[0] != values[1]


def test_likelihoods_are_measured_on_the_same_pixels(trained: tuple[dict[str, Any], Context]) -> None:
    table = evaluate.evaluate_autoencoders(trained[1], **EVALUATE)["likelihood"]
    on_train = set(where(table, part="train")["arm"].to_pylist())
    assert on_train == {"vae_k1_fixed_n20", "vae_k1_n20"}
    assert len(set(where(table, part="test")["arm"].to_pylist())) == len(TRAIN["arms"]) + len(TRAIN["swaps"])
    assert (where(table, metric="standard_error")["value"].to_numpy() > 0).all()


def test_arms_start_from_the_same_weights_and_go_on_from_the_end(trained: tuple[dict[str, Any], Context]) -> None:
    table = trained[0]["training"]
    first = where(table, step=0, metric="test_bound")
    assert len(set(where(first, arm=("vae_k1", "iwae_k3"))["value"].to_pylist())) == 1
    units = where(table, metric="active_units_1", step=8)
    for swap in TRAIN["swaps"]:
        assert by_seed(units, arm=swap) == by_seed(units, arm="vae_k1")


def test_k_of_one_is_the_same_run_under_both_objectives(tmp_path: Path) -> None:
    few = TRAIN | {"arms": ["vae_k1", "iwae_k1"], "swaps": []}
    weights = train.train_autoencoders(Context(tmp_path), **few)["weights"]
    for key, value in weights.items():
        if "/vae_k1/" in key:
            assert torch.allclose(value, weights[key.replace("vae", "iwae")], rtol=1e-6, atol=1e-7), key


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
    equal = fitting.stages(100, 0.01, 0.0001, 3)
    assert [s for s, _ in equal] == [0, 33, 67] and [r for _, r in equal] == pytest.approx([0.01, 0.001, 0.0001])
    paper = fitting.stages(3280, 0.001, 0.0001, 8, 3.0)
    assert [s for s, _ in paper] == [0, 1, 4, 13, 40, 121, 364, 1093]
    rounded = [round(1e-4 * round(10 ** (1 - i / 7), 1), 6) for i in range(8)]
    assert [r for _, r in paper] == pytest.approx(rounded, rel=0.06)
    recipe = fitting.Recipe("a", "vae", 1, 0, 0, 100, equal, 10)
    assert (recipe.rate(0), recipe.rate(33), recipe.rate(500)) == (equal[0][1], equal[1][1], equal[2][1])


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    few = TRAIN | {"arms": ["vae_k1"], "swaps": []}
    train.train_autoencoders(Context(tmp_path), **few)
    with pytest.raises(ResultError, match="another run"):
        train.train_autoencoders(Context(tmp_path), **few | {"steps": 9})


def test_divergence_is_said(tmp_path: Path) -> None:
    wild = TRAIN | {"arms": ["vae_k1"], "swaps": [], "learning_rate": 1e30, "last_learning_rate": 1e30}
    with pytest.raises(RestudyError, match="vae_k1 diverged"):
        train.train_autoencoders(Context(tmp_path), **wild)


def test_names_of_arms() -> None:
    for name in ("vae_k1", "iwae_k50_two_layers", "vae_k1_fixed_n1000", "dreg_k20_two_layers_fixed_n7"):
        assert Arm.parse(name).name == name
    for wrong in ("vae", "vae_k0", "iwae_k5_fast", "vae_k1_n1000_fixed"):
        with pytest.raises(ConfigError, match="unknown arm"):
            Arm.parse(wrong)
    assert parse_swap("vae_k1_fixed_then_iwae_k5_fixed")[1] == Arm("iwae", 5, fixed=True)
    with pytest.raises(ConfigError, match="more than the objective"):
        parse_swap("vae_k1_then_iwae_k5_fixed")


def test_too_many_images_are_refused() -> None:
    with pytest.raises(ConfigError, match="images asked for"):
        Images.draw(synthetic.load(test_per_class=6), 0, 10**6, 5)

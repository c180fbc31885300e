"""The stages on small sizes: the same bits twice and after a kill, the integrands agree, arms share a start."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.errors import ConfigError, RestudyError, ResultError
from restudy.results.tables import table_bytes
from restudy.studies.rao_blackwell import arms, bernoulli, canvas, check, fitting, moving_digit, semi_supervised, toy
from restudy.studies.rao_blackwell.labelled_vae import Integrand, LabelledVae, every_label
from restudy.tables import where

RATES = dict.fromkeys(("full", "rb1", "reinforce2", "gumbel", "relax", "rb5_plus", "known_place", "nvil"), 0.001)
ANNEAL: dict[str, Any] = {"temperature": 1.0, "anneal_rate": 0.01, "lowest_temperature": 0.1}
SEMI: dict[str, Any] = ANNEAL | {
    "seeds": [0], "arms": ["full", "rb1", "relax"], "cold_arms": ["gumbel"], "labelled": 30, "unlabelled": 70,
    "validation": 40, "hidden": 8, "classifier": 8, "latent": 2, "batch_size": 32, "warm_steps": 2,
    "warm_learning_rate": 0.001, "epochs": 2, "learning_rates": RATES,
}  # fmt: skip
MOVING: dict[str, Any] = ANNEAL | {
    "seeds": [0], "arms": ["known_place", "rb5_plus", "gumbel"], "side": 17, "digit": 14, "train_images": 64,
    "validation": 20, "channels": 2, "hidden": 8, "latent": 2, "head": "linear", "batch_size": 32, "epochs": 2,
    "learning_rates": RATES, "examples": 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic.load(test_per_class=6)
    monkeypatch.setattr(semi_supervised.fashion_mnist, "load", lambda: data)
    monkeypatch.setattr(canvas.mnist5k, "load", lambda: data)


def test_toy_and_check_give_the_same_bytes(tmp_path: Path) -> None:
    sizes = {"runs": 3, "steps": 20, "learning_rate": 1.0, "start": -4.0, "cases": 3, "path_points": 5}
    one, two = (toy.run_toy(Context(tmp_path), seeds=[0], **sizes) for _ in range(2))
    assert all(table_bytes(one[n]) == table_bytes(two[n]) for n in one)
    other = toy.run_toy(Context(tmp_path), seeds=[1], **sizes)
    assert other["toy"]["value"].to_pylist() != one["toy"]["value"].to_pylist()
    first, second = (check.check_estimators(Context(tmp_path), draws=2000, problems=3) for _ in range(2))
    assert all(table_bytes(first[n]) == table_bytes(second[n]) for n in first)
    assert max(where(first["identities"], claim="R7")["value"].to_pylist()) < 1e-10


def test_the_exact_arm_descends_along_the_exact_gradient() -> None:
    losses = toy.descend("full", 0, 1, 50, 1.0, -4.0)[:, 0]
    eta, expected = -4.0, [float(bernoulli.loss(-4.0))]
    for _ in range(50):
        eta -= bernoulli.gradient(eta)
        expected.append(float(bernoulli.loss(eta)))
    assert losses == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("train", "sizes", "table"),
    [
        (semi_supervised.train_semi_supervised, SEMI, "semi_validation"),
        (moving_digit.train_moving_digit, MOVING, "moving_validation"),
    ],
)
def test_same_bytes_twice_and_after_a_kill(
    train: Any, sizes: dict[str, Any], table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = train(Context(tmp_path / "a"), **sizes)[table]
    again = train(Context(tmp_path / "b"), **sizes)[table]
    assert table_bytes(undisturbed) == table_bytes(again)
    saved, count = fitting.save_checkpoint, 0

    def killed(path: Path, content: dict[str, Any]) -> None:
        nonlocal count
        saved(path, content)
        count += 1
        if count == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        train(Context(tmp_path / "c"), **sizes)
    monkeypatch.setattr(fitting, "save_checkpoint", saved)
    assert table_bytes(train(Context(tmp_path / "c"), **sizes)[table]) == table_bytes(undisturbed)
    assert not np.isnan(undisturbed["value"].to_numpy()).any()


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    small = SEMI | {"arms": ["rb1"], "cold_arms": []}
    semi_supervised.train_semi_supervised(Context(tmp_path), **small)
    with pytest.raises(ResultError, match="another run"):
        semi_supervised.train_semi_supervised(Context(tmp_path), **small | {"epochs": 3})


def test_divergence_is_said(tmp_path: Path) -> None:
    wild = SEMI | {"arms": ["rb1"], "cold_arms": [], "learning_rates": {"rb1": 1e30}}
    with pytest.raises(RestudyError, match="diverged|rb1"):
        semi_supervised.train_semi_supervised(Context(tmp_path), **wild)


def test_arms_start_from_the_same_networks(tmp_path: Path) -> None:
    table = semi_supervised.train_semi_supervised(Context(tmp_path), **SEMI)["semi_validation"]
    first = where(table, epoch=0, metric="nelbo", start="warm")["value"].to_pylist()
    assert len(first) == 3 and len(set(first)) == 1


def test_unknown_arm() -> None:
    with pytest.raises(ConfigError, match="unknown arm"):
        arms.builder("best", 3, 0)


def test_label_integrand_at_one_hot_weights_is_the_integrand_at_the_label() -> None:
    model = LabelledVae(8, 8, 3)
    x = torch.bernoulli(torch.full((5, 784), 0.4))
    f = Integrand(model, x, torch.randn(5, 3))
    values = f.at(every_label(5))
    for label in (0, 7):
        one_hot = torch.zeros(5, 10).scatter(1, torch.full((5, 1), label), 1.0)
        assert torch.allclose(f.relaxed(one_hot), values[label], rtol=1e-5)


def test_place_integrand_at_one_hot_weights_is_the_integrand_at_the_place() -> None:
    shape = canvas.Canvas(17, 14)
    model = canvas.AttendingVae(shape, channels=2, hidden=8, latent=2, head="convolution")
    images = torch.bernoulli(torch.full((5, 14, 14), 0.3))
    truth = torch.tensor([0, 3, 5, 10, 15])
    x = canvas.place(shape, images, truth)
    assert float(x.sum()) == float(images.sum())
    f = canvas.Looking(model, x, torch.randn(5, 2))
    assert torch.equal(f.windows[torch.arange(5), truth // 4, truth % 4], images)
    for places in (truth, (truth + 3) % 16):
        one_hot = torch.zeros(5, 16).scatter(1, places[:, None], 1.0)
        assert torch.allclose(f.relaxed(one_hot), f.at(places[None])[0], rtol=1e-4)


def test_value_at_a_place_is_the_likelihood_of_the_whole_canvas() -> None:
    shape = canvas.Canvas(16, 14)
    model = canvas.AttendingVae(shape, channels=2, hidden=8, latent=2, head="linear")
    x = canvas.place(shape, torch.bernoulli(torch.full((1, 14, 14), 0.3)), torch.tensor([4]))
    f = canvas.Looking(model, x, torch.zeros(1, 2))
    window = f.windows[0, 0, 0].flatten()[None]
    logits, divergence = f._see(window)
    lit = torch.full((16, 16), canvas.BACKGROUND)
    lit[:14, :14] = logits.sigmoid().view(14, 14)
    expected = torch.nn.functional.binary_cross_entropy(lit, x[0], reduction="sum") + divergence[0]
    assert float(f.at(torch.tensor([[0]]))[0, 0].detach()) == pytest.approx(float(expected.detach()), rel=1e-4)


def test_near() -> None:
    shape = canvas.Canvas(34, 14)
    truth = torch.tensor([0, 0, 0, 22])
    found = torch.tensor([2, 3, 2 * 21 + 2, 0])
    assert canvas.near(shape, found, truth, 2).tolist() == [True, False, True, True]


def test_the_known_place_pays_its_prior() -> None:
    shape = canvas.Canvas(17, 14)
    model = canvas.AttendingVae(shape, channels=2, hidden=8, latent=2, head="linear")
    test = canvas.digits(shape, 10, test=True)
    task = moving_digit.MovingDigit(model, 0, test, test, 5, known=True)
    found = task.measure()
    assert found["located"] == 1.0
    assert found["nelbo"] == pytest.approx(found["nelbo_argmax"], rel=1e-4)
    assert found["nelbo_argmax"] > math.log(shape.categories)

"""What this study alone knows: the integrands agree, arms share a start, the exact arm descends along the gradient."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.errors import ConfigError, RestudyError
from restudy.studies.rao_blackwell import exact, experiment, models, moving_digit
from restudy.studies.rao_blackwell.models import Integrand, LabelledVae, every_label

RATES = dict.fromkeys(("full", "rb1", "reinforce2", "gumbel", "relax", "rb5_plus", "known_place", "nvil"), 0.001)
ANNEAL: dict[str, Any] = {"temperature": 1.0, "anneal_rate": 0.01, "lowest_temperature": 0.1}
SEMI: dict[str, Any] = ANNEAL | {
    "seeds": [0], "arms": ["full", "rb1", "relax"], "cold_arms": ["gumbel"], "labelled": 30, "unlabelled": 70,
    "validation": 40, "hidden": 8, "classifier": 8, "latent": 2, "batch_size": 32, "warm_steps": 2,
    "warm_learning_rate": 0.001, "epochs": 2, "learning_rates": RATES,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic.load(test_per_class=6)
    monkeypatch.setattr(experiment.fashion_mnist, "load", lambda: data)
    monkeypatch.setattr(models.mnist5k, "load", lambda: data)


def test_the_exact_arm_descends_along_the_exact_gradient() -> None:
    losses = exact.descend("full", 0, 1, 50, 1.0, -4.0)[:, 0]
    eta, expected = -4.0, [float(exact.loss(-4.0))]
    for _ in range(50):
        eta -= exact.gradient(eta)
        expected.append(float(exact.loss(eta)))
    assert losses == pytest.approx(expected, abs=1e-12)


def test_divergence_is_said(tmp_path: Path) -> None:
    wild = SEMI | {"arms": ["rb1"], "cold_arms": [], "learning_rates": {"rb1": 1e30}}
    with pytest.raises(RestudyError, match="diverged|rb1"):
        experiment.semi_supervised(Context(tmp_path), **wild)


def test_arms_start_from_the_same_networks(tmp_path: Path) -> None:
    rows = experiment.semi_supervised(Context(tmp_path), **SEMI)["semi_validation"]
    first = [r["value"] for r in rows if (r["epoch"], r["metric"], r["start"]) == (0, "nelbo", "warm")]
    assert len(first) == 3 and len(set(first)) == 1


def test_unknown_arm() -> None:
    with pytest.raises(ConfigError, match="unknown arm"):
        experiment.builder("best", 3, 0)


def test_label_integrand_at_one_hot_weights_is_the_integrand_at_the_label() -> None:
    model = LabelledVae(8, 8, 3)
    x = torch.bernoulli(torch.full((5, 784), 0.4))
    f = Integrand(model, x, torch.randn(5, 3))
    values = f.at(every_label(5))
    for label in (0, 7):
        one_hot = torch.zeros(5, 10).scatter(1, torch.full((5, 1), label), 1.0)
        assert torch.allclose(f.relaxed(one_hot), values[label], rtol=1e-5)


def test_place_integrand_at_one_hot_weights_is_the_integrand_at_the_place() -> None:
    shape = models.Canvas(17, 14)
    model = models.AttendingVae(shape, channels=2, hidden=8, latent=2, head="convolution")
    images = torch.bernoulli(torch.full((5, 14, 14), 0.3))
    truth = torch.tensor([0, 3, 5, 10, 15])
    x = models.place(shape, images, truth)
    assert float(x.sum()) == float(images.sum())
    f = models.Looking(model, x, torch.randn(5, 2))
    assert torch.equal(f.windows[torch.arange(5), truth // 4, truth % 4], images)
    for places in (truth, (truth + 3) % 16):
        one_hot = torch.zeros(5, 16).scatter(1, places[:, None], 1.0)
        assert torch.allclose(f.relaxed(one_hot), f.at(places[None])[0], rtol=1e-4)


def test_value_at_a_place_is_the_likelihood_of_the_whole_canvas() -> None:
    shape = models.Canvas(16, 14)
    model = models.AttendingVae(shape, channels=2, hidden=8, latent=2, head="linear")
    x = models.place(shape, torch.bernoulli(torch.full((1, 14, 14), 0.3)), torch.tensor([4]))
    f = models.Looking(model, x, torch.zeros(1, 2))
    window = f.windows[0, 0, 0].flatten()[None]
    logits, divergence = f._see(window)
    lit = torch.full((16, 16), models.BACKGROUND)
    lit[:14, :14] = logits.sigmoid().view(14, 14)
    expected = torch.nn.functional.binary_cross_entropy(lit, x[0], reduction="sum") + divergence[0]
    assert float(f.at(torch.tensor([[0]]))[0, 0].detach()) == pytest.approx(float(expected.detach()), rel=1e-4)


def test_near() -> None:
    shape = models.Canvas(34, 14)
    truth = torch.tensor([0, 0, 0, 22])
    found = torch.tensor([2, 3, 2 * 21 + 2, 0])
    assert models.near(shape, found, truth, 2).tolist() == [True, False, True, True]


def test_the_known_place_pays_its_prior() -> None:
    shape = models.Canvas(17, 14)
    model = models.AttendingVae(shape, channels=2, hidden=8, latent=2, head="linear")
    test = models.digits(shape, 10, test=True)
    task = moving_digit.MovingDigit(model, 0, test, test, 5, known=True)
    found = task.measure()
    assert found["located"] == 1.0
    assert found["nelbo"] == pytest.approx(found["nelbo_argmax"], rel=1e-4)
    assert found["nelbo_argmax"] > math.log(shape.categories)

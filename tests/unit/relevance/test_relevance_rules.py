"""Relevance against oracles: sums written out, zennit, gradient x input, conservation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.unit.relevance.relevance_nets import Residual, Vgg, inputs, seeded, zennit
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.models import SmallCNN
from restudy.methods.models.efficientnet import fold_batch_norms
from restudy.methods.relevance import attribute, conservation
from restudy.methods.relevance.benchmark import by_zennit

OPTIONS = {"lrp_epsilon": {"epsilon": 0.01}, "lrp_alpha_beta": {"alpha": 2.0, "beta": 1.0, "stabilizer": 1e-6}}


def by_hand(layers, x, target, rule, options):
    """LRP through linear layers with ReLU between them, contribution by contribution, float64."""
    activations = [x]
    for index, (weight, bias) in enumerate(layers):
        z = weight @ activations[-1] + bias
        activations.append(np.maximum(z, 0) if index < len(layers) - 1 else z)
    relevance = np.zeros_like(activations[-1])
    relevance[target] = activations[-1][target]
    for (weight, bias), a in zip(reversed(layers), reversed(activations[:-1]), strict=True):
        below = np.zeros_like(a)
        for j in range(len(bias)):
            parts = weight[j] * a
            if rule == "lrp_epsilon":
                z = parts.sum() + bias[j]
                below += parts / (z + options["epsilon"] * (1 if z >= 0 else -1)) * relevance[j]
            else:
                plus = np.maximum(parts, 0).sum() + max(bias[j], 0)
                minus = np.minimum(parts, 0).sum() + min(bias[j], 0)
                tiny = options["stabilizer"]
                below += options["alpha"] * np.maximum(parts, 0) / (plus + tiny) * relevance[j]
                below -= (
                    options["beta"] * np.minimum(parts, 0) / (minus + (-tiny if minus < 0 else tiny)) * relevance[j]
                )
        relevance = below
    return relevance


@pytest.mark.parametrize("rule", OPTIONS)
def test_written_out_sums(rule: str) -> None:
    model = seeded(
        nn.Sequential(nn.Flatten(), nn.Linear(18, 7), nn.ReLU(), nn.Linear(7, 6), nn.ReLU(), nn.Linear(6, 4))
    )
    model.double()
    x = torch.randn(3, 2, 3, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    target = torch.tensor([0, 3, 1])
    found = attribute(model, x, target, rule, **OPTIONS[rule])
    layers = [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in model if isinstance(m, nn.Linear)]
    for number in range(3):
        wanted = by_hand(layers, x[number].flatten().numpy(), int(target[number]), rule, OPTIONS[rule])
        np.testing.assert_allclose(found[number].flatten().numpy(), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.peers
@pytest.mark.parametrize("rule", OPTIONS)
@pytest.mark.parametrize("name", ["cnn", "vgg"])
def test_zennit_on_plain_nets(rule: str, name: str) -> None:
    zennit()
    model = SmallCNN((6, 8), 16, in_channels=3, image_size=12, seed=2).eval() if name == "cnn" else seeded(Vgg())
    images, target = inputs(8), torch.arange(8) % 5
    ours = attribute(model, images, target, rule, **OPTIONS[rule])
    theirs = by_zennit(model, images, target, rule, OPTIONS[rule])
    assert float((ours - theirs).abs().max() / theirs.abs().max()) <= 1e-5


@pytest.mark.peers
@pytest.mark.parametrize("rule", OPTIONS)
@pytest.mark.parametrize("six", [False, True])
def test_zennit_on_a_residual_net(rule: str, six: bool) -> None:
    zennit()
    from zennit.layer import Sum

    class Added(nn.Module):
        def __init__(self):
            super().__init__()
            self.sum = Sum()

        def forward(self, a, b):
            return self.sum(torch.stack([a, b], -1))

    ours = seeded(Residual(six=six))
    theirs = Residual(add=Added(), six=six)
    theirs.load_state_dict(ours.state_dict())
    images, target = inputs(6), torch.arange(6) % 5
    found = attribute(ours, images, target, rule, **OPTIONS[rule])
    wanted = by_zennit(fold_batch_norms(theirs), images, target, rule, OPTIONS[rule])
    assert float((found - wanted).abs().max() / wanted.abs().max()) <= 1e-5


@pytest.mark.peers
def test_another_alpha_and_beta_against_zennit() -> None:
    zennit()
    model, options = seeded(Vgg()), {"alpha": 1.0, "beta": 0.0, "stabilizer": 1e-6}
    images, target = inputs(4), torch.arange(4)
    found = attribute(model, images, target, "lrp_alpha_beta", **options)
    wanted = by_zennit(model, images, target, "lrp_alpha_beta", options)
    assert float((found - wanted).abs().max() / wanted.abs().max()) <= 1e-5


def bare(model: nn.Module) -> nn.Module:
    """Without biases, running means 0: nothing is added to any activation."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.zero_()
    return model.double()


@pytest.mark.parametrize("net", [Vgg, Residual])
def test_epsilon_to_zero_is_gradient_x_input(net) -> None:
    model = bare(seeded(net()))
    images, target = inputs(5, torch.float64), torch.arange(5)
    relevance = attribute(model, images, target, "lrp_epsilon", epsilon=1e-12)
    product = attribute(model, images, target, "gradient_x_input")
    assert float((relevance - product).abs().max() / product.abs().max()) <= 1e-5


@pytest.mark.parametrize("net", [Vgg, Residual])
def test_conservation(net) -> None:
    model = bare(seeded(net()))
    images, target = inputs(5, torch.float64), torch.arange(5)
    found = conservation(model, images, target, "lrp_epsilon", {"epsilon": 1e-12})
    assert float(found.gap().max()) <= 1e-6
    assert float(found.layer_gaps().max()) <= 1e-6
    split = conservation(model, images, target, "lrp_alpha_beta", {"stabilizer": 1e-12})
    assert float(split.layer_gaps(mixed=True).max()) <= 1e-6


def test_a_rule_that_loses_relevance_is_noticed() -> None:
    model = bare(seeded(Vgg()))
    images, target = inputs(5, torch.float64), torch.arange(5)
    found = conservation(model, images, target, "lrp_epsilon", {"epsilon": 1.0})
    assert float(found.gap().min()) > 1e-3
    assert float(found.layer_gaps().amax(1).min()) >= 0
    assert float(found.layer_gaps().max()) > 1e-2


def test_biases_take_a_share() -> None:
    model = seeded(Vgg()).double()
    images, target = inputs(5, torch.float64), torch.arange(5)
    assert float(conservation(model, images, target, "lrp_epsilon", {"epsilon": 1e-12}).gap().min()) > 1e-3


def test_a_cancelling_neuron() -> None:
    layer = nn.Linear(2, 1, bias=False).double()
    layer.weight.data = torch.tensor([[1.0, 1e-8 - 1.0]], dtype=torch.float64)
    head = nn.Linear(1, 1, bias=False).double()
    head.weight.data.fill_(1e8)
    model = nn.Sequential(nn.Flatten(), layer, nn.ReLU(), head)
    x, target = torch.ones(1, 2, 1, 1, dtype=torch.float64), torch.zeros(1, dtype=torch.int64)
    wild = attribute(model, x, target, "lrp_epsilon", epsilon=0.0)
    tame = attribute(model, x, target, "lrp_epsilon", epsilon=0.01)
    assert not bool(torch.isfinite(wild).all()) or float(wild.abs().max()) > 1e3
    assert float(tame.abs().max()) <= 100.0


@pytest.mark.parametrize(("alpha", "beta"), [(2.0, 2.0), (1.0, 1.0), (3.0, 1.0)])
def test_alpha_minus_beta_is_one(alpha: float, beta: float) -> None:
    with pytest.raises(ConfigError, match="alpha - beta must be 1"):
        attribute(seeded(Vgg()), inputs(1), torch.zeros(1, dtype=torch.int64), "lrp_alpha_beta", alpha=alpha, beta=beta)

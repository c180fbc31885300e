"""Probes against direct computation, and nothing disturbed, bit for bit."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.landscape import (
    Probe,
    along_gradient,
    covariate_shift,
    curvature_along_gradient,
    geometric,
    histogram,
    layer_parameters,
    moments,
    step_change,
    top_eigenvalue,
    wasserstein,
)
from restudy.methods.landscape.curvature import hessian_vector
from restudy.methods.normalization import noisy_batch_norm

torch.manual_seed(0)
IMAGES, LABELS = torch.randn(12, 1, 6, 6), torch.randint(0, 3, (12,))


def net(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """Everything that could be disturbed: running statistics, noise, dropout, a frozen parameter, an in-place ReLU."""
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(inplace=True), nn.Conv2d(3, 4, 3), noisy_batch_norm(4),
        nn.Flatten(), nn.Dropout(0.3), nn.Linear(16, 3),
    ).to(dtype)  # fmt: skip
    model[7].bias.requires_grad_(False)
    return model


def objective(model: nn.Module) -> Tensor:
    images = IMAGES.to(next(model.parameters()).dtype)
    return F.cross_entropy(model(images), LABELS)


def everything(model: nn.Module) -> list[Tensor]:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return [torch.get_rng_state(), *model.state_dict().values(), *gradients]


@pytest.mark.parametrize("seed", [None, 7])
@pytest.mark.parametrize("training", [True, False])
def test_probes_disturb_nothing(seed: int | None, training: bool) -> None:
    model = net()
    objective(model).backward()
    model.train(training)
    model[1].eval()
    before, modes = copy.deepcopy(everything(model)), [m.training for m in model.modules()]
    versions = [p._version for p in model.parameters()]
    probe = Probe(model, objective, seed=seed)
    along_gradient(probe, geometric(0.05, 0.4, 3))
    covariate_shift(probe, layer_parameters(model, ["0", "3", "4", "7"][:3]), 0.1)
    curvature_along_gradient(probe)
    top_eigenvalue(probe, iterations=2)
    probe.point(watch=["0", "4"], keep_outputs=True)
    probe.outputs(["3"])
    probe.loss()
    assert all(torch.equal(a, b) for a, b in zip(before, everything(model), strict=True))
    assert modes == [m.training for m in model.modules()]
    assert versions == [p._version for p in model.parameters()]
    assert not any(m._forward_hooks for m in model.modules())
    assert all(p.requires_grad for n, p in model.named_parameters() if n != "7.bias")


def test_nothing_is_disturbed_when_the_objective_fails() -> None:
    model = net().eval()
    before = everything(model)

    def failing(inner: nn.Module) -> Tensor:
        objective(inner)
        raise ValueError("no loss")

    with pytest.raises(ValueError, match="no loss"):
        Probe(model, failing).point(watch=["0"])
    assert all(torch.equal(a, b) for a, b in zip(before, everything(model), strict=True))
    assert not model.training and not any(m._forward_hooks for m in model.modules())


def test_a_probe_sees_what_training_would_see() -> None:
    model = net()
    state = torch.get_rng_state()
    point = Probe(model, objective).point()
    torch.set_rng_state(state)
    loss = objective(model)
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    direct = torch.autograd.grad(loss, [p for _, p in named])
    assert torch.equal(point.loss, loss.detach())
    assert all(torch.equal(point.gradient[n], g) for (n, _), g in zip(named, direct, strict=True))


def test_the_noise_is_the_same_at_every_point_and_another_with_another_seed() -> None:
    model = net()
    probe = Probe(model, objective, seed=3)
    assert torch.equal(probe.loss(), probe.loss())
    assert not torch.equal(probe.loss(), Probe(model, objective, seed=4).loss())


def test_along_gradient_by_copying_the_model() -> None:
    model, rate = net(torch.float64), 0.3
    probe = Probe(model, objective, seed=5)
    seen, start = along_gradient(probe, [rate]), probe.point()
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in moved.named_parameters():
            if parameter.requires_grad:
                parameter.sub_(start.gradient[name], alpha=rate)
    there = Probe(moved, objective, seed=5).point()
    change = math.sqrt(sum(float((there.gradient[n] - g).square().sum()) for n, g in start.gradient.items()))
    assert seen.losses[0] == pytest.approx(float(there.loss), rel=1e-12)
    assert seen.changes[0] == pytest.approx(change, rel=1e-10)
    assert seen.effective_smoothness == pytest.approx(change / rate / seen.gradient_norm, rel=1e-10)
    assert seen.loss_range == pytest.approx(abs(seen.losses[0] - seen.loss))


class Bowl(nn.Module):
    """Half w' A w: everything has a closed form."""

    def __init__(self, matrix: Tensor) -> None:
        super().__init__()
        self.matrix, self.w = matrix, nn.Parameter(torch.arange(1.0, len(matrix) + 1, dtype=matrix.dtype))

    def forward(self) -> Tensor:
        return 0.5 * self.w @ self.matrix @ self.w


def test_closed_forms_on_a_quadratic() -> None:
    generator = torch.Generator().manual_seed(0)
    root = torch.randn(4, 4, generator=generator, dtype=torch.float64)
    matrix = root @ root.T
    model = Bowl(matrix)
    probe, g = Probe(model, lambda net: net()), matrix @ model.w.detach()
    seen = along_gradient(probe, [0.01, 0.02])
    beta = float((matrix @ g).norm() / g.norm())
    assert seen.effective_smoothness == pytest.approx(beta, rel=1e-10)
    assert seen.changes[1] == pytest.approx(2 * seen.changes[0], rel=1e-10)
    assert curvature_along_gradient(probe) == pytest.approx(float(g @ matrix @ g / (g @ g)), rel=1e-10)
    top = float(torch.linalg.eigvalsh(matrix).max())
    assert top_eigenvalue(probe, iterations=500, tolerance=1e-12) == pytest.approx(top, rel=1e-6)
    vector = torch.randn(4, generator=generator, dtype=torch.float64)
    assert torch.allclose(hessian_vector(probe, {"w": vector})["w"], matrix @ vector)


def test_curvature_of_a_batch_norm_net_against_differences() -> None:
    probe, step = Probe(net(torch.float64), objective, seed=2), 1e-6
    start = probe.point()
    after = probe.point(probe.moved(start.gradient, step)).gradient
    g = torch.cat([v.flatten() for v in start.gradient.values()])
    change = g - torch.cat([v.flatten() for v in after.values()])
    assert curvature_along_gradient(probe) == pytest.approx(float(g @ change) / step / float(g @ g), rel=1e-4)


def test_covariate_shift_by_hand() -> None:
    model, rate = net(torch.float64), 0.2
    probe = Probe(model, objective, seed=6)
    layers = layer_parameters(model, ["0", "1", "3", "4"])
    layers["7"] = ["7.weight"]
    start = probe.point().gradient
    moved = {n: w - rate * start[n] if n.split(".")[0] in ("0", "1") else w for n, w in probe.weights.items()}
    one, two = (g["3.weight"].flatten() for g in (start, probe.point(moved).gradient))
    found = {
        s.layer: s
        for s in covariate_shift(
            probe, layers, rate, weights={n: [f"{n}.weight"] for n in layers if n != "4"} | {"4": layers["4"]}
        )
    }
    assert found["3"].l2 == pytest.approx(float((one - two).norm()), rel=1e-10)
    assert found["3"].cosine == pytest.approx(float(one @ two / one.norm() / two.norm()), rel=1e-10)
    assert found["0"].l2 == 0 and found["0"].cosine == pytest.approx(1)
    assert found["7"].l2 > 0


def test_without_a_step_there_is_no_shift_at_all() -> None:
    model = net()
    layers = layer_parameters(model, ["0", "1", "3", "4"])
    assert [s.l2 for s in covariate_shift(Probe(model, objective, seed=1), layers, 0.0)] == [0.0] * 4


def test_output_gradients_are_those_of_the_output() -> None:
    model = net(torch.float64)
    point = Probe(model, objective, seed=8).point(watch=["3", "1"], keep_outputs=True)
    assert point.output_gradients["3"].shape == point.outputs["3"].shape == (12, 4, 2, 2)
    # The bias of a convolution sees the sum of its output's gradient; before a batch norm that sum is 0.
    assert torch.allclose(point.output_gradients["3"].sum((0, 2, 3)), point.gradient["3.bias"], atol=1e-12)
    assert float(point.outputs["1"].min()) < 0  # not what the in-place ReLU made of it


def test_distributions() -> None:
    generator = np.random.default_rng(0)
    one, two = generator.normal(0, 1, (3, 500)), generator.normal(0.5, 2, (3, 500))
    expected = [stats.wasserstein_distance(a, b) / np.concatenate([a, b]).std() for a, b in zip(one, two, strict=True)]
    assert wasserstein(torch.tensor(one), torch.tensor(two)) == pytest.approx(np.mean(expected), rel=1e-10)
    assert math.isnan(wasserstein(torch.ones(2, 5), torch.ones(2, 5)))
    values = torch.tensor(one)[:, :, None].transpose(0, 1)
    mean, variance = moments(values)
    assert mean.numpy() == pytest.approx(one.mean(1)) and variance.numpy() == pytest.approx(one.var(1))
    moved = step_change((mean, variance), (mean + math.sqrt(float(variance.mean())), 3 * variance))
    assert moved == (pytest.approx(1.0), pytest.approx(2.0))
    found = histogram(values, 10)
    counts, edges = np.histogram(one, 10)
    assert list(found.counts) == counts.tolist() and (found.low, found.high) == (edges[0], edges[-1])
    assert sum(histogram(torch.full((4,), 2.0), 5).counts) == 4
    assert sum(histogram(torch.tensor([math.nan, 1.0, 2.0]), 5).counts) == 2


@pytest.mark.parametrize(
    "act",
    [
        lambda: Probe(nn.ReLU(), lambda net: torch.zeros(())),
        lambda: Probe(net(), objective, mode="eval"),
        lambda: Probe(net(), objective).point(watch=["nothing"]),
        lambda: Probe(net(), lambda model: model(IMAGES)).loss(),
        lambda: along_gradient(Probe(net(), objective), []),
        lambda: geometric(1, 0.5, 3),
        lambda: layer_parameters(net(), ["2"]),
        lambda: covariate_shift(Probe(net(), objective), {"7": ["7.bias"]}, 0.1),
    ],
)
def test_what_cannot_be_is_refused(act) -> None:
    with pytest.raises(ConfigError):
        act()

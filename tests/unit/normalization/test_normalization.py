"""Layers against torch's, noise against its closed forms, the theory to rounding."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.normalization import (
    AffineNoise,
    BatchNorm,
    LpNorm,
    batch_norm,
    gradient_reduction,
    lp_norm,
    matching_affine,
    noisy_batch_norm,
    printed_bound,
    statistics,
    weight_gradient_bound,
)

SHAPES = [(16, 5), (8, 5, 4, 3), (2, 5, 1, 1)]


def pair(fused: bool, shape: tuple[int, ...]) -> tuple[nn.Module, nn.Module]:
    theirs: nn.Module = nn.BatchNorm1d(5) if len(shape) == 2 else nn.BatchNorm2d(5)
    ours = BatchNorm(5, fused=fused)
    with torch.no_grad():
        theirs.weight.uniform_(0.5, 2)  # type: ignore[operator, union-attr]
        theirs.bias.normal_()  # type: ignore[operator, union-attr]
    ours.load_state_dict({k: v for k, v in theirs.state_dict().items() if k != "num_batches_tracked"})
    return ours, theirs


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_batch_norm_is_torchs_forward_backward_and_running(fused: bool, shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    ours, theirs = pair(fused, shape)
    for _ in range(3):
        inputs, gradient = 3 * torch.randn(shape) + 1, torch.randn(shape)
        found = []
        for module in (ours, theirs):
            x = inputs.clone().requires_grad_()
            y = module(x)
            found.append((y, *torch.autograd.grad(y, [x, *module.parameters()], gradient)))
        for one, two in zip(*found, strict=True):
            assert torch.allclose(one, two, atol=2e-6, rtol=1e-5)
    for name in ("running_mean", "running_var"):
        assert torch.allclose(ours.get_buffer(name), theirs.get_buffer(name), atol=1e-6)
    ours.eval(), theirs.eval()
    assert torch.allclose(ours(inputs), theirs(inputs), atol=1e-6)


def test_batch_norm_in_float64_to_ten_digits() -> None:
    torch.manual_seed(1)
    ours, theirs = (m.double() for m in pair(False, (8, 5, 4, 3)))
    inputs, gradient = (torch.randn(8, 5, 4, 3, dtype=torch.float64) for _ in range(2))
    one, two = (x := inputs.clone().requires_grad_(), inputs.clone().requires_grad_())
    a, b = ours(one), theirs(two)
    assert (a - b).abs().max() < 1e-10
    assert (torch.autograd.grad(a, x, gradient)[0] - torch.autograd.grad(b, two, gradient)[0]).abs().max() < 1e-10


@pytest.mark.parametrize("p", [1, 2, 3.5, math.inf])
def test_lp_norm_by_its_definition(p: float) -> None:
    torch.manual_seed(2)
    inputs = torch.randn(6, 3, 2, 2, dtype=torch.float64) + 1
    found = lp_norm(inputs, torch.ones(3).double(), torch.zeros(3).double(), p=p, eps=0.0)
    for unit in range(3):
        values = inputs[:, unit].flatten()
        size = values.abs().max() if math.isinf(p) else (values.abs() ** p).mean() ** (1 / p)
        assert torch.allclose(found[:, unit].flatten(), (values - values.mean()) / size)


def test_l2_norm_of_centred_inputs_is_batch_norm() -> None:
    torch.manual_seed(3)
    inputs = torch.randn(32, 4, dtype=torch.float64)
    inputs -= inputs.mean(0)
    weight, bias = torch.rand(4).double(), torch.rand(4).double()
    gap = lp_norm(inputs, weight, bias, p=2, eps=0.0) - batch_norm(inputs, weight, bias, eps=0.0)
    assert gap.abs().max() < 1e-10


def test_lp_norm_in_evaluation_uses_running_values() -> None:
    torch.manual_seed(4)
    layer, inputs = LpNorm(3, 1, momentum=1.0), torch.randn(50, 3) + 2
    trained = layer(inputs)
    assert torch.allclose(layer.eval()(inputs), trained, atol=1e-5)


def test_noise_has_the_moments_of_algorithm_1() -> None:
    torch.manual_seed(5)
    draws, units, samples = 300, 40, 60
    shifts, scales = [], []
    noise = AffineNoise()
    for _ in range(draws):
        zero, one = torch.zeros(samples, units, dtype=torch.float64), torch.ones(samples, units, dtype=torch.float64)
        state = torch.get_rng_state()
        shift = noise(zero)
        torch.set_rng_state(state)
        shifts.append(shift)
        scales.append(noise(one) - shift)
    shift, scale = torch.stack(shifts), torch.stack(scales)  # (draws, samples, units)
    # Between steps and units: U(-.5, .5) has variance 1/12, U(1, 1.25) mean 1.125 and variance .25^2/12.
    means, factors = shift.mean(1), scale.mean(1)
    within = 0.2**2 / 12
    assert shift.mean() == pytest.approx(0, abs=0.01) and scale.mean() == pytest.approx(1.125, abs=0.002)
    assert means.var() == pytest.approx(1 / 12 + within / samples, rel=0.03)
    assert factors.var() == pytest.approx(0.25**2 / 12 + 0.01 / samples, rel=0.03)
    # Within a unit and step, over samples.
    assert shift.var(1).mean() == pytest.approx(within, rel=0.01)
    assert scale.var(1).mean() == pytest.approx(0.01, rel=0.01)
    assert (shift - means[:, None]).abs().max() < 0.2 and means.abs().max() < 0.55


def test_noise_is_fresh_each_time_fixed_by_the_state_and_off_in_evaluation() -> None:
    layer, inputs = noisy_batch_norm(3), torch.randn(4, 3, 2, 2)
    torch.manual_seed(6)
    first, second = layer(inputs), layer(inputs)
    torch.manual_seed(6)
    again = layer(inputs)
    assert not torch.equal(first, second) and torch.equal(first, again)
    layer.eval()
    assert torch.equal(layer(inputs), layer[0](inputs))


def test_noise_per_position_in_both_memory_formats() -> None:
    inputs = torch.zeros(4, 3, 5, 5)
    for shaped in (inputs, inputs.contiguous(memory_format=torch.channels_last)):
        found = AffineNoise()(shaped)
        assert len(found[0, 0].unique()) == 25 and found.stride() == shaped.stride()


@given(st.integers(4, 63), st.integers(0, 10**6), st.floats(0.1, 5.0))
@settings(max_examples=60, deadline=None)
def test_theorem_4_1_is_an_equality_with_1_over_m(samples: int, seed: int, gamma: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    inputs, gradient = (torch.randn(samples, generator=generator, dtype=torch.float64) for _ in range(2))
    found = gradient_reduction(inputs, gradient, gamma=gamma)
    assert found.error < 1e-10
    assert printed_bound(found) < found.through


def test_eps_breaks_the_identity_which_is_why_it_is_0() -> None:
    inputs, gradient = torch.randn(2, 10, dtype=torch.float64).unbind()
    values = inputs.clone().requires_grad_()
    output = batch_norm(values[:, None], torch.ones(1).double(), torch.zeros(1).double(), eps=1e-2)
    (back,) = torch.autograd.grad(output, values, gradient[:, None])
    assert abs(float(back.square().sum()) - gradient_reduction(inputs, gradient, gamma=1.0).predicted) > 1e-6


def test_observation_4_3_and_weight_gradients() -> None:
    torch.manual_seed(8)
    outputs = torch.randn(9, 4, 2, 2, dtype=torch.float64) * 3 + 1
    gamma, beta = matching_affine(outputs)
    assert (batch_norm(outputs, gamma, beta, eps=0.0) - outputs).abs().max() < 1e-10
    mean, variance = statistics(outputs)
    assert torch.allclose(gamma.square(), variance) and torch.allclose(beta, mean)
    gradient = torch.randn(12, 3, dtype=torch.float64)
    largest, predicted = weight_gradient_bound(gradient, 2.0)
    assert largest == pytest.approx(predicted, rel=1e-12)
    for _ in range(20):
        inputs = torch.randn(12, 5, dtype=torch.float64)
        inputs *= 2.0 / torch.linalg.matrix_norm(inputs, 2)
        assert float(torch.linalg.matrix_norm(gradient.T @ inputs)) <= largest + 1e-12


@pytest.mark.parametrize(
    "build", [lambda: BatchNorm(0), lambda: LpNorm(3, 0.5)(torch.ones(2, 3)), lambda: AffineNoise(scale_max=0.5)]
)
def test_what_cannot_be_is_refused(build) -> None:
    with pytest.raises(ConfigError):
        build()

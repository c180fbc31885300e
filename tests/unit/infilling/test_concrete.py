"""Concrete samples against captum, and in law."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.methods.infilling.concrete import concrete_sample, pixel_probabilities, upsampled


def test_samples_equal_captums_given_the_same_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    from captum.module import BinaryConcreteStochasticGates
    from captum.module import binary_concrete_stochastic_gates as module

    uniform = torch.rand(50, 30, generator=torch.Generator().manual_seed(0)).clamp(1e-5, 1 - 1e-5)

    class Fixed(torch.Tensor):
        def uniform_(self, *_: object) -> torch.Tensor:  # type: ignore[override]
            return self.copy_(uniform)

    monkeypatch.setattr(module, "_torch_empty", lambda *shape, device: torch.empty(*shape).as_subclass(Fixed))
    gates = BinaryConcreteStochasticGates(30, temperature=0.1)
    theirs = (torch.Tensor(gates._sample_gate_values(50)) - gates.lower_bound) / (gates.upper_bound - gates.lower_bound)
    ours = concrete_sample(gates.log_alpha_param, uniform, 0.1)
    assert torch.allclose(ours, theirs, atol=1e-6, rtol=0)


@settings(deadline=None, max_examples=25)
@given(theta=st.floats(0.01, 0.99), temperature=st.floats(0.05, 2.0))
def test_a_sample_exceeds_one_half_with_probability_theta(theta: float, temperature: float) -> None:
    uniform = (torch.arange(4000, dtype=torch.float64) + 0.5) / 4000
    sample = concrete_sample(torch.logit(torch.tensor(theta, dtype=torch.float64)), uniform, temperature)
    assert float((sample > 0.5).double().mean()) == pytest.approx(theta, abs=1 / 4000)


def test_zero_noise_stays_finite() -> None:
    sample = concrete_sample(torch.zeros(2), torch.tensor([0.0, 1.0]), 0.1)
    assert torch.isfinite(sample).all() and sample[0] < 1e-6 and sample[1] > 1 - 1e-6


def test_upsampling_keeps_constants_and_range() -> None:
    assert torch.allclose(upsampled(torch.full((2, 1, 7, 7), 0.3), 28), torch.tensor(0.3))
    theta = pixel_probabilities(torch.randn(3, 1, 14, 14, generator=torch.Generator().manual_seed(1)), 28)
    assert theta.shape == (3, 1, 28, 28) and theta.min() >= 0 and theta.max() <= 1

"""Hard Concrete gates: closed forms against draws, gradients, penalties, masks."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.errors import ConfigError
from restudy.methods.pruning import (
    HardConcrete,
    HeadGates,
    cumulative,
    deterministic_gate,
    gate_moments,
    keep_highest,
    probability_one,
    probability_open,
    random_mask,
    sample_gate,
)

DRAWS = 200_000


def drawn(log_alpha: float) -> torch.Tensor:
    noise = torch.rand(DRAWS, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return sample_gate(torch.full((DRAWS,), log_alpha, dtype=torch.float64), noise)


@pytest.mark.parametrize("log_alpha", [-3.0, -1.0, 0.0, 0.7, 3.0])
def test_closed_forms_are_what_draws_give(log_alpha: float) -> None:
    gates, at = drawn(log_alpha), torch.tensor(log_alpha, dtype=torch.float64)
    mean, variance = gate_moments(log_alpha)
    error = 5 * math.sqrt(0.25 / DRAWS)
    assert float(probability_open(at)) == pytest.approx(float((gates > 0).double().mean()), abs=error)
    assert float(probability_one(at)) == pytest.approx(float((gates == 1).double().mean()), abs=error)
    assert float(cumulative(at, 0.4)) == pytest.approx(float((gates <= 0.4).double().mean()), abs=error)
    assert mean == pytest.approx(float(gates.mean()), abs=error)
    assert variance == pytest.approx(float(gates.var()), abs=error)


def test_moments_do_not_depend_on_the_quadrature() -> None:
    for log_alpha in (-2.0, 0.3, 2.0):
        assert gate_moments(log_alpha, nodes=100) == pytest.approx(gate_moments(log_alpha, nodes=400), abs=1e-8)


def test_test_time_gate_has_no_temperature() -> None:
    at = torch.tensor([-5.0, math.log(0.125 / 0.875), 0.0, math.log(7), 5.0])
    torch.testing.assert_close(deterministic_gate(at), torch.tensor([0.0, 0.05, 0.5, 0.95, 1.0]), atol=1e-6, rtol=0)
    other = HardConcrete(beta=0.9)
    assert torch.equal(deterministic_gate(at), deterministic_gate(at, other))


@given(st.floats(-6, 6), st.floats(0.0, 0.999999))
@settings(max_examples=60, deadline=None)
def test_gates_stay_in_the_unit_interval_and_rise_with_log_alpha(log_alpha: float, noise: float) -> None:
    at, u = torch.tensor([log_alpha, log_alpha + 0.5], dtype=torch.float64), torch.full((2,), noise).double()
    low, high = sample_gate(at, u).tolist()
    assert 0.0 <= low <= high <= 1.0
    assert float(probability_one(at[0])) <= float(probability_open(at[0]))


def test_gradient_reaches_log_alpha_where_the_gate_is_inside() -> None:
    at = torch.tensor([0.1, 30.0], requires_grad=True)
    sample_gate(at, torch.tensor([0.5, 0.5])).sum().backward()
    assert at.grad is not None and float(at.grad[0]) > 0 and float(at.grad[1]) == 0


def test_penalty_is_the_expected_number_of_open_gates() -> None:
    gates = HeadGates({"encoder": (3, 8), "cross": (2, 8)}, start=1.0)
    assert float(gates.penalty().detach()) == pytest.approx(40 * float(probability_open(torch.tensor(1.0))), rel=1e-6)
    generator = torch.Generator().manual_seed(0)
    draws = [sum(int((g > 0).sum()) for g in gates.sample(generator).values()) for _ in range(400)]
    assert sum(draws) / 400 == pytest.approx(float(gates.penalty().detach()), abs=0.5)


def test_binary_gates_and_both_ways_to_count() -> None:
    gates = HeadGates({"encoder": (1, 3)})
    with torch.no_grad():
        gates.log_alpha["encoder"].copy_(torch.tensor([[-4.0, -0.3, 2.0]]))
    assert gates.binary()["encoder"].tolist() == [[0.0, 0.0, 1.0]]
    assert gates.open_by_probability() == 2, "P(g = 0) < 1/2 is the laxer count"


@given(st.integers(1, 5), st.integers(1, 8), st.data())
@settings(max_examples=40, deadline=None)
def test_masks_keep_what_they_should(layers: int, heads: int, data: st.DataObject) -> None:
    kept = data.draw(st.integers(0, layers * heads))
    scores = torch.randn(layers, heads, generator=torch.Generator().manual_seed(kept))
    mask = keep_highest(scores, kept)
    assert int(mask.sum()) == kept
    if 0 < kept < layers * heads:
        assert float(scores[mask.bool()].min()) >= float(scores[~mask.bool()].max())
    assert int(random_mask((layers, heads), kept, torch.Generator().manual_seed(1)).sum()) == kept


def test_mistakes_are_named() -> None:
    with pytest.raises(ConfigError, match="cannot be kept"):
        random_mask((2, 2), 5, torch.Generator())
    with pytest.raises(ConfigError, match="Hard Concrete"):
        HardConcrete(gamma=0.1)

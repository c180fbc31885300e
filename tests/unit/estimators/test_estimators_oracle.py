"""Enumeration against the tables computed by hand for the paper's toy, and the formula for k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.errors import ConfigError
from restudy.methods.estimators import optimal_k, rao_blackwell_moments, top_k
from restudy.methods.estimators.oracle import fourth_moment, second_sample_moments
from restudy.studies.rao_blackwell import exact as bernoulli

PLAIN = {
    0.0: (0.438, 0.194, 0.130, 0.0699, 0.0554, 0.0143, 0.00745, 0.0),
    -4.0: (0.0336, 5.06e-5, 2.78e-5, 1.16e-5, 3.77e-8, 3.2e-9, 1.0e-9, 0.0),
}
FRESH = {
    0.0: (0.0125, 0.00773, 0.00636, 0.00520, 0.00362, 0.00213, 0.00147, 0.000984),
    -4.0: (7.5e-4, 3.3e-5, 1.4e-5, 3.3e-6, 2.6e-6, 2.5e-6, 2.5e-6, 2.5e-6),
}
OUTSIDE = (1, 0.0530, 0.0357, 0.0183, 9.6e-4, 6.4e-4, 3.2e-4, 5.8e-6)


def toy(eta: float):
    return bernoulli.probabilities(eta), bernoulli.score(eta)


@pytest.mark.parametrize("eta", PLAIN)
def test_variances_of_the_toy(eta: float) -> None:
    q, score = toy(eta)
    for k in range(8):
        chosen = top_k(q, k)
        found = rao_blackwell_moments(q, bernoulli.F[:, None] * score, chosen)
        assert found.variance == pytest.approx(PLAIN[eta][k], rel=0.06, abs=1e-15)
        assert found.mean[0] == pytest.approx(bernoulli.gradient(eta), abs=1e-15)
        fresh = second_sample_moments(q, bernoulli.F, score, chosen, fresh=True)
        assert fresh.variance == pytest.approx(FRESH[eta][k], rel=0.04)
        shared = second_sample_moments(q, bernoulli.F, score, chosen, fresh=False)
        assert shared.variance <= fresh.variance * (1 + 1e-12)
        assert fresh.mean[0] == pytest.approx(shared.mean[0], abs=1e-15)


def test_gradients_losses_and_masses() -> None:
    assert bernoulli.gradient(0.0) == pytest.approx(-0.0450)
    assert bernoulli.gradient(-4.0) == pytest.approx(-0.003179, rel=1e-3)
    corners = [bernoulli.RIGHT_CORNER, bernoulli.WRONG_CORNER]
    assert corners == pytest.approx([0.6705, 0.8505])
    assert bernoulli.loss(50.0) == pytest.approx(0.6705)
    q, score = toy(-4.0)
    masses = [rao_blackwell_moments(q, score, top_k(q, k)).outside for k in range(8)]
    assert masses == pytest.approx(OUTSIDE, rel=0.015)


def test_number_of_summed_categories() -> None:
    assert [optimal_k(np.full(8, 1 / 8), n) for n in range(1, 9)] == [0] * 8
    q = bernoulli.probabilities(-4.0)
    assert [optimal_k(q, n) for n in (1, 2, 3, 4, 5, 8)] == [0, 1, 1, 1, 4, 7]
    assert optimal_k(q, 20) == 8
    with pytest.raises(ConfigError):
        optimal_k(q, 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(1, 9))
def test_k_hat_is_never_worse_and_the_bound_holds(seed: int, categories: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    q = generator.dirichlet(np.full(categories, generator.uniform(0.1, 3)))
    g = generator.normal(size=(categories, 3))
    plain = rao_blackwell_moments(q, g, [])
    k = optimal_k(q, n)
    found = rao_blackwell_moments(q, g, top_k(q, k), max(n - k, 1))
    assert found.variance <= plain.variance / n * (1 + 1e-9)
    for j in range(categories + 1):
        one = rao_blackwell_moments(q, g, top_k(q, j))
        assert one.variance <= plain.variance * one.outside + 1e-12
        assert one.mean == pytest.approx(plain.mean, abs=1e-12)


def test_fourth_moment_of_a_coin() -> None:
    found = fourth_moment(np.array([0.5, 0.5]), np.array([[1.0], [-1.0]]), [])
    assert found == pytest.approx(1.0)

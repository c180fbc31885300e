"""Bounds, gradients, errors and units against what is known: definitions, closed forms, enumeration in float64."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal

from restudy.errors import ConfigError
from restudy.methods.importance import (
    DeepGaussianAutoencoder,
    LinearGaussian,
    active_units,
    backward,
    benchmark,
    bound_of_groups,
    distance,
    draw_log_weights,
    estimate_log_likelihood,
    evidence_bound,
    gradient_moments,
    gradient_weights,
    importance_bound,
    likelihood,
    moments,
    unit_variances,
)
from restudy.methods.importance.gradients import Objective

SHAPES = [((3,), (5,)), ((4, 2), (6, 5)), ((3, 2, 2), (4, 4, 4))]


def network(units: tuple[int, ...], hidden: tuple[int, ...], seed: int = 0) -> tuple[DeepGaussianAutoencoder, Tensor]:
    torch.manual_seed(seed)
    model = DeepGaussianAutoencoder(8, units, hidden).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.5 * torch.randn_like(parameter))
    return model, torch.bernoulli(torch.full((3, 8), 0.5, dtype=torch.float64))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def flat_gradient(model: DeepGaussianAutoencoder) -> Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@given(st.lists(st.floats(-700, 700), min_size=2, max_size=12), st.floats(-5000, 5000))
@settings(max_examples=60, deadline=None)
def test_bound_lies_between_mean_and_largest_and_moves_with_a_shift(values: list[float], shift: float) -> None:
    log_w = torch.tensor(values, dtype=torch.float64)
    bound = float(importance_bound(log_w))
    assert float(evidence_bound(log_w)) - 1e-9 <= bound <= max(values) + 1e-9
    assert float(importance_bound(log_w + shift)) == pytest.approx(bound + shift, rel=1e-9, abs=1e-7)
    assert math.isfinite(float(importance_bound(log_w.float() - 1e30)))


def test_groups_are_disjoint_and_complete() -> None:
    log_w = torch.randn(7, 2, dtype=torch.float64, generator=generator())
    pairs = bound_of_groups(log_w, 2)
    assert pairs.shape == (3, 2)
    expected = torch.stack([(log_w[2 * i].exp() + log_w[2 * i + 1].exp()).div(2).log() for i in range(3)])
    assert torch.allclose(pairs, expected)
    assert torch.equal(bound_of_groups(log_w, 1), log_w)
    with pytest.raises(ConfigError, match="L_8 needs 8"):
        bound_of_groups(log_w, 8)


@pytest.mark.parametrize(("units", "hidden"), SHAPES)
def test_held_density_has_the_same_value_and_another_gradient(units: tuple[int, ...], hidden: tuple[int, ...]) -> None:
    model, x = network(units, hidden)
    noise = model.draw_noise(4, 3, generator())
    one, other = model.log_weights(x, noise), model.log_weights(x, noise, path_only=True)
    assert torch.allclose(one, other, rtol=1e-12)
    encoder, decoder = model.encoder_parameters(), model.decoder_parameters()
    for group, equal in ((decoder, True), (encoder, False)):
        grads = [torch.autograd.grad(v.sum(), group, retain_graph=True) for v in (one, other)]
        assert all(torch.allclose(a, b) for a, b in zip(*grads, strict=True)) == equal


@pytest.mark.parametrize(("units", "hidden"), SHAPES)
def test_gradients_of_vae_and_iwae_are_those_of_their_bounds(units: tuple[int, ...], hidden: tuple[int, ...]) -> None:
    model, x = network(units, hidden)
    noise = model.draw_noise(5, 3, generator(1))
    for objective, bound in (("vae", evidence_bound), ("iwae", importance_bound)):
        model.zero_grad(set_to_none=True)
        value = backward(objective, model, x, noise)
        found = flat_gradient(model)
        expected = bound(model.log_weights(x, noise))
        grads = torch.autograd.grad(-expected.mean(), list(model.parameters()))
        assert torch.allclose(value, expected.detach(), rtol=1e-12)
        assert torch.allclose(found, torch.cat([g.flatten() for g in grads]), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("units", "hidden"), SHAPES)
def test_estimators_share_the_decoder_gradient_and_agree_in_mean_where_unbiased(
    units: tuple[int, ...], hidden: tuple[int, ...]
) -> None:
    """DReG's and, at k = 1, STL's mean encoder gradient is IWAE's; STL's at larger k is not (Tucker et al. 2019)."""
    model, x = network(units, hidden)
    noise = model.draw_noise(4, 3, generator(2))
    decoder = []
    for objective in ("iwae", "stl", "dreg"):
        model.zero_grad(set_to_none=True)
        backward(objective, model, x, noise)
        decoder.append(torch.cat([p.grad.flatten() for p in model.decoder_parameters() if p.grad is not None]))
    assert torch.allclose(decoder[0], decoder[1], rtol=1e-9) and torch.allclose(decoder[0], decoder[2], rtol=1e-9)


def test_unbiased_estimators_on_the_solvable_model() -> None:
    model = LinearGaussian.perturbed(2, 0.2, generator(3))
    x = model.draw_x(generator(4))

    def found(objective: Objective, k: int, seed: int) -> object:
        return moments([model.encoder_gradients(objective, x, k, 40_000, generator(seed))])

    for k, objective, equal in ((1, "stl", True), (1, "dreg", True), (8, "dreg", True), (8, "stl", False)):
        length, error = distance(found(objective, k, 5), found("iwae", k, 6))  # type: ignore[arg-type]
        assert (length < 3 * error) == equal, (k, objective, length / error)


def test_the_expected_gradient_of_one_sample_is_that_of_the_elbo() -> None:
    """k = 1: the gradient with regard to b is that of -KL(q || p(h|x)), known for Gaussians."""
    model = LinearGaussian.perturbed(2, 0.3, generator(7))
    x = model.draw_x(generator(8))
    mean = model.slope @ x + model.intercept
    exact = -((mean - (x + model.prior_mean) / 2) / 0.5)
    found = moments([model.encoder_gradients("iwae", x, 1, 100_000, generator(9))])
    assert torch.allclose(found.mean[-2:], exact, atol=5 * math.sqrt(found.total_variance / found.draws))


def test_weights_of_the_estimators() -> None:
    log_w = torch.log(torch.tensor([[1.0], [3.0]]))
    expected = {"vae": [0.5, 0.5], "iwae": [0.25, 0.75], "stl": [0.25, 0.75], "dreg": [0.0625, 0.5625]}
    for name, weights in expected.items():
        assert gradient_weights(name, log_w, "encoder").flatten().tolist() == pytest.approx(weights)  # type: ignore[arg-type]
    assert gradient_weights("dreg", log_w, "decoder").flatten().tolist() == pytest.approx([0.25, 0.75])
    with pytest.raises(ConfigError, match="unknown objective"):
        gradient_weights("elbo", log_w, "encoder")  # type: ignore[arg-type]


def test_log_likelihood_of_the_solvable_model() -> None:
    model = LinearGaussian.perturbed(3, 0.3, generator(10))
    x = model.draw_x(generator(11))
    covariance = 2 * torch.eye(3, dtype=torch.float64)
    exact = float(MultivariateNormal(model.prior_mean, covariance).log_prob(x))
    assert model.log_likelihood(x) == pytest.approx(exact, rel=1e-12)
    noise = torch.randn(2000, 200, 3, dtype=torch.float64, generator=generator(12))
    found = estimate_log_likelihood(model.log_weights(x, noise, model.slope, model.intercept).detach())
    errors = found.log_likelihood - exact
    # Standard error and bias of 2,000 samples, against 200 repetitions of the estimate.
    assert float(errors.std()) == pytest.approx(float(found.standard_error.mean()), rel=0.2)
    assert float(-errors.mean()) == pytest.approx(float(found.bias.mean()), abs=4 * float(errors.std()) / 200**0.5)
    assert ((found.effective_samples > 1) & (found.effective_samples <= 2000)).all()


def test_equal_weights_have_no_error() -> None:
    found = estimate_log_likelihood(torch.full((10, 2), -3.0))
    assert found.log_likelihood.tolist() == pytest.approx([-3.0, -3.0])
    assert float(found.standard_error.max()) < 1e-7 and found.effective_samples.tolist() == pytest.approx([10, 10])
    assert found.mean_standard_error < 1e-7
    with pytest.raises(ConfigError, match="at least 2"):
        estimate_log_likelihood(torch.zeros(1, 2))


def test_log_likelihood_of_a_network_by_quadrature() -> None:
    """One latent unit: log p(x) by integrating over h on a grid."""
    model, x = network((1,), (4,), seed=1)
    grid = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    with torch.no_grad():
        log_joint = model.log_joint(x, [grid[:, None, None].expand(-1, len(x), 1)])
    exact = torch.logsumexp(log_joint, 0) + math.log(float(grid[1] - grid[0]))
    found = estimate_log_likelihood(draw_log_weights(model, x, 20_000, generator(13)))
    assert ((found.log_likelihood - exact).abs() < 5 * found.standard_error + found.bias).all()


@pytest.mark.parametrize("images", [1, 3])
def test_drawing_in_pieces_covers_all_samples(images: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = network((3,), (5,))
    for rows in (1, 2, 7, 1000):
        monkeypatch.setattr(likelihood, "ROWS", rows)
        assert draw_log_weights(model, x[:images], 11, generator()).shape == (11, images)


def test_variances_of_units() -> None:
    model, _ = network((3, 2), (5, 4))
    x = torch.bernoulli(torch.full((40, 8), 0.5, dtype=torch.float64), generator=generator())
    with torch.no_grad():
        model.encoder[0].mean.weight[0] = 0.0
    first, second = unit_variances(model, x, generator(1))
    assert (len(first), len(second)) == (3, 2)
    assert float(first[0]) == 0.0 and active_units(first) == 2
    mean = model.encoder[0](x)[0]
    assert torch.allclose(first, mean.detach().var(0))
    assert active_units(torch.tensor([0.0, 0.0099, 0.0101, 3.0])) == 2


def test_moments_by_hand_and_in_batches() -> None:
    rows = torch.randn(30, 4, dtype=torch.float64, generator=generator()) + 1e6
    whole, pieces = moments([rows]), moments(rows.split([1, 20, 9]))
    assert torch.allclose(whole.mean, rows.mean(0)) and whole.draws == pieces.draws == 30
    assert whole.total_variance == pytest.approx(float(rows.var(0).sum()), rel=1e-9)
    assert pieces.total_variance == pytest.approx(whole.total_variance, rel=1e-9)
    assert math.isnan(moments([torch.tensor([[1.0], [-1.0]])]).signal_to_noise)
    with pytest.raises(ConfigError, match="at least 2"):
        moments([rows[:1]])


def test_signal_to_noise_of_a_known_distribution() -> None:
    mean = torch.tensor([3.0, 0.0, 4.0], dtype=torch.float64)
    rows = mean + 2 * torch.randn(40_000, 3, dtype=torch.float64, generator=generator())
    assert moments([rows]).signal_to_noise == pytest.approx(5 / (2 * math.sqrt(3)), rel=0.02)


def test_gradient_moments_leave_the_model_alone() -> None:
    model, x = network((3,), (5,))
    before = [p.clone() for p in model.parameters()]
    encoder, decoder = gradient_moments("iwae", model, x, 2, 53, generator())
    assert encoder.draws == decoder.draws == 53
    assert len(encoder.mean) == sum(p.numel() for p in model.encoder_parameters())
    assert all(torch.equal(a, b) and b.grad is None for a, b in zip(before, model.parameters(), strict=True))


def test_generated_pixels_are_probabilities_with_the_right_mean() -> None:
    """Two binary-like pixels, no latent influence: the decoder's bias alone."""
    model = DeepGaussianAutoencoder(4, (2, 2), (3, 3), torch.tensor([0.1, 0.5, 0.9, 0.0]))
    with torch.no_grad():
        model.pixels[-1].weight.zero_()
    found = model.generate(5, generator())
    assert torch.allclose(found, torch.tensor([0.1, 0.5, 0.9, 0.001]).expand(5, 4), atol=1e-6)


def test_sizes_must_fit() -> None:
    with pytest.raises(ConfigError, match="one width for each layer"):
        DeepGaussianAutoencoder(8, (3, 2), (5,))


def test_probabilities_of_all_images_add_up() -> None:
    """log_joint is a density: over all 16 images of 4 pixels, and a grid of the latent unit, it adds up to 1."""
    torch.manual_seed(2)
    model = DeepGaussianAutoencoder(4, (1,), (3,)).double()
    images = torch.tensor(list(itertools.product((0.0, 1.0), repeat=4)), dtype=torch.float64)
    grid = torch.linspace(-8, 8, 2001, dtype=torch.float64)
    with torch.no_grad():
        log_joint = model.log_joint(images, [grid[:, None, None].expand(-1, len(images), 1)])
    assert float(log_joint.exp().sum() * (grid[1] - grid[0])) == pytest.approx(1, abs=1e-9)


def test_benchmark_compares_equal_things() -> None:
    found = benchmark.compare(k=3, batch=2, steps=1, rounds=1)
    assert found["bound_difference"] < 1e-5 and found["gradient_difference"] < 1e-4

"""Stage `check`: the paper's identities, in float64 on small networks of one and of two stochastic layers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Normal, kl_divergence

from restudy.bench.context import Context, Outputs
from restudy.methods.importance import DeepGaussianAutoencoder, LinearGaussian, bound_of_groups, importance_bound
from restudy.methods.importance.gradients import backward
from restudy.methods.models import derive_seed

Row = dict[str, Any]
PIXELS, IMAGES, K = 12, 4, 7
NETWORKS = {"one layer": ((3,), (6,)), "two layers": ((4, 3), (6, 5))}
TOY_K = (1, 2, 5, 10, 50, 500)
STEP = 1e-5


def check(context: Context, *, draws: int, bound_repeats: int) -> Outputs:
    """Check claims W8 and W9, and W1 on a linear Gaussian model.

    Args:
        draws: one-sample ELBOs that are averaged, with the analytic divergence beside them.
        bound_repeats: independent values of every L_k of the linear Gaussian model.
    """
    above, bounds = _toy_bounds(bound_repeats)
    return {"identities": [*_one_sample(draws), *_gradient_of_proposal(), *above], "toy_bounds": bounds}


def _small(name: str) -> tuple[DeepGaussianAutoencoder, Tensor, torch.Generator]:
    """Build a float64 network with random weights, binary images, and a generator."""
    generator = torch.Generator().manual_seed(derive_seed(0, "identities", name))
    units, hidden = NETWORKS[name]
    model = DeepGaussianAutoencoder(PIXELS, units, hidden).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.4 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    x = torch.bernoulli(torch.full((IMAGES, PIXELS), 0.4, dtype=torch.float64), generator=generator)
    return model, x, generator


def _textbook_bound(model: DeepGaussianAutoencoder, x: Tensor, noise: list[Tensor]) -> Tensor:
    """log p(x|h) + log p(h) - log q(h|x) written with torch.distributions, (k, B): independent of `log_weights`."""
    below, latents, log_q = x, [], torch.zeros((), dtype=x.dtype)
    for layer, draws in zip(model.encoder, noise, strict=True):
        mean, log_std = layer(below)
        q = Normal(mean, log_std.exp())
        below = q.mean + q.stddev * draws
        log_q = log_q + q.log_prob(below).sum(-1)  # type: ignore[no-untyped-call]
        latents.append(below)
    log_p = Normal(torch.zeros_like(below), torch.ones_like(below)).log_prob(below).sum(-1)  # type: ignore[no-untyped-call]
    for i, layer in enumerate(model.decoder):
        mean, log_std = layer(latents[i + 1])
        log_p = log_p + Normal(mean, log_std.exp()).log_prob(latents[i]).sum(-1)  # type: ignore[no-untyped-call]
    log_x: Tensor = Bernoulli(logits=model.pixels(latents[0])).log_prob(x).sum(-1)  # type: ignore[no-untyped-call]
    value: Tensor = log_x + log_p - log_q
    return value


def _one_sample(draws: int) -> Iterator[Row]:
    """W8: L_1 and the one-sample ELBO, their gradients, and the mean of an ELBO with the analytic divergence."""
    for name in NETWORKS:
        model, x, generator = _small(name)
        noise = model.draw_noise(1, IMAGES, generator)
        elbo = _textbook_bound(model, x, noise)[0]
        expected = _gradient(-elbo.mean(), model)
        value = backward("iwae", model, x, noise)
        found = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        yield _row("W8", name, "value", _relative(value, elbo.detach()))
        yield _row("W8", name, "gradient", _relative(found, expected))
    model, x, generator = _small("one layer")
    with torch.no_grad():
        sampled = bound_of_groups(model.log_weights(x, model.draw_noise(draws, IMAGES, generator)), 1)
        mean, log_std = model.encoder[0](x)
        q = Normal(mean, log_std.exp())
        h = q.mean + q.stddev * torch.randn(draws, *mean.shape, generator=generator, dtype=x.dtype)
        log_x = Bernoulli(logits=model.pixels(h)).log_prob(x).sum(-1)  # type: ignore[no-untyped-call]
        divergence = kl_divergence(q, Normal(torch.zeros_like(mean), torch.ones_like(mean))).sum(-1)
    one, other = sampled.mean(-1), (log_x - divergence).mean(-1)
    error = math.sqrt(float(one.var() + other.var()) / draws)
    yield _row("W8", "one layer", "analytic divergence", abs(float(one.mean() - other.mean())) / (3 * error))


def _gradient_of_proposal() -> Iterator[Row]:
    """W9: gradient of L_k by autograd, as the weighted sum and by central differences; and a form that is wrong."""
    for name in NETWORKS:
        model, x, generator = _small(name)
        noise = model.draw_noise(K, IMAGES, generator)
        bound = -importance_bound(model.log_weights(x, noise)).mean()
        exact = _gradient(bound, model)
        encoder = sum(p.numel() for p in model.encoder_parameters())
        weighted = torch.zeros_like(exact)
        with torch.no_grad():
            shares = torch.softmax(model.log_weights(x, noise), 0)
        for i in range(K):
            for image in range(IMAGES):
                one = model.log_weights(x, noise)[i, image]
                weighted -= shares[i, image] * _gradient(one, model) / IMAGES
        yield _row("W9", name, "weighted sum", _relative(weighted, exact))
        backward("iwae", model, x, noise)
        library = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        yield _row("W9", name, "library", _relative(library, exact))
        yield _row("W9", name, "finite differences", _relative(_differences(model, x, noise), exact))
        yield _row("W9", name, "no encoder gradient", max(0.0, 0.01 - float(exact[:encoder].norm() / exact.norm())))
        log_w = model.log_weights(x, noise)
        attached = _gradient(-(torch.softmax(log_w, 0) * log_w).sum(0).mean(), model)
        yield _row("W9", name, "attached weights", max(0.0, 0.01 - _relative(attached, exact)))


def _differences(model: DeepGaussianAutoencoder, x: Tensor, noise: list[Tensor]) -> Tensor:
    """Central differences of minus L_k in every parameter."""
    found = []
    with torch.no_grad():
        for parameter in model.parameters():
            flat = parameter.view(-1)
            for i in range(len(flat)):
                kept = flat[i].item()
                values = []
                for sign in (1, -1):
                    flat[i] = kept + sign * STEP
                    values.append(-float(importance_bound(model.log_weights(x, noise)).mean()))
                flat[i] = kept
                found.append((values[0] - values[1]) / (2 * STEP))
    return torch.tensor(found, dtype=torch.float64)


def _toy_bounds(repeats: int) -> tuple[list[Row], list[Row]]:
    """W1 on a model whose log p(x) is known: what L_k exceeds it by, and what the gap fails to shrink by, past 3 s.e.

    Every k has draws of its own.
    """
    generator = torch.Generator().manual_seed(derive_seed(0, "toy bounds"))
    model = LinearGaussian.perturbed(3, 0.3, generator)
    x = model.draw_x(generator)
    exact = model.log_likelihood(x)
    rows: list[Row] = []
    shown: list[Row] = []
    before: tuple[float, float] | None = None
    for k in TOY_K:
        noise = torch.randn(k, repeats, len(x), generator=generator, dtype=torch.float64)
        values = bound_of_groups(model.log_weights(x, noise, model.slope, model.intercept), k)[0]
        mean, error = float(values.mean()), float(values.std()) / math.sqrt(repeats)
        rows.append(_row("W1", f"k={k}", "above log p", max(0.0, mean - exact - 3 * error)))
        if before is not None:
            shrunk = mean - before[0] - 3 * math.hypot(error, before[1])
            rows.append(_row("W1", f"k={k}", "gap not smaller", max(0.0, -shrunk)))
        before = mean, error
        measured = {"bound": mean, "standard_error": error, "log_likelihood": exact}
        shown += [{"k": k, "metric": metric, "value": value, "unit": "nats"} for metric, value in measured.items()]
    return rows, shown


def _gradient(value: Tensor, model: DeepGaussianAutoencoder) -> Tensor:
    """Gradient of a scalar with regard to all parameters, flat; `.grad` is emptied."""
    model.zero_grad(set_to_none=True)
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, list(model.parameters()), retain_graph=True)])


def _relative(found: Tensor, expected: Tensor) -> float:
    """Largest deviation over the largest expected value."""
    return float((found - expected).abs().max() / expected.abs().max())


def _row(claim: str, case: str, metric: str, value: float) -> Row:
    return {"claim": claim, "case": case, "metric": metric, "value": value, "unit": "1"}

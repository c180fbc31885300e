"""A linear Gaussian model with a known log p(x) and an encoder that misses its posterior (Rainforth et al. 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.methods.importance.gradients import PATH_ONLY, Objective, gradient_weights
from restudy.methods.importance.models import HALF_LOG_2PI, normal_log_density

POSTERIOR_SLOPE, ENCODER_VARIANCE = 0.5, 2 / 3


@dataclass(frozen=True)
class LinearGaussian:
    """h ~ N(mu, I), x | h ~ N(h, I), q(h|x) = N(A x + b, 2/3 I); float64.

    At A = I/2 and b = mu/2 the encoder's mean is that of the posterior, whose variance is 1/2.

    Attributes:
        slope: A, (D, D). intercept: b, (D,). prior_mean: mu, (D,).
    """

    slope: Tensor
    intercept: Tensor
    prior_mean: Tensor

    @classmethod
    def perturbed(cls, dimensions: int, size: float, generator: torch.Generator) -> LinearGaussian:
        """The best parameters for a standard normal mu, each moved by a normal step of this standard deviation."""

        def draw(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        mu = draw(dimensions)
        slope = POSTERIOR_SLOPE * torch.eye(dimensions, dtype=torch.float64) + size * draw(dimensions, dimensions)
        return cls(slope, POSTERIOR_SLOPE * mu + size * draw(dimensions), mu + size * draw(dimensions))

    def draw_x(self, generator: torch.Generator) -> Tensor:
        """One x from the model, (D,)."""
        noise = torch.randn(2, len(self.prior_mean), generator=generator, dtype=torch.float64)
        return self.prior_mean + noise.sum(0)

    def log_likelihood(self, x: Tensor) -> float:
        """The exact log p(x) = log N(x; mu, 2 I) in nats."""
        return float(normal_log_density(x, self.prior_mean, torch.full_like(x, 0.5 * math.log(2))))

    def log_weights(
        self, x: Tensor, noise: Tensor, slope: Tensor, intercept: Tensor, *, path_only: bool = False
    ) -> Tensor:
        """log w of samples from an encoder with these parameters, (k, R).

        Args:
            x: (D,).
            noise: standard normal (k, R, D).
            slope: (R, D, D) or (D, D); a copy of A for every repeat gives a gradient for every repeat.
            intercept: (R, D) or (D,).
            path_only: hold the parameters of the density log q fixed.
        """
        log_std = x.new_tensor(0.5 * math.log(ENCODER_VARIANCE))
        mean = slope @ x + intercept
        h = mean + log_std.exp() * noise
        log_q = normal_log_density(h, mean.detach() if path_only else mean, log_std.expand_as(x))
        log_prior = normal_log_density(h, self.prior_mean, torch.zeros_like(x))
        log_likelihood = -(0.5 * (x - h) ** 2 + HALF_LOG_2PI).sum(-1)
        return log_prior + log_likelihood - log_q

    def encoder_gradients(
        self, objective: Objective, x: Tensor, k: int, draws: int, generator: torch.Generator
    ) -> Tensor:
        """Independent gradients of the bound with regard to A and b, (draws, D * D + D), float64."""
        slope = self.slope.expand(draws, -1, -1).clone().requires_grad_()
        intercept = self.intercept.expand(draws, -1).clone().requires_grad_()
        noise = torch.randn(k, draws, len(x), generator=generator, dtype=torch.float64)
        log_w = self.log_weights(x, noise, slope, intercept, path_only=objective in PATH_ONLY)
        surrogate = (gradient_weights(objective, log_w, "encoder") * log_w).sum()
        parts = torch.autograd.grad(surrogate, [slope, intercept])
        return torch.cat([part.reshape(draws, -1) for part in parts], 1)

"""log p(x) by a bound with many samples, with the error of that estimate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.importance.bounds import importance_bound
from restudy.methods.importance.models import DeepGaussianAutoencoder

ROWS = 1000
"""Samples times images that are decoded at once."""


@dataclass(frozen=True)
class LikelihoodEstimate:
    """L_K of every image as an estimate of log p(x), and how far to trust it; all float64 of shape (N,).

    Attributes:
        log_likelihood: L_K in nats; it lies below log p(x) in expectation.
        standard_error: Monte-Carlo error of L_K in nats, by the delta method.
        bias: first-order estimate of how far E[L_K] lies below log p(x), in nats (positive): Var[w] / (2 K E[w]^2).
        effective_samples: (sum w)^2 / sum w^2, between 1 and K. Where it is small, the two errors are too small.
    """

    log_likelihood: Tensor
    standard_error: Tensor
    bias: Tensor
    effective_samples: Tensor

    @property
    def mean_standard_error(self) -> float:
        """Monte-Carlo error of the mean over these images, in nats; the spread between images is no part of it."""
        return float(self.standard_error.square().sum().sqrt()) / len(self.standard_error)


def estimate_log_likelihood(log_w: Tensor) -> LikelihoodEstimate:
    """Estimate log p(x) of N images from K log weights each, (K, N).

    Raises:
        ConfigError: fewer than two samples leave no error to estimate.
    """
    samples = len(log_w)
    if samples < 2:
        raise ConfigError(f"{samples} sample", remedy="an estimate with an error needs at least 2")
    log_w = log_w.double()
    share = torch.softmax(log_w, 0)
    effective = 1 / share.square().sum(0)
    relative_variance = (samples / effective - 1) * samples / (samples - 1)
    return LikelihoodEstimate(
        log_likelihood=importance_bound(log_w),
        standard_error=(relative_variance / samples).sqrt(),
        bias=relative_variance / (2 * samples),
        effective_samples=effective,
    )


@torch.inference_mode()
def draw_log_weights(model: DeepGaussianAutoencoder, x: Tensor, samples: int, generator: torch.Generator) -> Tensor:
    """Log weights of images (N, pixels) with so many samples each, float64 (samples, N); memory stays small."""
    group = max(1, min(len(x), ROWS))
    at_once = max(1, ROWS // group)
    columns = []
    for images in x.split(group):  # type: ignore[no-untyped-call]
        rows = []
        for start in range(0, samples, at_once):
            noise = model.draw_noise(min(at_once, samples - start), len(images), generator)
            rows.append(model.log_weights(images, noise).double())
        columns.append(torch.cat(rows))
    return torch.cat(columns, 1)

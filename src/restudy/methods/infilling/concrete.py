"""Relaxed Bernoulli masks. z = 1 means that a pixel is hidden and filled in (Chang et al. 2019, section 3)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

EDGE = 1e-6


def concrete_sample(logits: Tensor, uniform: Tensor, temperature: float) -> Tensor:
    """Sample of the binary Concrete distribution: sigmoid((logits + log u - log(1 - u)) / temperature).

    `logits` of the probability of 1 and `uniform` in [0, 1] broadcast against each other. The sample exceeds 1/2 with
    exactly that probability, at every temperature (Maddison, Mnih, Teh 2017).
    """
    u = uniform.clamp(EDGE, 1 - EDGE)
    return torch.sigmoid((logits + torch.logit(u)) / temperature)


def upsampled(grid: Tensor, size: int) -> Tensor:
    """Bilinear interpolation of (N, 1, g, g) to (N, 1, size, size)."""
    return F.interpolate(grid, size=(size, size), mode="bilinear", align_corners=False)


def pixel_probabilities(grid_logits: Tensor, size: int) -> Tensor:
    """Drop probabilities theta of the pixels: those of the coarse grid, interpolated, (N, 1, size, size)."""
    return upsampled(torch.sigmoid(grid_logits), size)


def pixel_logits(theta: Tensor) -> Tensor:
    """Logits of probabilities, kept finite."""
    return torch.logit(theta.clamp(EDGE, 1 - EDGE))

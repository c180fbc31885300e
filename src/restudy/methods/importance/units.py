"""Active units: latent units whose posterior mean moves with the image (Burda et al. 2016, section 5.2)."""

from __future__ import annotations

import torch
from torch import Tensor

from restudy.methods.importance.models import DeepGaussianAutoencoder

THRESHOLD = 0.01
"""A unit is active where the variance over images of its posterior mean is above this."""


@torch.inference_mode()
def unit_variances(
    model: DeepGaussianAutoencoder, x: Tensor, generator: torch.Generator, samples: int = 10
) -> list[Tensor]:
    """Var over images of E_q[u|x] for every unit, one float64 tensor (units,) for each stochastic layer.

    Args:
        model: any depth. The first layer's mean is exact; above it, the mean is taken over samples of the layers below.
        x: images (N, pixels), N at least 2.
        generator: for those samples; not used with one layer.
        samples: how many.
    """
    found, below = [], x
    for i, layer in enumerate(model.encoder):
        mean, log_std = layer(below)
        expected = (mean if mean.dim() == 2 else mean.mean(0)).double()
        found.append(expected.var(0))
        if i + 1 < len(model.encoder):
            noise = model.draw_noise(samples, len(x), generator)[i]
            below = mean + log_std.exp() * noise
    return found


def active_units(variances: Tensor) -> int:
    """Units whose variance is above the threshold."""
    return int((variances > THRESHOLD).sum())

"""Normalisation over a batch, spelled out: what the layers compute and the tests compare.

A unit is a channel. For convolutions height and width count as batch: the statistics of a unit of a tensor
(N, C, H, W) are taken over N, H and W.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restudy.errors import ConfigError


def per_unit(values: Tensor, like: Tensor) -> Tensor:
    """View one value for each unit (C,) so that it multiplies a tensor (N, C, ...)."""
    return values.view(1, -1, *([1] * (like.dim() - 2)))


def statistics(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and biased variance of each unit: two tensors (C,), float, of inputs (N, C, ...).

    Raises:
        ConfigError: fewer than two axes.
    """
    dims = batch_dims(inputs)
    mean = inputs.mean(dims)
    return mean, (inputs - per_unit(mean, inputs)).square().mean(dims)


def batch_norm(inputs: Tensor, weight: Tensor, bias: Tensor, *, eps: float = 1e-5) -> Tensor:
    """Batch norm in training mode by its definition (Ioffe and Szegedy 2015): weight * standardised + bias.

    Args:
        inputs: (N, C) or (N, C, ...), float. weight, bias: (C,), gamma and beta. eps: added to the variance; 0 where
            an identity must hold exactly.
    """
    mean, variance = statistics(inputs)
    standardised = (inputs - per_unit(mean, inputs)) * per_unit((variance + eps).rsqrt(), inputs)
    return standardised * per_unit(weight, inputs) + per_unit(bias, inputs)


def lp_size(inputs: Tensor, p: float) -> Tensor:
    """Return the mean l_p size of each unit, (C,): (1/m sum |x|^p)^(1/p), or max |x| for p = inf.

    Raises:
        ConfigError: p is below 1.
    """
    if not p >= 1:
        raise ConfigError(f"p is {p!r}", where="lp_norm", remedy="allowed: at least 1, or infinity")
    dims = batch_dims(inputs)
    if math.isinf(p):
        return inputs.abs().amax(dims)
    if p == 1:
        return inputs.abs().mean(dims)
    return inputs.abs().pow(p).mean(dims).pow(1 / p)


def lp_norm(inputs: Tensor, weight: Tensor, bias: Tensor, *, p: float, eps: float = 1e-5) -> Tensor:
    """Centre like batch norm and divide by the mean l_p size taken *before* centring; then weight and bias.

    Santurkar et al. 2018, section 3.3 and appendix: the output's distribution has no fixed moments, yet training
    gains as much. Shapes as in `batch_norm`; eps is added to the size.
    """
    size = lp_size(inputs, p)
    mean = inputs.mean(batch_dims(inputs))
    scaled = (inputs - per_unit(mean, inputs)) / per_unit(size + eps, inputs)
    return scaled * per_unit(weight, inputs) + per_unit(bias, inputs)


def affine_noise(
    inputs: Tensor, *, mean_range: float, scale_max: float, mean_spread: float, scale_spread: float
) -> Tensor:
    """Return s * x + m with noise drawn anew from the global random state (Santurkar et al. 2018, Algorithm 1).

    For each unit j: mu_j uniform in +-mean_range, sigma_j uniform in [1, scale_max]. For each sample and position i:
    m_ij uniform in mu_j +- mean_spread, s_ij normal with mean sigma_j and standard deviation scale_spread. The
    distribution that the next layer sees so has another mean and scale at every step: covariate shift made on purpose.
    """
    units = inputs.shape[1]
    mu = torch.empty(units, dtype=inputs.dtype, device=inputs.device).uniform_(-mean_range, mean_range)
    sigma = torch.empty(units, dtype=inputs.dtype, device=inputs.device).uniform_(1.0, scale_max)
    flat = inputs.dim() == 4 and inputs.is_contiguous(memory_format=torch.channels_last)
    # Drawing into strided memory is several times slower: draw contiguously, look at it in the input's order.
    ordered = inputs.permute(0, 2, 3, 1) if flat else inputs
    shift = torch.empty(ordered.shape, dtype=inputs.dtype, device=inputs.device).uniform_(-mean_spread, mean_spread)
    scale = torch.empty(ordered.shape, dtype=inputs.dtype, device=inputs.device).normal_(0.0, scale_spread)
    if flat:
        shift, scale = shift.permute(0, 3, 1, 2), scale.permute(0, 3, 1, 2)
    shift.add_(per_unit(mu, inputs))
    scale.add_(per_unit(sigma, inputs))
    return torch.addcmul(shift, scale, inputs)


def batch_dims(inputs: Tensor) -> tuple[int, ...]:
    """Return all axes but the second; ConfigError for fewer than two axes."""
    if inputs.dim() < 2:
        raise ConfigError(f"inputs have shape {tuple(inputs.shape)}", where="normalisation", remedy="give (N, C, ...)")
    return (0, *range(2, inputs.dim()))

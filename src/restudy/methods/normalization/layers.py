"""Normalisation as modules: the batch's statistics while training, running ones in evaluation, as in torch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.normalization.functional import affine_noise, batch_dims, batch_norm, lp_norm, lp_size, per_unit


class BatchNorm(nn.Module):
    """Batch norm of (N, C) or (N, C, ...), same names, state and numbers as `torch.nn.BatchNorm2d`.

    Args:
        units: C. eps: added to the variance. momentum: weight of the newest batch in the running statistics.
        fused: use torch's kernel (fast); otherwise the definition in `restudy.methods.normalization.batch_norm`.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, units: int, *, eps: float = 1e-5, momentum: float = 0.1, fused: bool = True) -> None:
        super().__init__()
        _check(units, eps, momentum)
        self.units, self.eps, self.momentum, self.fused = units, eps, momentum, fused
        self.weight = nn.Parameter(torch.ones(units))
        self.bias = nn.Parameter(torch.zeros(units))
        self.register_buffer("running_mean", torch.zeros(units))
        self.register_buffer("running_var", torch.ones(units))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the normalised tensor; in training mode the running statistics move on."""
        if self.fused or not self.training:
            return F.batch_norm(
                inputs, self.running_mean, self.running_var, self.weight, self.bias,
                self.training, self.momentum, self.eps,
            )  # fmt: skip
        with torch.no_grad():
            dims = batch_dims(inputs)
            self.running_mean.lerp_(inputs.mean(dims), self.momentum)
            self.running_var.lerp_(inputs.var(dims, unbiased=True), self.momentum)
        return batch_norm(inputs, self.weight, self.bias, eps=self.eps)


class LpNorm(nn.Module):
    """Batch norm with the mean l_p size in the place of the standard deviation; `p` 1, 2, ... or infinity."""

    running_mean: Tensor
    running_size: Tensor

    def __init__(self, units: int, p: float, *, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        _check(units, eps, momentum)
        self.units, self.p, self.eps, self.momentum = units, float(p), eps, momentum
        self.weight = nn.Parameter(torch.ones(units))
        self.bias = nn.Parameter(torch.zeros(units))
        self.register_buffer("running_mean", torch.zeros(units))
        self.register_buffer("running_size", torch.ones(units))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the normalised tensor; in training mode the running statistics move on."""
        if self.training:
            with torch.no_grad():
                self.running_mean.lerp_(inputs.mean(batch_dims(inputs)), self.momentum)
                self.running_size.lerp_(lp_size(inputs, self.p), self.momentum)
            return lp_norm(inputs, self.weight, self.bias, p=self.p, eps=self.eps)
        factor = self.weight / (self.running_size + self.eps)
        return (inputs - per_unit(self.running_mean, inputs)) * per_unit(factor, inputs) + per_unit(self.bias, inputs)


class AffineNoise(nn.Module):
    """Covariate shift on purpose: scale and shift drawn anew in every forward pass, in training mode only.

    Santurkar et al. 2018, Algorithm 1, with its values as defaults. Noise comes from the global random state; a probe
    that fixes the state sees the same noise at every point.
    """

    def __init__(
        self,
        *,
        mean_range: float = 0.5,
        scale_max: float = 1.25,
        mean_spread: float = 0.1,
        scale_spread: float = 0.1,
    ) -> None:
        super().__init__()
        if min(mean_range, mean_spread, scale_spread) < 0 or scale_max < 1:
            raise ConfigError("ranges are negative, or scale_max is below 1", where="AffineNoise")
        self.mean_range, self.scale_max = mean_range, scale_max
        self.mean_spread, self.scale_spread = mean_spread, scale_spread

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the noisy tensor while training, the tensor itself in evaluation mode."""
        if not self.training:
            return inputs
        return affine_noise(
            inputs,
            mean_range=self.mean_range,
            scale_max=self.scale_max,
            mean_spread=self.mean_spread,
            scale_spread=self.scale_spread,
        )


def noisy_batch_norm(units: int, **noise: float) -> nn.Sequential:
    """Return batch norm followed by `AffineNoise`: noise after the normalisation, before the non-linearity."""
    return nn.Sequential(BatchNorm(units), AffineNoise(**noise))


def _check(units: int, eps: float, momentum: float) -> None:
    if units < 1 or eps < 0 or not 0 <= momentum <= 1:
        raise ConfigError(
            f"units {units}, eps {eps}, momentum {momentum}",
            where="normalisation layer",
            remedy="allowed: units at least 1, eps at least 0, momentum in [0, 1]",
        )

"""The deep linear network: 25 matrices of 10 x 10 that learn one, with and without batch norm after all but the last.

Santurkar et al. 2018, appendix: minimise the sum over samples and outputs of (W_25 ... W_1 x - A x)^2 for Gaussian x
and A. The reduction is the sum: with a mean the printed learning rates hardly move the loss. float64 throughout, since
the probes subtract nearly equal gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.normalization import BatchNorm, LpNorm

NORMS: dict[str, Callable[[int], nn.Module] | None] = {
    "std": None,
    "bn": BatchNorm,
    "l1": lambda units: LpNorm(units, 1),
    "l2": lambda units: LpNorm(units, 2),
    "linf": lambda units: LpNorm(units, math.inf),
}


class Step(nn.Module):
    """One linear layer and its normalisation, if any."""

    def __init__(self, size: int, build: Callable[[int], nn.Module] | None) -> None:
        super().__init__()
        self.linear = nn.Linear(size, size, bias=False)
        self.norm = nn.Identity() if build is None else build(size)

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, size) to (N, size)."""
        found: Tensor = self.norm(self.linear(inputs))
        return found


class DeepLinear(nn.Module):
    """Layers `layer1` ... `layerK` of (N, size), float64; Glorot weights from `seed`, equal in every arm."""

    def __init__(self, arm: str, *, depth: int = 25, size: int = 10, seed: int) -> None:
        """ConfigError: an arm that is not known."""
        super().__init__()
        if arm not in NORMS:
            raise ConfigError(f"arm {arm!r} is not known", where="DeepLinear", remedy=f"allowed: {', '.join(NORMS)}")
        self.depth = depth
        for number in range(1, depth + 1):
            self.add_module(f"layer{number}", Step(size, NORMS[arm] if number < depth else None))
        self.double()
        generator = torch.Generator().manual_seed(derive_seed(seed, "initial weights"))
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """(N, size) to (N, size)."""
        found = inputs
        for number in range(1, self.depth + 1):
            found = self.get_submodule(f"layer{number}")(found)
        return found


@dataclass(frozen=True)
class Regression:
    """Inputs x and targets A x, both (N, size) float64."""

    inputs: Tensor
    targets: Tensor

    def loss(self, model: nn.Module) -> Tensor:
        """Squared error summed over samples and outputs, a scalar."""
        outputs: Tensor = model(self.inputs)
        return (outputs - self.targets).square().sum()


def regression(samples: int, size: int, *, seed: int) -> Regression:
    """Draw Gaussian inputs and a Gaussian matrix from `seed`."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "linear data"))
    inputs = torch.randn(samples, size, generator=generator, dtype=torch.float64)
    matrix = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return Regression(inputs, inputs @ matrix.T)

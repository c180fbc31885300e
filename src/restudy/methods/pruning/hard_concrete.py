"""The Hard Concrete distribution (Louizos, Welling, Kingma 2018, section 2.2): a gate in [0, 1] with mass at both ends.

u ~ U(0, 1), s = sigmoid((logit u + log_alpha) / beta), stretched to (gamma, zeta) and clipped to [0, 1]. The noise is
u alone, so a sampled gate is differentiable in log_alpha, and P(g != 0) has a closed form, which is the L0 penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from restudy.errors import ConfigError


@dataclass(frozen=True)
class HardConcrete:
    """Temperature `beta`, stretch (`gamma`, `zeta`), and `eps` that keeps u away from 0 and 1 (Voita's values)."""

    beta: float = 0.33
    gamma: float = -0.1
    zeta: float = 1.1
    eps: float = 1e-6

    def __post_init__(self) -> None:
        if not (self.beta > 0 and self.gamma < 0 and self.zeta > 1 and 0 <= self.eps < 0.5):
            raise ConfigError(f"{self} is no Hard Concrete distribution", remedy="beta > 0, gamma < 0 < 1 < zeta")


DEFAULT = HardConcrete()


def sample_gate(log_alpha: Tensor, uniform: Tensor, law: HardConcrete = DEFAULT) -> Tensor:
    """Gates of the shape of `log_alpha`, from uniform noise in [0, 1) of that shape; differentiable in log_alpha."""
    u = law.eps + (1 - 2 * law.eps) * uniform
    s = torch.sigmoid((u.log() - (-u).log1p() + log_alpha) / law.beta)
    return (s * (law.zeta - law.gamma) + law.gamma).clamp(0.0, 1.0)


def deterministic_gate(log_alpha: Tensor, law: HardConcrete = DEFAULT) -> Tensor:
    """The gate at test time: clip(sigmoid(log_alpha) (zeta - gamma) + gamma, 0, 1); the temperature does not enter."""
    return (torch.sigmoid(log_alpha) * (law.zeta - law.gamma) + law.gamma).clamp(0.0, 1.0)


def probability_open(log_alpha: Tensor, law: HardConcrete = DEFAULT) -> Tensor:
    """P(g != 0) = sigmoid(log_alpha - beta log(-gamma / zeta)); its sum is the expected L0 norm."""
    return torch.sigmoid(log_alpha - law.beta * math.log(-law.gamma / law.zeta))


def probability_one(log_alpha: Tensor, law: HardConcrete = DEFAULT) -> Tensor:
    """P(g = 1)."""
    return torch.sigmoid(log_alpha - law.beta * math.log((1 - law.gamma) / (law.zeta - 1)))


def cumulative(log_alpha: Tensor, value: float, law: HardConcrete = DEFAULT) -> Tensor:
    """P(g <= value) for a value in [0, 1)."""
    s = (value - law.gamma) / (law.zeta - law.gamma)
    return torch.sigmoid(law.beta * (math.log(s) - math.log1p(-s)) - log_alpha)


def gate_moments(log_alpha: float, law: HardConcrete = DEFAULT, nodes: int = 200) -> tuple[float, float]:
    """Mean and variance of a sampled gate, by Gauss-Legendre quadrature of P(g > t) and 2 t P(g > t) over (0, 1)."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    t, w = (points + 1) / 2, weights / 2
    above = np.array([1 - float(cumulative(torch.tensor(log_alpha, dtype=torch.float64), float(x), law)) for x in t])
    mean = float(w @ above)
    return mean, float(w @ (2 * t * above)) - mean**2

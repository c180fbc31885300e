"""Gumbel-softmax (Jang et al. 2017; Maddison et al. 2017), soft and straight-through: biased, of low variance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.estimators.objective import Objective
from restudy.methods.estimators.sampling import gumbel_like


@dataclass(frozen=True)
class GumbelSoftmax:
    """f at softmax((log q + Gumbel noise) / temperature); `hard` evaluates f at the one-hot argmax of it.

    In the straight-through form (`hard`) the value is an exact draw of f and the gradient that of the soft weights.
    The category comes from the estimator's own noise, so it cannot be Rao-Blackwellized by summing categories.
    """

    temperature: float = 1.0
    hard: bool = True
    own_noise = True

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ConfigError(f"temperature is {self.temperature}", remedy="above 0")

    @property
    def evaluations(self) -> int:
        """Evaluations of f for each example and step."""
        return 1

    def weights(self, log_q: Tensor, generator: torch.Generator) -> Tensor:
        """Weights over the categories, (B, K)."""
        noisy = log_q + gumbel_like(tuple(log_q.shape), log_q, generator)
        soft = (noisy / self.temperature).softmax(1)
        if not self.hard:
            return soft
        one_hot = torch.zeros_like(soft).scatter(1, noisy.argmax(1, keepdim=True), 1.0)
        return one_hot + (soft - soft.detach())

    def surrogate(self, log_q: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
        """Pseudo-loss (B,); log_q (B, K)."""
        return objective.relaxed(self.weights(log_q, generator))


def annealed(start: float, rate: float, step: int, lowest: float) -> float:
    """The temperature after some steps: start * exp(-rate * step), not below the lowest."""
    return max(lowest, start * math.exp(-rate * step))

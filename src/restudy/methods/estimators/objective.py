"""What an estimator is asked about: f at drawn categories, and f at points between them."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor


class Objective(Protocol):
    """The integrand f of E_q[f(z)] for a batch of B examples and K categories.

    `at` is enough for score-function estimators; `relaxed` is needed by those that relax z, `baseline` by NVIL.
    Values may depend on parameters, also on those of q: gradients flow through them.
    """

    def at(self, z: Tensor) -> Tensor:
        """Values of f (S, B) at categories z, int64 (S, B)."""
        ...

    def relaxed(self, weights: Tensor) -> Tensor:
        """Values of f (B,) at weights over the categories (B, K) that sum to 1; equals `at` where they are one-hot."""
        ...

    def baseline(self) -> Tensor:
        """A learned prediction of f for each example, (B,), that does not see z."""
        ...


class TableObjective:
    """f given by a table, (B, K): the relaxation is linear, the learned baseline a tensor (B,) or zero."""

    def __init__(self, values: Tensor, predicted: Tensor | None = None) -> None:
        self.values = values
        self.predicted = predicted

    def at(self, z: Tensor) -> Tensor:
        """Values of f (S, B) at categories z (S, B)."""
        return self.values.gather(1, z.T).T

    def relaxed(self, weights: Tensor) -> Tensor:
        """The weighted mean of the table, (B,)."""
        return (weights * self.values).sum(1)

    def baseline(self) -> Tensor:
        """The prediction given, or zeros, (B,)."""
        return torch.zeros_like(self.values[:, 0]) if self.predicted is None else self.predicted

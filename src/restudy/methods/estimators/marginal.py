"""Full enumeration: the exact expectation, and the oracle of every other estimator."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.methods.estimators.objective import Objective


@dataclass(frozen=True)
class Marginal:
    """sum over all categories of q(z) f(z): its gradient is exact, its cost K evaluations."""

    categories: int
    own_noise = True  # it sums by itself, there is nothing left to Rao-Blackwellize

    @property
    def evaluations(self) -> int:
        """Evaluations of f for each example and step."""
        return self.categories

    def surrogate(self, log_q: Tensor, objective: Objective, generator: torch.Generator | None = None) -> Tensor:
        """The expectation itself, (B,); the product rule is left to autograd."""
        every = torch.arange(self.categories, device=log_q.device)[:, None].expand(-1, len(log_q))
        return (log_q.exp().T * objective.at(every)).sum(0)

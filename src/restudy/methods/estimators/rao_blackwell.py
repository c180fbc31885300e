"""Rao-Blackwellization: the likeliest categories summed, the rest drawn (Liu et al. 2019, section 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.estimators.objective import Objective
from restudy.methods.estimators.sampling import draw_outside, most_probable, outside_mass
from restudy.methods.estimators.score import ScoreFunction


@dataclass(frozen=True)
class RaoBlackwell:
    """g_hat = sum over C_k of q(z) g(z) + q(outside C_k) mean of g(v), v ~ q restricted to the outside.

    It is the conditional expectation of g given the draws outside, so its variance is at most
    q(outside) Var[g] / draws, for every estimator g that is a function of the drawn z (and of noise that does not
    depend on z). Estimators that draw z, or the noise that makes it, by themselves are refused.

    Args:
        inner: the estimator g; its own `draws` is not used.
        summed: k, how many of the most probable categories are summed.
        draws: how many are drawn from the rest.
    """

    inner: ScoreFunction
    summed: int = 1
    draws: int = 1
    own_noise = False

    def __post_init__(self) -> None:
        _refuse_own_noise(self.inner)
        if self.summed < 0 or self.draws < 1:
            raise ConfigError(f"summed={self.summed}, draws={self.draws}", remedy="summed >= 0 and draws >= 1")

    @property
    def evaluations(self) -> int:
        """Evaluations of f for each example and step."""
        terms = self.summed + self.draws
        return terms + self.inner.baseline_draws(terms)

    def surrogate(self, log_q: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
        """Pseudo-loss (B,); log_q (B, K). All evaluations of f are made in one call.

        With summed >= K everything is summed and nothing drawn: the exact gradient, if the inner estimator's
        baseline is not `fresh`.
        """
        if self.summed >= log_q.shape[1]:
            every = torch.arange(log_q.shape[1], device=log_q.device)[:, None].expand(-1, len(log_q))
            return _sum(log_q.detach().exp().T, self.inner.terms(log_q, every, objective, generator))
        top = most_probable(log_q, self.summed)
        return self.around(log_q, top, objective, generator)

    def around(self, log_q: Tensor, chosen: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
        """The same for any set of summed categories, int64 (k, B): unbiased for every set, good for likely ones."""
        v = draw_outside(log_q, chosen, self.draws, generator)
        inside = log_q.detach().gather(1, chosen.T).T.exp()
        outside = (outside_mass(log_q.detach(), chosen) / self.draws).expand(self.draws, -1)
        weights = torch.cat([inside, outside])
        terms = self.inner.terms(log_q, torch.cat([chosen, v]), objective, generator)
        return _sum(weights, terms)


def _sum(weights: Tensor, terms: Tensor) -> Tensor:
    """Weighted sum over the first axis; what has weight 0 (and perhaps no finite log probability) does not enter."""
    return torch.where(weights > 0, weights * terms, torch.zeros_like(terms)).sum(0)


def _refuse_own_noise(inner: Any) -> None:
    if getattr(inner, "own_noise", True):
        raise ConfigError(
            f"{type(inner).__name__} draws z from noise of its own and ignores the category that it is asked about, "
            "so a sum over categories would add up copies of the same estimate",
            where="RaoBlackwell",
            remedy="take a score-function estimator: REINFORCE, with a second draw, or NVIL",
        )

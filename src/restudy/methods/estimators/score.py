"""Score-function estimators: REINFORCE, with a second draw as baseline, and NVIL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.estimators.objective import Objective
from restudy.methods.estimators.sampling import draw

Baseline = Literal["none", "second_sample", "learned"]


@dataclass(frozen=True)
class ScoreFunction:
    """g(z) = (f(z) - b) d log q(z) + d f(z) for a draw z ~ q: unbiased where b does not depend on z.

    `none` is REINFORCE (Williams 1992). `second_sample` takes b = f(z') at an independent second draw; `fresh` draws
    one for every z asked about, as the code released with the paper does, otherwise all of an example share one.
    `learned` is NVIL (Mnih and Gregor 2014): b is the objective's own prediction, which the pseudo-loss also trains.
    `draws`: how many independent z are averaged.
    """

    baseline: Baseline = "none"
    draws: int = 1
    fresh: bool = False
    own_noise = False

    def __post_init__(self) -> None:
        if self.baseline not in ("none", "second_sample", "learned"):
            raise ConfigError(f"baseline is {self.baseline!r}", remedy="allowed: none, second_sample, learned")
        if self.draws < 1:
            raise ConfigError(f"draws is {self.draws}", remedy="at least 1")

    @property
    def evaluations(self) -> int:
        """Evaluations of f for each example and step."""
        return self.draws + self.baseline_draws(self.draws)

    def baseline_draws(self, terms: int) -> int:
        """Evaluations of f that the baseline takes when g is asked about `terms` categories."""
        if self.baseline != "second_sample":
            return 0
        return terms if self.fresh else 1

    def terms(self, log_q: Tensor, z: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
        """A pseudo-loss (S, B) for each category asked about, whose gradient is g(z).

        Args:
            log_q: log probabilities (B, K), with their graph.
            z: categories, int64 (S, B).
            objective: what f is.
            generator: for the second draws.
        """
        others = self.baseline_draws(len(z))
        asked = torch.cat([z, draw(log_q, others, generator)]) if others else z
        values = objective.at(asked)
        f, b = values[: len(z)], values[len(z) :]
        score = log_q.gather(1, z.T).T
        if self.baseline == "none":
            return _weighted(f.detach(), score) + f
        if self.baseline == "second_sample":
            return _weighted((f - b).detach(), score) + f
        predicted = objective.baseline()
        return _weighted(f.detach() - predicted.detach(), score) + f + _fit(f, predicted)

    def surrogate(self, log_q: Tensor, objective: Objective, generator: torch.Generator) -> Tensor:
        """Pseudo-loss (B,), averaged over the draws; log_q (B, K)."""
        return self.terms(log_q, draw(log_q, self.draws, generator), objective, generator).mean(0)


def _weighted(weight: Tensor, score: Tensor) -> Tensor:
    """weight * score with the value of the weight alone: the value of a pseudo-loss stays that of f."""
    return weight * (score - score.detach())


def _fit(f: Tensor, predicted: Tensor) -> Tensor:
    """Squared error of the learned baseline, of value 0: only its gradient is wanted."""
    error = (f.detach() - predicted) ** 2
    return error - error.detach()

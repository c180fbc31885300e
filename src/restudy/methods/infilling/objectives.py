"""Score and objectives (Chang et al. 2019, equations 2 to 5)."""

from __future__ import annotations

from typing import Literal, get_args

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError

Objective = Literal["sdr", "ssr", "joint"]
"""`sdr`: smallest deletion region, z marks what is removed; `ssr`: smallest sufficient region, 1 - z marks what is
kept; `joint`: one region that is missed when removed and suffices when kept (Phang, Park, Geras 2020)."""


def log_odds(logits: Tensor, target: Tensor) -> Tensor:
    """log p(c) - log(1 - p(c)) for logits (N, C) and classes (N,): the logit minus the logsumexp of the others."""
    mine = logits.gather(1, target[:, None])
    others = logits.scatter(1, target[:, None], float("-inf"))
    return mine[:, 0] - torch.logsumexp(others, 1)


def check_objective(objective: str) -> None:
    """Raise ConfigError for an objective that does not exist."""
    if objective not in get_args(Objective):
        raise ConfigError(f"objective {objective!r}", remedy=f"known: {', '.join(get_args(Objective))}")


def objective_score(
    model: nn.Module, images: Tensor, pictures: Tensor, mask: Tensor, target: Tensor, objective: Objective
) -> Tensor:
    """The score to go down for each image, without the penalty, (N,).

    SDR: s(phi(x, z)). SSR: -s(phi(x, z)). Joint: s(phi(x, z)) - s(phi(x, 1 - z)), where z is the region.
    `images`, `pictures`, `mask` (N, 1, S, S); `target` (N,).
    """
    removed = log_odds(model(images + mask * (pictures - images)), target)
    if objective == "sdr":
        return removed
    if objective == "ssr":
        return -removed
    kept = log_odds(model(pictures + mask * (images - pictures)), target)
    return removed - kept


def penalised_area(theta: Tensor, objective: Objective) -> Tensor:
    """Expected number of pixels that are paid for, (N,): sum of theta, for SSR of 1 - theta."""
    paid = 1 - theta if objective == "ssr" else theta
    return paid.flatten(1).sum(1)


def saliency(theta: Tensor, objective: Objective) -> Tensor:
    """What is reported, high where a pixel matters: theta, for SSR 1 - theta."""
    return 1 - theta if objective == "ssr" else theta

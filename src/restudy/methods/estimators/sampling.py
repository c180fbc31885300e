"""Drawing categories, and the noise of the Gumbel trick, from an explicit generator."""

from __future__ import annotations

import torch
from torch import Tensor

_SORTED = 64


def gumbel_like(shape: tuple[int, ...], like: Tensor, generator: torch.Generator) -> Tensor:
    """Standard Gumbel noise of a shape, in the dtype and on the device of `like`; drawn on the generator's device."""
    noise = torch.empty(shape, dtype=like.dtype, device=generator.device).exponential_(generator=generator)
    tiny = torch.finfo(like.dtype).tiny
    return -noise.clamp_min(tiny).log().to(like.device)


def draw(log_q: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """Independent categories, int64 (draws, B), from log probabilities (B, K), by the Gumbel-max trick.

    A category of probability 0 (log probability -inf) is never drawn, for nothing is added to probabilities.
    """
    noise = gumbel_like((draws, *log_q.shape), log_q, generator)
    return (log_q.detach() + noise).argmax(-1)


def draw_outside(log_q: Tensor, summed: Tensor, draws: int, generator: torch.Generator) -> Tensor:
    """Independent categories (draws, B) from q restricted to the complement of the summed ones, int64 (k, B).

    Works in log space, so a complement whose mass underflows is still drawn from in its own proportions. Where
    nothing is left outside (all of it has probability 0) the category is arbitrary, and its weight is 0.
    """
    outside = log_q.detach().scatter(1, summed.T, -torch.inf)
    return draw(outside, draws, generator)


def outside_mass(log_q: Tensor, summed: Tensor) -> Tensor:
    """Probability outside the summed categories, (B,), added up from small terms rather than as 1 minus large ones."""
    if summed.shape[0] == 0:
        return torch.ones_like(log_q[:, 0])
    return log_q.exp().scatter(1, summed.T, 0.0).sum(1)


def most_probable(log_q: Tensor, k: int) -> Tensor:
    """The k most probable categories of each example, int64 (k, B); with up to 64 categories ties go to the lower."""
    fixed = log_q.detach()
    if fixed.shape[1] > _SORTED or k == 0:
        return fixed.topk(k, dim=1).indices.T
    return fixed.sort(dim=1, descending=True, stable=True).indices[:, :k].T

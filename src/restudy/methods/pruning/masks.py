"""Masks with a given number of heads, to compare a learned one with."""

from __future__ import annotations

import torch
from torch import Tensor

from restudy.errors import ConfigError


def random_mask(shape: tuple[int, int], kept: int, generator: torch.Generator) -> Tensor:
    """float32 (layers, H) with `kept` ones at places drawn at random.

    Raises:
        ConfigError: more heads to keep than there are.
    """
    total = shape[0] * shape[1]
    _check(kept, total)
    mask = torch.zeros(total)
    mask[torch.randperm(total, generator=generator)[:kept]] = 1.0
    return mask.view(shape)


def keep_highest(scores: Tensor, kept: int) -> Tensor:
    """float32 mask of the shape of `scores` with ones at the `kept` highest; ties go to the lower layer and head.

    Raises:
        ConfigError: more heads to keep than there are.
    """
    _check(kept, scores.numel())
    order = scores.flatten().argsort(descending=True, stable=True)
    mask = torch.zeros(scores.numel())
    mask[order[:kept]] = 1.0
    return mask.view(scores.shape)


def _check(kept: int, total: int) -> None:
    if not 0 <= kept <= total:
        raise ConfigError(f"{kept} heads cannot be kept of {total}", remedy=f"allowed: 0 to {total}")

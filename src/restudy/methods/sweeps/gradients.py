"""Squared gradient norms at two batch sizes for the noise scale, with torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError


def squared_norms(
    model: nn.Module, parameters: Mapping[str, Tensor], inputs: Tensor, labels: Tensor, *, pieces: int
) -> tuple[float, float]:
    """Return |g|^2 averaged over `pieces` equal parts of a batch, and |g|^2 of the whole batch.

    Args:
        model: maps (B, ...) to logits; used with `parameters` (name -> tensor) in place of its own. inputs, labels:
            (B, ...) and (B,) int64, independent draws. pieces: at least 2, dividing B; all parts run as one program.

    The pair goes into `noise_scale(small, big, small_batch=B / pieces, big_batch=B)`. Raises ConfigError where
    `pieces` does not divide B.
    """
    count = len(labels)
    if pieces < 2 or count % pieces:
        raise ConfigError(f"{count} examples in {pieces} pieces", remedy="let at least 2 pieces divide the batch")

    def loss(own: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return F.cross_entropy(torch.func.functional_call(model, own, (x,)), y)

    split = (pieces, count // pieces)
    each: Any = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    gradients = each(dict(parameters), inputs.reshape(*split, *inputs.shape[1:]), labels.reshape(split))
    small = sum(g.double().pow(2).sum() for g in gradients.values()) / pieces
    big = sum(g.double().mean(0).pow(2).sum() for g in gradients.values())
    return float(small), float(big)

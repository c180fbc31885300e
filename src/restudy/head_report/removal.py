"""Attention with fewer heads in the place of torch's and of `transformers`'."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PrunedAttention(nn.Module):
    """What `nn.MultiheadAttention` computes with some of its heads, called in the same way.

    Args:
        module: the attention that it replaces. kept: heads that stay, in rising order; none is allowed.
    """

    def __init__(self, module: nn.MultiheadAttention, kept: list[int]) -> None:
        super().__init__()
        width, heads = module.embed_dim, module.num_heads
        self.embed_dim, self.num_heads, self.head_dim = width, len(kept), module.head_dim
        self.original_heads, self.kept = heads, list(kept)
        self.dropout, self.batch_first = module.dropout, module.batch_first
        self._qkv_same_embed_dim = False  # keeps torch's layers off their fused path, which reads the full matrices
        with torch.no_grad():
            rows = module.in_proj_weight.view(3, heads, self.head_dim, width)[:, kept]
            self.in_weight = nn.Parameter(rows.clone())
            self.out_weight = nn.Parameter(module.out_proj.weight.view(width, heads, -1)[:, kept].clone())
            bias = module.in_proj_bias
            own = None if bias is None else nn.Parameter(bias.view(3, heads, self.head_dim)[:, kept].clone())
            self.in_proj_bias = own
            last = module.out_proj.bias
            self.out_bias = None if last is None else nn.Parameter(last.clone())
        self.train(module.training)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """As `nn.MultiheadAttention.forward`; the average of weights is over the heads that are left."""
        if not self.batch_first:
            query, key, value = (x.transpose(0, 1) for x in (query, key, value))
        batch, length = query.shape[:2]
        q, k, v = (self._project(i, x) for i, x in enumerate((query, key, value)))
        mask = self._mask(attn_mask, key_padding_mask, batch, q.dtype)
        logits = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        weights = torch.softmax(logits if mask is None else logits + mask, 3)
        dropped = F.dropout(weights, self.dropout) if self.training and self.dropout else weights
        flat = (dropped @ v).transpose(1, 2).reshape(batch, length, -1)
        output = F.linear(flat, self.out_weight.flatten(1), self.out_bias)
        shown = (weights.mean(1) if average_attn_weights else weights) if need_weights else None
        return (output if self.batch_first else output.transpose(0, 1)), shown

    def _project(self, part: int, inputs: Tensor) -> Tensor:
        bias = None if self.in_proj_bias is None else self.in_proj_bias[part].flatten()
        flat = F.linear(inputs, self.in_weight[part].flatten(0, 1), bias)
        return flat.view(*inputs.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def _mask(self, attn_mask: Tensor | None, padding: Tensor | None, batch: int, dtype: torch.dtype) -> Tensor | None:
        found: Tensor | None = None
        if attn_mask is not None:
            found = _additive(attn_mask, dtype)
            if found.dim() == 3:
                found = found.view(batch, self.original_heads, *found.shape[1:])[:, self.kept]
        if padding is not None:
            hidden = _additive(padding, dtype)[:, None, None]
            found = hidden if found is None else found + hidden
        return found


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """True becomes -inf, as in `nn.MultiheadAttention`."""
    if mask.dtype != torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -math.inf)


def shrink_projections(module: nn.Module, out: nn.Linear, heads: int, kept: list[int]) -> None:
    """Keep some heads of an attention with separate linear projections (`transformers`), in place."""
    places = torch.arange(out.weight.shape[1], device=out.weight.device).view(heads, -1)[kept].flatten()
    names = ("q_proj", "k_proj", "v_proj") if hasattr(module, "q_proj") else ("query", "key", "value")
    with torch.no_grad():
        for name in names:
            linear: nn.Linear = getattr(module, name)
            linear.weight = nn.Parameter(linear.weight[places].clone())
            if linear.bias is not None:
                linear.bias = nn.Parameter(linear.bias[places].clone())
            linear.out_features = len(places)
        out.weight = nn.Parameter(out.weight[:, places].clone())
        out.in_features = len(places)
    settings: dict[str, Any] = {"num_heads": len(kept), "num_attention_heads": len(kept)}
    settings |= {"all_head_size": len(places)}
    for name, value in settings.items():
        if hasattr(module, name):
            setattr(module, name, value)

"""Multi-head attention whose heads can be seen, gated and removed one by one (Vaswani and others 2017, section 3.2).

Parameters are stored by head: `in_weight` (3, H, d_head, d_model) for queries, keys and values, `out_weight`
(d_model, H, d_head). Output = sum over heads of gate_h * (weights_h @ values_h) @ out_weight[:, h].T + out_bias, so a
head with gate 0 and a head that is not there are the same thing.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError

RELATIVE_SCALE = 8.0
"""Relative-position parameters count eightfold in the logits: they learn faster at one step size for all."""
RELATIVE_STD = 0.5
"""Standard deviation of the logits that they start with."""


class MultiHeadAttention(nn.Module):
    """Scaled dot-product attention with H heads, optionally with a learned bias for each relative position.

    Args:
        d_model: width of queries, memory and output. heads: H. head_dim: width of a head, d_model / H by default.
        max_distance: where given, the logit of query i and key j gets a learned bias for j - i, clipped to
            +-max_distance, per head (Raffel and others 2020 bias logits likewise, in buckets).

    Raises:
        ConfigError: d_model is no multiple of heads and no head_dim is given.
    """

    def __init__(
        self, d_model: int, heads: int, *, head_dim: int | None = None, max_distance: int | None = None
    ) -> None:
        super().__init__()
        if head_dim is None and (heads < 1 or d_model % heads):
            raise ConfigError(f"{heads} heads do not divide a width of {d_model}", where="MultiHeadAttention")
        head_dim = head_dim or d_model // heads
        self.max_distance = max_distance
        self.in_weight = nn.Parameter(torch.empty(3, heads, head_dim, d_model))
        self.in_bias = nn.Parameter(torch.zeros(3, heads, head_dim))
        self.out_weight = nn.Parameter(torch.empty(d_model, heads, head_dim))
        self.out_bias = nn.Parameter(torch.zeros(d_model))
        if max_distance is not None:
            self.relative = nn.Parameter(torch.empty(heads, 2 * max_distance + 1))
        else:
            self.register_parameter("relative", None)
        self.reset_parameters()

    @property
    def heads(self) -> int:
        """How many heads there are (after removal: left)."""
        return self.in_weight.shape[1]

    @property
    def d_model(self) -> int:
        """Width of input and output."""
        return self.in_weight.shape[3]

    def reset_parameters(self) -> None:
        """Draw weights anew (Xavier uniform), biases 0, relative biases normal."""
        with torch.no_grad():
            for part in range(3):
                nn.init.xavier_uniform_(self.in_weight[part].view(-1, self.d_model))
            nn.init.xavier_uniform_(self.out_weight.view(self.d_model, -1))
        nn.init.zeros_(self.in_bias)
        nn.init.zeros_(self.out_bias)
        if self.relative is not None:
            nn.init.normal_(self.relative, std=RELATIVE_STD / RELATIVE_SCALE)

    def project(self, part: slice, inputs: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, or a slice of the three, from inputs (B, T, d_model): each (B, H, T, d_head)."""
        weight, bias = self.in_weight[part], self.in_bias[part]
        count, heads, width, _ = weight.shape
        flat = F.linear(inputs, weight.reshape(-1, self.d_model), bias.reshape(-1))
        return flat.view(*inputs.shape[:2], count, heads, width).permute(2, 0, 3, 1, 4).unbind()

    def position_bias(self, queries: int, keys: int, offset: int = 0) -> Tensor | None:
        """What relative positions add to the logits, (1, H, queries, keys); the first query stands at `offset`."""
        if self.relative is None or self.max_distance is None:
            return None
        places = torch.arange(keys, device=self.relative.device) - torch.arange(
            offset, offset + queries, device=self.relative.device
        ).unsqueeze(1)
        index = places.clamp(-self.max_distance, self.max_distance) + self.max_distance
        return RELATIVE_SCALE * self.relative[:, index].unsqueeze(0)

    def logits_bias(self, queries: int, keys: int, mask: Tensor | None, offset: int = 0) -> Tensor | None:
        """Relative positions and the additive mask (0 or -inf, broadcast to (B, H, queries, keys)) together."""
        bias = self.position_bias(queries, keys, offset)
        return mask if bias is None else bias if mask is None else bias + mask

    def forward(
        self,
        inputs: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        gate: Tensor | None = None,
    ) -> Tensor:
        """Attend to the inputs themselves or to a memory.

        Args:
            inputs: (B, T, d_model). memory: (B, S, d_model). mask: additive, 0 or -inf, broadcast to (B, H, T, S).
            gate: (H,) factors of the heads' outputs.

        Returns:
            (B, T, d_model).
        """
        if not self.heads:
            return self.out_bias.expand(*inputs.shape[:2], -1)
        if memory is None:
            q, k, v = self.project(slice(0, 3), inputs)
        else:
            (q,), (k, v) = self.project(slice(0, 1), inputs), self.project(slice(1, 3), memory)
        return self.merge(self.attend(q, k, v, self.logits_bias(q.shape[2], k.shape[2], mask)), gate)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Outputs of the heads (B, H, T, d_head); the weights themselves are not kept."""
        if bias is not None and bias.requires_grad:
            return self.weights(q, k, bias) @ v  # the fused kernel gives no gradient for its bias
        if bias is not None:
            bias = bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)

    def weights(self, q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
        """Attention weights (B, H, T, S)."""
        logits = (q * (1 / math.sqrt(q.shape[3]))) @ k.transpose(2, 3)
        return torch.softmax(logits if bias is None else logits + bias, dim=3)

    def merge(self, heads: Tensor, gate: Tensor | None = None) -> Tensor:
        """Heads' outputs (B, H, T, d_head) through their gates and the output projection: (B, T, d_model)."""
        if gate is not None:
            heads = heads * gate.to(heads.dtype).view(1, -1, 1, 1)
        flat = heads.transpose(1, 2).reshape(heads.shape[0], heads.shape[2], -1)
        return F.linear(flat, self.out_weight.view(self.d_model, -1), self.out_bias)

    def keep(self, kept: Tensor) -> MultiHeadAttention:
        """A copy with the chosen heads alone, in smaller matrices.

        Args:
            kept: bool (H,).
        """
        smaller = MultiHeadAttention(
            self.d_model, int(kept.sum()), head_dim=self.in_weight.shape[2], max_distance=self.max_distance
        )
        smaller.to(self.in_weight)
        with torch.no_grad():
            smaller.in_weight.copy_(self.in_weight[:, kept])
            smaller.in_bias.copy_(self.in_bias[:, kept])
            smaller.out_weight.copy_(self.out_weight[:, kept])
            smaller.out_bias.copy_(self.out_bias)
            if self.relative is not None and smaller.relative is not None:
                smaller.relative.copy_(self.relative[kept])
        return smaller

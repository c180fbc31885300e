"""Encoder and decoder layers of the Transformer, with layer norm before each sublayer or after it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.methods.transformer.attention import MultiHeadAttention


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between, (B, T, d_model) -> (B, T, d_model)."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, inputs: Tensor, dropout: float = 0.0) -> Tensor:
        """Apply; `dropout` acts on the hidden layer."""
        hidden = F.relu(self.first(inputs))
        if dropout:
            hidden = F.dropout(hidden, dropout)
        found: Tensor = self.second(hidden)
        return found


class Layer(nn.Module):
    """What both kinds of layer share: residual connections around normalised sublayers."""

    def __init__(self, dropout: float, norm_first: bool) -> None:
        super().__init__()
        self.dropout, self.norm_first = dropout, norm_first

    def drop(self, values: Tensor) -> Tensor:
        """Dropout in training mode."""
        return F.dropout(values, self.dropout) if self.training and self.dropout else values

    def before(self, norm: nn.Module, inputs: Tensor) -> Tensor:
        """What a sublayer is given."""
        found: Tensor = norm(inputs) if self.norm_first else inputs
        return found

    def after(self, norm: nn.Module, inputs: Tensor, update: Tensor) -> Tensor:
        """The residual sum, normalised here where the norm does not come first."""
        total = inputs + self.drop(update)
        found: Tensor = total if self.norm_first else norm(total)
        return found

    def feed(self, feed_forward: FeedForward, inputs: Tensor) -> Tensor:
        """The feed-forward sublayer without its residual connection."""
        found: Tensor = feed_forward(inputs, self.dropout if self.training else 0.0)
        return found


class EncoderLayer(Layer):
    """Self-attention and feed-forward."""

    def __init__(
        self, d_model: int, heads: int, d_ff: int, dropout: float, norm_first: bool, max_distance: int | None
    ) -> None:
        super().__init__(dropout, norm_first)
        self.attention = MultiHeadAttention(d_model, heads, max_distance=max_distance)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, inputs: Tensor, mask: Tensor | None = None, gate: Tensor | None = None) -> Tensor:
        """Map (B, S, d_model) to the same; `mask` hides padding, `gate` (H,) weighs the heads."""
        found = self.attention(self.before(self.norm1, inputs), mask=mask, gate=gate)
        hidden = self.after(self.norm1, inputs, found)
        return self.after(self.norm2, hidden, self.feed(self.feed_forward, self.before(self.norm2, hidden)))


@dataclass
class LayerCache:
    """Keys and values of a decoder layer, each (B, H, T, d_head): of the prefix and of the source."""

    keys: Tensor
    values: Tensor
    memory_keys: Tensor
    memory_values: Tensor

    def select(self, rows: Tensor) -> LayerCache:
        """The same for chosen sentences or hypotheses."""
        return LayerCache(self.keys[rows], self.values[rows], self.memory_keys[rows], self.memory_values[rows])


class DecoderLayer(Layer):
    """Masked self-attention, attention to the encoder and feed-forward."""

    def __init__(
        self, d_model: int, heads: int, d_ff: int, dropout: float, norm_first: bool, max_distance: int | None
    ) -> None:
        super().__init__(dropout, norm_first)
        self.attention = MultiHeadAttention(d_model, heads, max_distance=max_distance)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))

    def forward(
        self,
        inputs: Tensor,
        memory: Tensor,
        mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        gate: Tensor | None = None,
        cross_gate: Tensor | None = None,
    ) -> Tensor:
        """Map (B, T, d_model), looking at memory (B, S, d_model), to (B, T, d_model)."""
        found = self.attention(self.before(self.norm1, inputs), mask=mask, gate=gate)
        hidden = self.after(self.norm1, inputs, found)
        found = self.cross_attention(self.before(self.norm2, hidden), memory, mask=memory_mask, gate=cross_gate)
        hidden = self.after(self.norm2, hidden, found)
        return self.after(self.norm3, hidden, self.feed(self.feed_forward, self.before(self.norm3, hidden)))

    def start(self, memory: Tensor) -> LayerCache:
        """An empty cache with the keys and values of the source, computed once."""
        keys, values = self.cross_attention.project(slice(1, 3), memory)
        own = memory.new_empty(len(memory), self.attention.heads, 0, self.attention.in_weight.shape[2])
        return LayerCache(own, own, keys, values)

    def step(
        self,
        inputs: Tensor,
        cache: LayerCache,
        memory_mask: Tensor | None,
        gate: Tensor | None,
        cross_gate: Tensor | None,
    ) -> Tensor:
        """One more position, (B, 1, d_model) -> (B, 1, d_model); its keys and values enter the cache."""
        attention, cross = self.attention, self.cross_attention
        q, k, v = attention.project(slice(0, 3), self.before(self.norm1, inputs))
        cache.keys, cache.values = torch.cat([cache.keys, k], 2), torch.cat([cache.values, v], 2)
        length = cache.keys.shape[2]
        if attention.heads:
            bias = attention.logits_bias(1, length, None, offset=length - 1)
            found = attention.merge(attention.attend(q, cache.keys, cache.values, bias), gate)
        else:
            found = attention.out_bias.expand_as(inputs)
        hidden = self.after(self.norm1, inputs, found)
        if cross.heads:
            (q,) = cross.project(slice(0, 1), self.before(self.norm2, hidden))
            found = cross.merge(cross.attend(q, cache.memory_keys, cache.memory_values, memory_mask), cross_gate)
        else:
            found = cross.out_bias.expand_as(inputs)
        hidden = self.after(self.norm2, hidden, found)
        return self.after(self.norm3, hidden, self.feed(self.feed_forward, self.before(self.norm3, hidden)))

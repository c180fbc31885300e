"""The encoder-decoder Transformer (Vaswani and others 2017) with a gate on every attention head."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.transformer.attention import MultiHeadAttention
from restudy.methods.transformer.layers import DecoderLayer, EncoderLayer, LayerCache

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")
"""Encoder self-attention, decoder self-attention, decoder attention to the encoder."""
Gates = Mapping[str, Tensor]
"""Kind of attention -> factors of its heads, (layers, H); kinds that are absent are open."""


@dataclass(frozen=True)
class Shape:
    """What a Transformer is built of; `max_distance` None: no relative positions, the sinusoids alone."""

    source_size: int
    target_size: int
    d_model: int = 64
    heads: int = 8
    d_ff: int = 128
    encoder_layers: int = 3
    decoder_layers: int = 2
    dropout: float = 0.1
    norm_first: bool = True
    max_distance: int | None = None
    padding: int = 0
    longest: int = 256


def sinusoids(length: int, width: int) -> Tensor:
    """Position codes (length, width), sines in the even columns and cosines in the odd ones."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    angles = torch.arange(length).unsqueeze(1) * rates
    codes = torch.zeros(length, width)
    codes[:, 0::2], codes[:, 1::2] = angles.sin(), angles.cos()[:, : width // 2]
    return codes


class Transformer(nn.Module):
    """Embeddings with sinusoids, encoder, decoder; the output layer is the target embedding.

    Raises:
        ConfigError: a width that the heads do not divide.
    """

    positions: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        width = shape.d_model
        self.source_embedding = nn.Embedding(shape.source_size, width)
        self.target_embedding = nn.Embedding(shape.target_size, width)
        for embedding in (self.source_embedding, self.target_embedding):
            nn.init.normal_(embedding.weight, std=width**-0.5)
        self.register_buffer("positions", sinusoids(shape.longest, width), persistent=False)
        block = (width, shape.heads, shape.d_ff, shape.dropout, shape.norm_first, shape.max_distance)
        self.encoder_layers = nn.ModuleList(EncoderLayer(*block) for _ in range(shape.encoder_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(*block) for _ in range(shape.decoder_layers))
        self.encoder_norm = nn.LayerNorm(width) if shape.norm_first else nn.Identity()
        self.decoder_norm = nn.LayerNorm(width) if shape.norm_first else nn.Identity()

    def attentions(self, kind: str) -> list[MultiHeadAttention]:
        """The attention modules of a kind, lowest layer first.

        Raises:
            ConfigError: no such kind.
        """
        if kind not in KINDS:
            raise ConfigError(f"no attention of kind {kind!r}", remedy=f"known: {', '.join(KINDS)}")
        layers = self.encoder_layers if kind == "encoder" else self.decoder_layers
        name = "cross_attention" if kind == "cross" else "attention"
        return [getattr(layer, name) for layer in layers]

    def open_gates(self, *kinds: str) -> dict[str, Tensor]:
        """Gates of 1, (layers, H) float32, for these kinds (all by default)."""
        device = self.target_embedding.weight.device
        found = {kind: self.attentions(kind) for kind in kinds or KINDS}
        return {
            k: torch.ones(len(own), max((a.heads for a in own), default=0), device=device) for k, own in found.items()
        }

    def padding_mask(self, source: Tensor) -> Tensor | None:
        """Additive mask (B, 1, 1, S) that hides padding; None where there is none."""
        hidden = source == self.shape.padding
        if not bool(hidden.any()):
            return None
        mask = torch.zeros(source.shape, device=source.device, dtype=self.positions.dtype)
        return mask.masked_fill(hidden, -math.inf)[:, None, None]

    def embed(self, embedding: nn.Embedding, tokens: Tensor, offset: int = 0) -> Tensor:
        """Scaled embeddings with position codes, (B, T, d_model)."""
        scaled = embedding(tokens) * math.sqrt(self.shape.d_model)
        found: Tensor = scaled + self.positions[offset : offset + tokens.shape[1]]
        return nn.functional.dropout(found, self.shape.dropout) if self.training and self.shape.dropout else found

    def encode(self, source: Tensor, gates: Gates | None = None) -> tuple[Tensor, Tensor | None]:
        """Source tokens int64 (B, S) -> memory (B, S, d_model) and the mask of its padding."""
        mask = self.padding_mask(source)
        hidden = self.embed(self.source_embedding, source)
        for number, layer in enumerate(self.encoder_layers):
            hidden = layer(hidden, mask, _gate(gates, "encoder", number))
        return self.encoder_norm(hidden), mask

    def decode(self, prefix: Tensor, memory: Tensor, mask: Tensor | None, gates: Gates | None = None) -> Tensor:
        """Hidden states (B, T, d_model) of a target prefix int64 (B, T), each seeing those before it."""
        length = prefix.shape[1]
        future = torch.full((length, length), -math.inf, device=prefix.device).triu(1)
        hidden = self.embed(self.target_embedding, prefix)
        for number, layer in enumerate(self.decoder_layers):
            own, cross = _gate(gates, "decoder", number), _gate(gates, "cross", number)
            hidden = layer(hidden, memory, future, mask, own, cross)
        found: Tensor = self.decoder_norm(hidden)
        return found

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states (..., d_model) -> logits (..., target_size)."""
        return nn.functional.linear(hidden, self.target_embedding.weight)

    def forward(self, source: Tensor, prefix: Tensor, gates: Gates | None = None) -> Tensor:
        """Logits (B, T, target_size) of the token after each position of the prefix.

        Args:
            source: int64 (B, S), padded. prefix: int64 (B, T), beginning with BOS; padding at its end is harmless,
                since no position sees a later one.
            gates: by kind of attention, (layers, H).
        """
        memory, mask = self.encode(source, gates)
        return self.logits(self.decode(prefix, memory, mask, gates))

    def start(self, memory: Tensor) -> list[LayerCache]:
        """Caches for decoding position by position."""
        return [layer.start(memory) for layer in self.decoder_layers]  # type: ignore[operator]

    def step(
        self, tokens: Tensor, caches: list[LayerCache], mask: Tensor | None, position: int, gates: Gates | None = None
    ) -> Tensor:
        """Logits (B, target_size) after one more token int64 (B,) at `position`."""
        hidden = self.embed(self.target_embedding, tokens.unsqueeze(1), position)
        for number, (layer, cache) in enumerate(zip(self.decoder_layers, caches, strict=True)):
            own, cross = _gate(gates, "decoder", number), _gate(gates, "cross", number)
            hidden = layer.step(hidden, cache, mask, own, cross)  # type: ignore[operator]
        return self.logits(self.decoder_norm(hidden)[:, 0])


def _gate(gates: Gates | None, kind: str, layer: int) -> Tensor | None:
    if gates is None or kind not in gates:
        return None
    return gates[kind][layer]


def remove_heads(model: Transformer, keep: Mapping[str, Tensor]) -> Transformer:
    """A copy of a model without the heads whose entry is False, in smaller matrices.

    Args:
        keep: kind of attention -> bool (layers, H); kinds that are absent stay whole. A layer may lose all its heads.

    Raises:
        ConfigError: an unknown kind, or another number of layers or heads than the model has.
    """
    smaller = copy.deepcopy(model)
    for kind, kept in keep.items():
        modules = smaller.attentions(kind)
        if (
            kept.dim() != 2
            or len(kept) != len(modules)
            or any(len(k) != m.heads for k, m in zip(kept, modules, strict=True))
        ):
            raise ConfigError(
                f"keep[{kind!r}] has shape {tuple(kept.shape)}",
                where="remove_heads",
                remedy=f"give {len(modules)} layers of {[m.heads for m in modules]} heads",
            )
        layers = smaller.encoder_layers if kind == "encoder" else smaller.decoder_layers
        name = "cross_attention" if kind == "cross" else "attention"
        for layer, module, chosen in zip(layers, modules, kept, strict=True):
            setattr(layer, name, module.keep(chosen.bool()))
    return smaller

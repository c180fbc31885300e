"""Attention weights of a trained Transformer, sentence by sentence, and what heads do with them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from restudy.methods.transformer import Transformer
from restudy.methods.transformer.layers import EncoderLayer
from restudy.methods.transformer.model import Gates

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Observed:
    """Encoder self-attention of one batch, by layer: weights (B, H, S, S) and the norms of what a key contributes.

    `norms` (B, H, S) is the length of W_O W_V x for each head and key (Kobayashi and others 2020); weights times
    norms say how much arrives, not only how much is looked at.
    """

    weights: list[Tensor]
    norms: list[Tensor]


@torch.no_grad()
def encoder_attention(model: Transformer, source: Tensor, gates: Gates | None = None) -> Observed:
    """Weights and contribution norms of every encoder layer for source tokens int64 (B, S), under gates if given."""
    mask = model.padding_mask(source)
    hidden = model.embed(model.source_embedding, source)
    weights, norms = [], []
    for layer in model.encoder_layers:
        assert isinstance(layer, EncoderLayer)
        attention = layer.attention
        q, k, v = attention.project(slice(0, 3), layer.before(layer.norm1, hidden))
        weights.append(attention.weights(q, k, attention.logits_bias(q.shape[2], k.shape[2], mask)))
        gram = torch.einsum("ohc,ohd->hcd", attention.out_weight, attention.out_weight)
        norms.append(torch.einsum("bhsc,hcd,bhsd->bhs", v, gram, v).clamp_min(0).sqrt())
        hidden = layer(hidden, mask, gates["encoder"][len(norms) - 1] if gates is not None else None)
    return Observed(weights, norms)


def confidence(weights: Tensor, lengths: Tensor) -> tuple[Array, int]:
    """Sum over queries of the largest weight on a key other than EOS, by head (H,), and the number of queries.

    Args:
        weights: (B, H, S, S). lengths: int64 (B,) tokens before EOS; these are the queries, and the keys. Weights are
            not renormalised after EOS is left out.
    """
    inside = torch.arange(weights.shape[2], device=weights.device) < lengths.unsqueeze(1)
    largest = weights.masked_fill(~inside[:, None, None], 0.0).amax(3)
    total = (largest * inside[:, None]).sum((0, 2))
    return total.double().cpu().numpy(), int(lengths.sum())


def entropy(weights: Tensor, lengths: Tensor) -> tuple[Array, int]:
    """Sum over queries of the entropy of a head's weights over log n (n keys, EOS among them), and the queries."""
    inside = torch.arange(weights.shape[2], device=weights.device) < lengths.unsqueeze(1)
    found = torch.special.entr(weights).sum(3) / (lengths + 1).log().view(-1, 1, 1)
    return (found * inside[:, None]).sum((0, 2)).double().cpu().numpy(), int(lengths.sum())


def offset_hits(scores: Tensor, lengths: Tensor, offset: int) -> tuple[Array, Array]:
    """How often the key with the largest score stands at `offset` from the query, by sentence.

    Args:
        scores: (B, H, S, S), weights or weights times norms. lengths: int64 (B,) tokens before EOS.

    Returns:
        Hits (B, H), and the queries (B,) for which the offset lies inside the sentence.
    """
    size = scores.shape[2]
    places = torch.arange(size, device=scores.device)
    inside = places < lengths.unsqueeze(1)
    best = scores.masked_fill(~inside[:, None, None], -1.0).argmax(3)
    target = places + offset
    fits = inside & (target >= 0) & (target < lengths.unsqueeze(1))
    hits = ((best == target) & fits[:, None]).sum(2)
    return hits.double().cpu().numpy(), fits.sum(1).double().cpu().numpy()


def rare_hits(weights: Tensor, ranks: Tensor, within: int) -> tuple[Array, Array]:
    """How often the key with the largest weight holds one of a sentence's rarest tokens (Voita and others 2019, 5.3).

    Args:
        weights: (B, H, S, S). ranks: int64 (B, S), larger is rarer; -1 for EOS and padding, which are no queries and no
            keys. within: so many different tokens count as the rarest.

    Returns:
        Hits (B, H), and the places (B,) that hold such a token: the hits of a head that looks anywhere.
    """
    inside, left = ranks >= 0, ranks
    rare = torch.zeros_like(inside)
    for _ in range(within):
        new = (left == left.amax(1, keepdim=True)) & (left >= 0)
        rare, left = rare | new, left.masked_fill(new, -1)
    best = weights.masked_fill(~inside[:, None, None], -1.0).argmax(3)
    looked = rare[torch.arange(len(rare), device=rare.device).view(-1, 1, 1), best] & inside[:, None]
    return looked.sum(2).double().cpu().numpy(), rare.sum(1).double().cpu().numpy()


def word_scores(weights: Array, words: tuple[tuple[int, int], ...]) -> Array:
    """Scores between words from weights between pieces, (H, S, S) -> (H, W, W).

    To a word: the sum over its pieces; from a word: the mean over its pieces.
    """
    member = np.zeros((len(words), weights.shape[2]))
    for number, (first, behind) in enumerate(words):
        member[number, first:behind] = 1.0
    found = (member / member.sum(1, keepdims=True)) @ weights @ member.T
    return np.asarray(found, dtype=np.float64)

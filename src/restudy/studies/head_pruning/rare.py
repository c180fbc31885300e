"""How often encoder heads look at the rarest tokens of a sentence (section 5.3 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from restudy.methods.heads import encoder_attention
from restudy.methods.models import derive_seed
from restudy.methods.text.grammar import SPECIALS, Sentence
from restudy.methods.transformer import Transformer
from restudy.studies.head_pruning.corpus import EVALUATION_BATCH, padded
from restudy.studies.head_pruning.track import Row

COMMON = 500
"""Only sentences with a token outside the so many most frequent ones count."""
WITHIN = (1, 2)


def rare_rows(
    seed: int, arm: str, model: Transformer, sentences: Sequence[Sentence], counts: Sequence[int]
) -> list[Row]:
    """Largest weight on the rarest token, or on one of the two rarest, by head; over all queries, EOS left out.

    Args:
        counts: occurrences of each source token in training; ties go to the smaller token.

    `expected` is what a head that looks anywhere would have. The column `frequencies` says whether counts stand as they
    were counted or `permuted` over the tokens, which is the control.
    """
    shuffled = list(counts)
    generator = np.random.default_rng(derive_seed(seed, "permuted frequencies"))
    shuffled[SPECIALS:] = generator.permutation(np.array(counts[SPECIALS:])).tolist()
    return [
        row
        for name, own in (("counted", counts), ("permuted", shuffled))
        for row in _rows({"seed": seed, "arm": arm, "frequencies": name}, model, sentences, ranks(own))
    ]


def ranks(counts: Sequence[int]) -> Tensor:
    """Rank of each token by falling count, int64; 0 is the most frequent one."""
    order = sorted(range(len(counts)), key=lambda token: (-counts[token], token))
    found = torch.empty(len(counts), dtype=torch.int64)
    found[torch.tensor(order)] = torch.arange(len(counts))
    return found


def _rows(place: Row, model: Transformer, sentences: Sequence[Sentence], rank: Tensor) -> list[Row]:
    chosen = [s for s in sentences if int(rank[list(s.source)].max()) >= COMMON]
    device = model.target_embedding.weight.device
    hits: dict[int, list[Tensor]] = {within: [] for within in WITHIN}
    expected, queries = dict.fromkeys(WITHIN, 0.0), 0
    for start in range(0, len(chosen), EVALUATION_BATCH):
        source = padded(chosen[start : start + EVALUATION_BATCH])[0]
        inside = torch.arange(source.shape[1]) < ((source != model.shape.padding).sum(1) - 1).unsqueeze(1)
        own = rank[source].masked_fill(~inside, -1)
        looked = _looked_at(model, source.to(device), inside.to(device)).cpu()  # (B, layers, H, S)
        lengths = inside.sum(1)
        queries += int(lengths.sum())
        for within in WITHIN:
            rare = _rarest(own, within)
            hit = rare[torch.arange(len(rare)).view(-1, 1, 1, 1), looked] & inside[:, None, None]
            hits[within].append(hit.sum((0, 3)).double())
            expected[within] += float(rare.sum(1).sum())
    return [
        place | {"layer": layer, "head": head, "within": within}
        | {"hits": float(value), "count": float(queries), "expected": expected[within]}
        for within in WITHIN
        for layer, row in enumerate(torch.stack(hits[within]).sum(0).tolist() if chosen else [])
        for head, value in enumerate(row)
    ]  # fmt: skip


def _looked_at(model: Transformer, source: Tensor, inside: Tensor) -> Tensor:
    """The key with the largest weight, EOS left out, for every query, (B, layers, H, S)."""
    weights = encoder_attention(model, source).weights
    return torch.stack([w.masked_fill(~inside[:, None, None], -1.0).argmax(3) for w in weights], 1)


def _rarest(rank: Tensor, within: int) -> Tensor:
    """Whether a place holds one of the `within` rarest tokens of its sentence; ranks (B, S), -1 outside."""
    found = torch.zeros_like(rank, dtype=torch.bool)
    left = rank.clone()
    for _ in range(within):
        most = left.amax(1, keepdim=True)
        new = (left == most) & (most >= 0)
        found |= new
        left = left.masked_fill(new, -1)
    return found

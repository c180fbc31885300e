"""Batches of sentence pairs of similar length, as large as their padded tokens allow (Vaswani and others 2017, 5.1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from restudy.methods.text.grammar import BOS, EOS, PAD, Sentence

Pair = tuple[Tensor, Tensor]
"""Source int64 (B, S) with EOS and target int64 (B, T) with BOS and EOS, both padded at the end."""


def padded(sentences: Sequence[Sentence]) -> Pair:
    """Make one batch of these sentences, in their order."""
    return _rows([(*s.source, EOS) for s in sentences]), _rows([(BOS, *s.target, EOS) for s in sentences])


def batched(sentences: Sequence[Sentence], tokens: int) -> list[Pair]:
    """Sort sentences by length into batches of at most `tokens` padded tokens, source and target together.

    A sentence that is longer has a batch of its own.
    """
    found: list[Pair] = []
    batch: list[Sentence] = []
    source = target = 0
    for sentence in sorted(sentences, key=lambda s: (len(s.source) + len(s.target), len(s.source))):
        own = len(sentence.source) + 1, len(sentence.target) + 2
        source, target = max(source, own[0]), max(target, own[1])
        if batch and (source + target) * (len(batch) + 1) > tokens:
            found.append(padded(batch))
            batch, (source, target) = [], own
        batch.append(sentence)
    return [*found, padded(batch)] if batch else found


def _rows(rows: Sequence[tuple[int, ...]]) -> Tensor:
    longest = max(len(row) for row in rows)
    return torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in rows])

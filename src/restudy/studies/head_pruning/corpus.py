"""The data of one seed: a language of its own, training batches of similar length, held-out sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.models import derive_seed
from restudy.text.grammar import BOS, EOS, PAD, Language, Sentence

Pair = tuple[Tensor, Tensor]
EVALUATION_BATCH = 100


@dataclass(frozen=True)
class Corpus:
    """Batches to train with, sentences to measure with (those of a batch are of similar length), vocabularies."""

    batches: list[Pair]
    held_out: list[Sentence]
    source_size: int
    target_size: int

    def pairs(self, count: int | None = None) -> list[Pair]:
        """Held-out sentences, the first `count` or all, in batches of at most 100."""
        chosen = self.held_out[:count]
        return [padded(chosen[i : i + EVALUATION_BATCH]) for i in range(0, len(chosen), EVALUATION_BATCH)]


def load(seed: int, sentences: int, held_out: int, batch_tokens: int) -> Corpus:
    """Draw a language and its sentences; the same for every arm and stage of a seed."""
    language = Language(derive_seed(seed, "language"))
    train = list(language.sentences(sentences, derive_seed(seed, "train")))
    known = {s.source for s in train}
    found: list[Sentence] = []
    stream = language.sentences(20 * held_out, derive_seed(seed, "held out"))
    while len(found) < held_out:
        sentence = next(stream)
        if sentence.source not in known:
            found.append(sentence)
    return Corpus(batched(train, batch_tokens), found, language.source_size, language.target_size)


def padded(sentences: Sequence[Sentence]) -> Pair:
    """Source int64 (B, S) with EOS and target int64 (B, T) with BOS and EOS, both padded at the end."""
    return (_rows([(*s.source, EOS) for s in sentences]), _rows([(BOS, *s.target, EOS) for s in sentences]))


def batched(sentences: Sequence[Sentence], tokens: int) -> list[Pair]:
    """Batches of sentences of similar length, each with at most `tokens` padded tokens, source and target together."""
    ordered = sorted(sentences, key=lambda s: (len(s.source) + len(s.target), len(s.source)))
    found: list[Pair] = []
    batch: list[Sentence] = []
    source = target = 0
    for sentence in ordered:
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

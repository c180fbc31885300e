"""The data of one seed: training batches of similar length and held-out sentences, of a drawn language or of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import torch
from torch import Tensor

from restudy.errors import ResultError
from restudy.methods.models import derive_seed
from restudy.methods.text.grammar import BOS, EOS, PAD, Language, Sentence

Pair = tuple[Tensor, Tensor]
EVALUATION_BATCH = 100
WORD_END = "</w>"


@dataclass(frozen=True)
class Corpus:
    """Batches to train with (of similar lengths), sentences to measure with, vocabularies.

    `source_counts`: how often each source token occurs in training. `spell`: from target tokens to what BLEU counts.
    """

    batches: list[Pair]
    held_out: list[Sentence]
    source_counts: list[int]
    target_size: int
    spell: Callable[[Sequence[int]], list[Hashable]] = list

    @property
    def source_size(self) -> int:
        """Size of the source vocabulary."""
        return len(self.source_counts)

    def pairs(self, count: int | None = None) -> list[Pair]:
        """Held-out sentences, the first `count` or all, in batches of at most 100."""
        chosen = self.held_out[:count]
        return [padded(chosen[i : i + EVALUATION_BATCH]) for i in range(0, len(chosen), EVALUATION_BATCH)]


def draw(seed: int, sentences: int, held_out: int, batch_tokens: int) -> Corpus:
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
    return Corpus(batched(train, batch_tokens), found, counted(train, language.source_size), language.target_size)


def read(units: pa.Table, pieces: pa.Table, sentences: int, held_out: int, batch_tokens: int) -> Corpus:
    """The real text as stage `text` left it; the same for every seed.

    Args:
        units: table `text_sentences`. pieces: table `text_pieces`. sentences: at most so many,
            the first, to train with. held_out: so many to measure with.

    Raises:
        ResultError: fewer than `held_out` held-out units.
    """
    parts: dict[str, list[Sentence]] = {"train": [], "held_out": []}
    for row in units.to_pylist():
        flat = row["relations"]
        relations = tuple((flat[i], flat[i + 1], flat[i + 2]) for i in range(0, len(flat), 3))
        words = tuple(zip(row["first"], row["last"], strict=True))
        parts[row["part"]].append(Sentence(tuple(row["source"]), tuple(row["target"]), words, relations))
    if len(parts["held_out"]) < held_out:
        have = len(parts["held_out"])
        raise ResultError(
            f"{have} held-out units, {held_out} asked for", where="text_sentences", remedy="ask for fewer"
        )
    names: dict[str, dict[int, str]] = {"source": {}, "target": {}}
    for row in pieces.to_pylist():
        names[row["side"]][row["piece"]] = row["text"]
    sizes = {side: max(known) + 1 for side, known in names.items()}
    train = parts["train"][:sentences]
    counts = counted(train, sizes["source"])
    chosen = parts["held_out"][:held_out]
    return Corpus(batched(train, batch_tokens), chosen, counts, sizes["target"], lambda t: spelt(t, names["target"]))


def counted(train: Sequence[Sentence], size: int) -> list[int]:
    """How often each of `size` source tokens occurs."""
    counts = Counter(token for sentence in train for token in sentence.source)
    return [counts[token] for token in range(size)]


def spelt(tokens: Sequence[int], names: Mapping[int, str]) -> list[Hashable]:
    """Words of target pieces; a piece that ends a word carries the mark `</w>`."""
    return list("".join(names.get(token, "") for token in tokens).replace(WORD_END, " ").split())


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

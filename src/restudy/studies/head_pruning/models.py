"""The data of both tracks, a drawn language (`synthetic`) or the Bible (`text`), and the Transformers that read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.errors import ResultError
from restudy.methods.models import derive_seed
from restudy.methods.text.batches import Pair, batched, padded
from restudy.methods.text.grammar import Language, Sentence
from restudy.methods.text.spelling import spelt
from restudy.methods.transformer import Shape, Transformer

Row = dict[str, Any]
EVALUATION_BATCH = 100
SHAPE = ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers", "dropout", "max_distance")


@dataclass(frozen=True)
class Corpus:
    """Batches to train with (of similar lengths), sentences to measure with, vocabularies.

    `source_counts`: how often each source token occurs in training. `spell`: from target tokens to what BLEU counts.
    """

    batches: list[Pair]
    held_out: list[Sentence]
    source_counts: list[int]
    target_size: int
    spell: Callable[[Sequence[int]], list[Any]] = list

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
    """Read the real text as stage `text` left it; the same for every seed.

    Args:
        units: table `text_sentences`. pieces: table `text_pieces`. sentences: at most so many, the first, to train
            with. held_out: so many to measure with.

    Raises:
        ResultError: fewer than `held_out` held-out units.
    """
    parts: dict[str, list[Sentence]] = {"train": [], "held_out": []}
    for row in units.to_pylist():
        words = tuple(zip(row["first"], row["last"], strict=True))
        flat = iter(row["relations"])
        relations = tuple(zip(flat, flat, flat, strict=True))
        parts[row["part"]].append(Sentence(tuple(row["source"]), tuple(row["target"]), words, relations))
    if (have := len(parts["held_out"])) < held_out:
        raise ResultError(
            f"{have} held-out units, {held_out} asked for", where="text_sentences", remedy="ask for fewer"
        )
    names: dict[str, dict[int, str]] = {"source": {}, "target": {}}
    for row in pieces.to_pylist():
        names[row["side"]][row["piece"]] = row["text"]
    train = parts["train"][:sentences]
    counts, target_size = counted(train, max(names["source"]) + 1), max(names["target"]) + 1
    spell = partial(spelt, texts=names["target"])
    return Corpus(batched(train, batch_tokens), parts["held_out"][:held_out], counts, target_size, spell)


def counted(train: Sequence[Sentence], size: int) -> list[int]:
    """Count how often each of `size` source tokens occurs."""
    tokens = [token for sentence in train for token in sentence.source]
    return [int(count) for count in np.bincount(tokens, minlength=size)]


@dataclass(frozen=True)
class Run:
    """One seed of a track: what its stages read, under the names of the track, and its models.

    Attributes:
        setup: the seed's row of the table `setup`: sizes of data and models.
    """

    context: Context
    track: str
    setup: Mapping[str, Any]

    @property
    def seed(self) -> int:
        """The replicate."""
        return int(self.setup["seed"])

    @cached_property
    def data(self) -> Corpus:
        """The sentences of the seed, on the CPU."""
        sizes = [self.setup[name] for name in ("sentences", "held_out", "batch_tokens")]
        if self.track == "synthetic":
            return draw(self.seed, *sizes)
        return read(self.context.table("text_sentences"), self.context.table("text_pieces"), *sizes)

    @cached_property
    def batches(self) -> list[Pair]:
        """Batches to train with, on the device."""
        return self.moved(self.data.batches)

    def moved(self, pairs: Sequence[Pair]) -> list[Pair]:
        """Move batches to the device."""
        return [(source.to(self.context.device), target.to(self.context.device)) for source, target in pairs]

    def table(self, name: str) -> pa.Table:
        """Read a table of this track from a stage above."""
        return self.context.table(prefix(self.track) + name)

    def weights(self, name: str, start: str) -> dict[str, Tensor]:
        """Read the tensors of a stage above whose keys start so, without that start."""
        stored = self.context.tensors(prefix(self.track) + name)
        return {key.removeprefix(start): value for key, value in stored.items() if key.startswith(start)}

    def build(self, arm: str, purpose: str = "model") -> Transformer:
        """Build an untrained model; arms of one seed share every weight that both have."""
        sizes = {name: self.setup[name] for name in SHAPE}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(self.seed, purpose))
            model = Transformer(Shape(len(self.data.source_counts), self.data.target_size, **sizes))
        if arm == "sinusoid":
            for kind in ("encoder", "decoder"):
                for attention in model.attentions(kind):
                    attention.register_parameter("relative", None)
                    attention.max_distance = None
        return model.to(self.context.device).eval()

    def trained(self, arm: str) -> Transformer:
        """Return a model of the stage `train`."""
        model = self.build(arm)
        model.load_state_dict(self.weights("models", f"s{self.seed}.{arm}."))
        return model


def runs(context: Context, track: str, seeds: Sequence[int]) -> Iterator[Run]:
    """Yield the trained runs of these seeds."""
    rows = {row["seed"]: row for row in context.table(f"{prefix(track)}setup").to_pylist()}
    for seed in seeds:
        yield Run(context, track, rows[seed])


def prefix(track: str) -> str:
    """What the names of a track's tables and tensors start with."""
    return "" if track == "synthetic" else f"{track}_"


def named(track: str, **outputs: Any) -> Outputs:
    """Outputs under the names of a track."""
    return {prefix(track) + name: output for name, output in outputs.items()}

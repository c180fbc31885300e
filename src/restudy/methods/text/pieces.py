"""Word pieces by byte-pair encoding (Sennrich, Haddow, Birch 2016), one vocabulary for each language.

The merges are learnt by the library `tokenizers`, of the optional group `text`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from restudy.errors import ConfigError
from restudy.methods.text.grammar import BOS, EOS, PAD
from restudy.methods.text.spelling import END, UNKNOWN, spelt

NAMES = ("<pad>", "<s>", "</s>", "<unk>")
assert (PAD, BOS, EOS, UNKNOWN) == (0, 1, 2, 3)

Span = tuple[int, int]


@dataclass(frozen=True)
class Encoded:
    """A sentence in pieces.

    Attributes:
        ids: without BOS and EOS. spans: for each word its first piece and the one behind its last.
    """

    ids: tuple[int, ...]
    spans: tuple[Span, ...]


class Pieces:
    """A vocabulary learnt from sentences; ids 0 to 3 are padding, begin, end and what was never seen.

    Args:
        sentences: in words; letter case counts. vocabulary: how many pieces at most, the four named ones included.

    Raises:
        ConfigError: `tokenizers` is not installed, or the vocabulary cannot hold the characters.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], vocabulary: int) -> None:
        self._tokenizer = _trained(Counter(word for sentence in sentences for word in sentence), vocabulary)
        known = self._tokenizer.get_vocab()
        if len(known) > vocabulary:
            raise ConfigError(
                f"{vocabulary} pieces cannot hold the characters", remedy=f"set vocabulary to {len(known)} or more"
            )
        self.texts = [piece for piece, _ in sorted(known.items(), key=lambda item: item[1])]
        self._words: dict[str, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self.texts)

    def word(self, word: str) -> tuple[int, ...]:
        """The pieces of one word, at least one."""
        if word not in self._words:
            self._words[word] = tuple(self._tokenizer.encode(word).ids)
        return self._words[word]

    def encode(self, sentence: Sequence[str]) -> Encoded:
        """The pieces of a sentence, with the span of each word."""
        ids: list[int] = []
        spans = []
        for word in sentence:
            pieces = self.word(word)
            spans.append((len(ids), len(ids) + len(pieces)))
            ids += pieces
        return Encoded(tuple(ids), tuple(spans))

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The words that these pieces spell; see `spelt`."""
        return spelt(ids, dict(enumerate(self.texts)))


def _trained(counts: Counter[str], vocabulary: int) -> Any:
    """The tokenizer learnt from words with their counts."""
    try:
        from tokenizers import Tokenizer
        from tokenizers.models import BPE
        from tokenizers.pre_tokenizers import WhitespaceSplit
        from tokenizers.trainers import BpeTrainer
    except ImportError:
        raise ConfigError(
            "the optional group `text` is not installed (no tokenizers)", remedy="run `make setup text`"
        ) from None
    # The trainer numbers the last characters of words in the order of a hash map that differs in every process, and
    # pairs of equal count are merged in the order of these numbers. Naming them beforehand makes the merges repeatable.
    last = sorted({word[-1] + END for word in counts if word})
    trainer = BpeTrainer(
        vocab_size=vocabulary, special_tokens=[*NAMES, *last], end_of_word_suffix=END, show_progress=False
    )
    learning = Tokenizer(BPE(unk_token=NAMES[UNKNOWN], end_of_word_suffix=END))
    learning.pre_tokenizer = WhitespaceSplit()
    learning.train_from_iterator(sorted(counts.elements()), trainer)
    learnt = json.loads(learning.to_str())["model"]
    merges = [tuple(pair) for pair in learnt["merges"]]
    found = Tokenizer(BPE(vocab=learnt["vocab"], merges=merges, unk_token=NAMES[UNKNOWN], end_of_word_suffix=END))
    found.pre_tokenizer = WhitespaceSplit()
    return found

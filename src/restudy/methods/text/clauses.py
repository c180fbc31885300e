"""Verse pairs of two translations as pairs of clauses, split into training and held-out parts.

Verses are longer than a small model can learn from few pairs, and translations of them often agree in their clauses.
Parts are divided by chapter, since neighbouring verses share names and wording, and by a hash, so that no seed decides.
Chapters that tell the same story twice (Kings and Chronicles, the Gospels) stand in both parts; what of the held-out
part is found almost word for word in training is recognised by shared 5-grams and left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

Words = tuple[str, ...]
Reference = tuple[str, int, int]
"""Book, chapter, verse."""

ENDS = frozenset(";:.?!")
CLOSERS = frozenset(")]”\"'’»")
ORDER = 5
_TOKEN = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*|'s(?![^\W\d_])|\d+|[^\w\s]")


@dataclass(frozen=True)
class Unit:
    """A pair of clauses, or of whole verses, in words as they are written.

    Attributes:
        number: of the clause in its verse, from 0.
    """

    book: str
    chapter: int
    verse: int
    number: int
    source: Words
    target: Words

    @property
    def reference(self) -> Reference:
        """The verse that it belongs to."""
        return self.book, self.chapter, self.verse


def words(text: str) -> Words:
    """Words and punctuation marks; a word keeps its hyphens, and the English genitive is a word of its own."""
    return tuple(_TOKEN.findall(text.replace("’", "'")))


def clauses(sentence: Sequence[str]) -> list[Words]:
    """Cut after each of ; : . ? ! together with the closing marks behind it; joined, the clauses are the sentence."""
    found: list[Words] = []
    start = 0
    for end in range(1, len(sentence) + 1):
        follower = sentence[end] if end < len(sentence) else ""
        inside = any(word in ENDS for word in sentence[start:end]) and sentence[end - 1] in ENDS | CLOSERS
        if end == len(sentence) or (inside and follower not in ENDS | CLOSERS):
            found.append(tuple(sentence[start:end]))
            start = end
    return found


def similar(source: Sequence[str], target: Sequence[str]) -> bool:
    """Whether neither side has more than twice as many words as the other."""
    return 0 < max(len(source), len(target)) <= 2 * min(len(source), len(target))


def split(source: Sequence[str], target: Sequence[str]) -> list[tuple[Words, Words]]:
    """Pairs of clauses where both sides have as many and each pair is of similar length, else the whole pair."""
    pairs = list(zip(found := clauses(source), other := clauses(target), strict=False))
    if len(found) == len(other) and all(similar(*pair) for pair in pairs):
        return pairs
    return [(tuple(source), tuple(target))]


def units(source: Mapping[Reference, str], target: Mapping[Reference, str]) -> Iterator[Unit]:
    """The clause pairs of every verse that both sides have, in the order of the source."""
    for (book, chapter, verse), text in source.items():
        if other := target.get((book, chapter, verse)):
            for number, pair in enumerate(split(words(text), words(other))):
                yield Unit(book, chapter, verse, number, *pair)


def fraction(*key: object) -> float:
    """A number in [0, 1) that depends on the key alone: what a draw is where no seed shall decide."""
    return int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:7], "big") / 2**56


def held_out_chapter(book: str, chapter: int, share: float) -> bool:
    """Whether this chapter is among the share that is held out."""
    return fraction("chapter", book, chapter) < share


def drawn(chosen: Iterable[Unit]) -> list[Unit]:
    """Units in an order that has nothing to do with their place in the text, the same every time."""
    return sorted(chosen, key=lambda u: fraction("unit", *u.reference, u.number))


def ngrams(sentence: Sequence[str], order: int = ORDER) -> set[Words]:
    """The n-grams of lower-cased words; a shorter sentence is one n-gram."""
    lower = tuple(word.lower() for word in sentence)
    return {lower[i : i + order] for i in range(max(1, len(lower) - order + 1))}


def repeated(held_out: Sequence[Unit], train: Iterable[Unit], share: float) -> list[bool]:
    """Whether more than this share of a unit's source 5-grams stands in the training part.

    A unit of fewer than five words is repeated where the training part has a unit of exactly these words. One formula
    ("and it came to pass that") in a long clause stays below the share; a passage told twice does not.
    """
    known = set().union(*(ngrams(unit.source) for unit in train))
    found = []
    for unit in held_out:
        own = ngrams(unit.source)
        found.append(len(own & known) > share * len(own))
    return found

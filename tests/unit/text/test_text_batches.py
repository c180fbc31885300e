"""Batches hold every sentence, stay within their size, and mark begin and end; pieces are spelt into words."""

from __future__ import annotations

from itertools import islice

from restudy.methods.text import Language
from restudy.methods.text.batches import batched, padded
from restudy.methods.text.grammar import BOS, EOS, Sentence
from restudy.methods.text.spelling import spelt

SENTENCES = list(islice(Language(3).sentences(200, 4), 200))


def test_batches_hold_every_sentence_and_stay_within_their_size() -> None:
    batches = batched(SENTENCES, 500)
    assert all(len(s) * (s.shape[1] + t.shape[1]) <= 500 for s, t in batches)
    written = [tuple(t for t in row if t not in (0, EOS)) for s, _ in batches for row in s.tolist()]
    assert sorted(written) == sorted(s.source for s in SENTENCES)


def test_a_sentence_longer_than_a_batch_has_its_own() -> None:
    assert [len(source) for source, _ in batched(SENTENCES[:5], 1)] == [1] * 5 and batched([], 1) == []


def test_begin_and_end_are_marked() -> None:
    source, target = padded([Sentence((5, 6), (7,), (), ()), Sentence((5,), (8, 9), (), ())])
    assert source.tolist() == [[5, 6, EOS], [5, EOS, 0]]
    assert target.tolist() == [[BOS, 7, EOS, 0], [BOS, 8, 9, EOS]]


def test_words_are_spelt_from_pieces() -> None:
    texts = {3: "<unk>", 4: "ab", 5: "c</w>", 6: "d</w>"}
    assert spelt([1, 4, 5, 6, 4, 2, 0, 9], texts) == ["abc", "d", "ab"]
    assert spelt([4, 3, 5], texts) == ["ab<unk>c"] and spelt([], texts) == []

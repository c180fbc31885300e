"""Word pieces: they spell the words and cover them, are the same in every process, and know what is unknown."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.errors import ConfigError
from restudy.methods.text import pieces
from restudy.methods.text.pieces import NAMES, UNKNOWN, Pieces

pytest.importorskip("tokenizers", reason="needs the optional group text")

TEXT = """in the beginning god created the heaven and the earth . and the earth was without form , and void ;
and darkness was upon the face of the deep . and the spirit of god moved upon the face of the waters . and god said ,
let there be light : and there was light . and god saw the light , that it was good : and god divided the light from
the darkness ."""
SENTENCES = [line.split() for line in TEXT.splitlines()]
LEARNT = Pieces(SENTENCES, 120)
LETTERS = sorted(set(TEXT) - set(" \n"))


def test_the_vocabulary_has_its_size_and_its_named_pieces() -> None:
    assert len(LEARNT) == len(LEARNT.texts) == len(set(LEARNT.texts)) == 120
    assert tuple(LEARNT.texts[:4]) == NAMES


@given(st.lists(st.sampled_from(TEXT.split()), max_size=12))
def test_pieces_spell_the_words_and_cover_them(sentence: list[str]) -> None:
    found = LEARNT.encode(sentence)
    assert LEARNT.decode(found.ids) == sentence and UNKNOWN not in found.ids
    assert [a for a, _ in found.spans] == [0, *(b for _, b in found.spans)][: len(sentence)]
    assert (found.spans[-1][1] if sentence else 0) == len(found.ids)
    for word, (first, last) in zip(sentence, found.spans, strict=True):
        assert first < last and LEARNT.decode(found.ids[first:last]) == [word]


@settings(max_examples=50)
@given(st.lists(st.text(st.sampled_from([*LETTERS, "ñ", "é", "漢"]), min_size=1, max_size=8), max_size=6))
def test_letters_never_seen_are_unknown_and_no_error(sentence: list[str]) -> None:
    found = LEARNT.encode(sentence)
    assert len(found.spans) == len(sentence) and all(b > a for a, b in found.spans)
    assert all(0 <= i < len(LEARNT) for i in found.ids)
    for word, (first, last) in zip(sentence, found.spans, strict=True):
        if {"ñ", "é", "漢"} & set(word):
            assert UNKNOWN in found.ids[first:last]


def test_named_pieces_are_never_read_from_text_nor_written() -> None:
    assert set(LEARNT.encode(["<pad>", "</w>", "</s>"]).ids).isdisjoint({0, 1, 2})
    assert LEARNT.decode([1, *LEARNT.encode(["the", "light"]).ids, 2, 0, 0]) == ["the", "light"]
    assert LEARNT.decode(LEARNT.encode(["the"]).ids[:0]) == []


def test_the_most_frequent_pairs_are_merged_first() -> None:
    counts = Counter({"low": 5, "lower": 2, "newest": 6, "widest": 3})
    learnt = Pieces([[word] for word in counts.elements()], 4 + 10 + 3 + 3)  # named, letters, last letters, merges
    # By hand: e+s occurs 9 times, es+t</w> then 9, and l+o then 7 times.
    assert learnt.texts[-3:] == ["es", "est</w>", "lo"]
    assert learnt.decode(learnt.word("lowest")) == ["lowest"]


def test_another_process_learns_the_same() -> None:
    script = (
        "import sys, hashlib; from restudy.methods.text.pieces import Pieces;"
        "print(hashlib.sha256(repr(Pieces([sys.stdin.read().split()], 120).texts).encode()).hexdigest())"
    )
    command = [sys.executable, "-c", script]
    found = {subprocess.run(command, input=TEXT, capture_output=True, text=True, check=True).stdout for _ in range(3)}
    assert len(found) == 1


def test_a_vocabulary_smaller_than_the_alphabet_is_refused() -> None:
    with pytest.raises(ConfigError, match="20 pieces cannot hold the characters; set vocabulary to [0-9]+ or more"):
        Pieces(SENTENCES, 20)


def test_without_tokenizers_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ConfigError, match="optional group `text` is not installed.*make setup text"):
        pieces.Pieces(SENTENCES, 120)

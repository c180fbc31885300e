"""Cutting verses into clauses, holding out by chapter, and recognising what training has told already."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restudy.methods.text.clauses import (
    CLOSERS,
    ENDS,
    Unit,
    clauses,
    drawn,
    fraction,
    held_out_chapter,
    ngrams,
    repeated,
    similar,
    split,
    units,
    words,
)

TOKENS = st.lists(
    st.sampled_from(["and", "he", "said", ",", ";", ":", ".", "?", "!", ")", '"', "'s", "go"]), max_size=30
)


def unit(text: str, chapter: int = 1, number: int = 0) -> Unit:
    return Unit("Genesis", chapter, 1, number, words(text), ("y",))


def test_words_keep_hyphens_and_set_points_and_genitives_apart() -> None:
    assert words("And Abram’s wife went to Beer-sheba; (the 2nd) “well?”") == (
        *("And", "Abram", "'s", "wife", "went", "to", "Beer-sheba", ";", "(", "the", "2", "nd", ")"),
        *("“", "well", "?", "”"),
    )
    assert words("Jesus’ sake. ¡OH Jehová, así fué!") == (
        *("Jesus", "'", "sake", ".", "¡", "OH", "Jehová", ",", "así", "fué", "!"),
    )


@given(st.text(max_size=80))
def test_words_lose_nothing_but_spaces_and_underscores(text: str) -> None:
    assert "".join(words(text)) == "".join(c for c in text.replace("’", "'") if not c.isspace() and c != "_")


@given(TOKENS)
def test_joined_the_clauses_are_the_sentence(sentence: list[str]) -> None:
    found = clauses(sentence)
    assert [word for clause in found for word in clause] == sentence
    assert all(found) and all(clause[-1] in ENDS | CLOSERS for clause in found[:-1])
    # An end that is followed by another word closes its clause: none stands inside one.
    for clause in found:
        inside = [i for i, word in enumerate(clause) if word in ENDS]
        assert all(set(clause[i:]) <= ENDS | CLOSERS for i in inside[:1])


def test_clauses_end_behind_closing_marks() -> None:
    found = clauses(words("(And he said, Go!) Then he went; and died."))
    assert [" ".join(c) for c in found] == ["( And he said , Go ! )", "Then he went ;", "and died ."]


@given(TOKENS, TOKENS)
def test_a_split_pair_gives_both_sides_back_and_its_parts_are_alike(source: list[str], target: list[str]) -> None:
    pairs = split(source, target)
    assert [word for pair in pairs for word in pair[0]] == source
    assert [word for pair in pairs for word in pair[1]] == target
    assert len(pairs) == 1 or all(similar(*pair) for pair in pairs)


def test_a_pair_stays_whole_where_the_clauses_do_not_match() -> None:
    assert len(split(words("He went; he came."), words("Fué; vino."))) == 2
    assert len(split(words("He went; he came."), words("Fué y vino."))) == 1
    assert len(split(words("He went out of the city; he came."), words("Fué; vino él."))) == 1


def test_units_pair_the_verses_that_both_have() -> None:
    found = list(units({("A", 1, 1): "He went; he came.", ("A", 1, 2): "Lost."}, {("A", 1, 1): "Fué; vino."}))
    assert [(u.reference, u.number, " ".join(u.source), " ".join(u.target)) for u in found] == [
        (("A", 1, 1), 0, "He went ;", "Fué ;"),
        (("A", 1, 1), 1, "he came .", "vino ."),
    ]


def test_draws_depend_on_the_key_alone_and_are_even() -> None:
    assert fraction("chapter", "Genesis", 1) == pytest.approx(0.3572, abs=1e-4)  # the same on every machine
    chosen = [held_out_chapter("Psalms", chapter, 0.3) for chapter in range(4000)]
    assert abs(sum(chosen) / 4000 - 0.3) < 4 * (0.21 / 4000) ** 0.5
    # A larger share holds out what a smaller one does.
    assert all(held_out_chapter("Psalms", c, 0.5) for c, held in enumerate(chosen) if held)


def test_the_order_of_units_is_not_that_of_the_text() -> None:
    text = [unit("a", chapter) for chapter in range(50)]
    assert drawn(text) == drawn(reversed(text)) != text and sorted(map(id, drawn(text))) == sorted(map(id, text))


def test_told_twice_is_recognised_and_a_formula_is_not() -> None:
    train = [
        unit("And it came to pass after these things, that the word of the Lord came unto Abram in a vision;"),
        unit("And the Lord said;"),
    ]
    held_out = [
        unit("and it came to pass after these things, that the word of the LORD came unto Abram in a dream;"),
        unit("And it came to pass in those days, that Moses went out to his brethren, and saw their burdens:"),
        unit("and the lord said;"),
        unit("And the king said;"),
        unit("Go up."),
    ]
    assert repeated(held_out, train, 0.3) == [True, False, True, False, False]


def test_a_share_of_one_keeps_all_and_of_zero_drops_any_overlap() -> None:
    train, other = [unit("a b c d e f g")], [unit("a b c d e x y z"), unit("b c d e f g"), unit("q b c d e")]
    assert repeated(other, train, 1.0) == [False, False, False]
    assert repeated(other, train, 0.0) == [True, True, False]
    assert repeated(other, [], 0.0) == [False, False, False]


@given(TOKENS)
def test_ngrams_are_the_windows_of_lower_case(sentence: list[str]) -> None:
    found = ngrams([word.upper() for word in sentence], 3)
    if len(sentence) >= 3:
        assert found == set(zip(sentence, sentence[1:], sentence[2:], strict=False))
    else:
        assert found == {tuple(sentence)}

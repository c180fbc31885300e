"""Looks at the rarest tokens, against counting by hand."""

from __future__ import annotations

import pytest
import torch

from restudy.methods.heads import encoder_attention
from restudy.methods.text.batches import padded
from restudy.methods.text.grammar import Sentence
from restudy.methods.transformer import Shape, Transformer
from restudy.studies.head_pruning import measure


def test_ranks_fall_with_counts_and_ties_go_to_the_smaller_token() -> None:
    assert measure.ranks([0, 5, 9, 5]).tolist() == [3, 1, 0, 2]


def test_rows_equal_a_loop_over_queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "COMMON", 12)
    torch.manual_seed(0)
    model = Transformer(Shape(20, 20, 16, 4, 16, 2, 1, max_distance=3)).eval()
    sentences = [
        Sentence(tuple(torch.randint(3, 20, (length,)).tolist()), (5,), (), ()) for length in (3, 7, 5, 9, 4, 6)
    ]
    sentences.append(Sentence((3, 4, 3), (5,), (), ()))  # only frequent tokens: does not count
    counts = [0, 0, 0] + [100 - token for token in range(17)]
    rows = {
        (r["layer"], r["head"], r["within"]): r
        for r in measure.rare_rows(0, model, sentences, counts)
        if r["frequencies"] == "counted"
    }
    hits: dict[tuple[int, int, int], int] = dict.fromkeys(rows, 0)
    queries, expected = 0, {1: 0.0, 2: 0.0}
    for sentence in sentences:
        if max(sentence.source) < 3 + 12:
            continue
        types = sorted(set(sentence.source), reverse=True)  # token 19 is the rarest
        length = len(sentence.source)
        queries += length
        for within in (1, 2):
            chosen = [token in types[:within] for token in sentence.source]
            expected[within] += sum(chosen)
            for layer, weights in enumerate(encoder_attention(model, padded([sentence])[0]).weights):
                for head in range(4):
                    best = weights[0, head, :length, :length].argmax(1).tolist()
                    hits[layer, head, within] += sum(chosen[key] for key in best)
    assert {key: row["hits"] for key, row in rows.items()} == hits
    assert {(r["count"], r["expected"]) for (_, _, w), r in rows.items() if w == 2} == {(queries, expected[2])}


def test_permuted_frequencies_move_the_rarest_token() -> None:
    torch.manual_seed(0)
    model = Transformer(Shape(900, 20, 16, 4, 16, 2, 1)).eval()
    sentences = [Sentence(tuple(range(start, start + 8)), (5,), (), ()) for start in range(3, 880, 9)]
    rows = list(measure.rare_rows(0, model, sentences, [900 - token for token in range(900)]))
    found = {name: [r["hits"] for r in rows if r["frequencies"] == name] for name in ("counted", "permuted")}
    assert found["counted"] != found["permuted"]

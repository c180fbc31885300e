"""Confidence, offsets, word scores, ablation and gradients on cases that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from restudy.methods.heads import (
    ablation,
    confidence,
    cross_entropy,
    encoder_attention,
    entropy,
    gradient_importance,
    offset_hits,
    rare_hits,
    sentence_losses,
    word_scores,
)
from restudy.methods.transformer import Shape, Transformer, remove_heads

torch.set_num_threads(1)
# One sentence of three tokens and EOS, one head; one of two tokens, EOS and padding.
WEIGHTS = torch.tensor(
    [
        [[[0.1, 0.6, 0.1, 0.2], [0.1, 0.1, 0.5, 0.3], [0.0, 0.2, 0.1, 0.7], [0.25, 0.25, 0.25, 0.25]]],
        [[[0.3, 0.4, 0.3, 0.0], [0.2, 0.1, 0.7, 0.0], [0.1, 0.1, 0.8, 0.0], [0.3, 0.3, 0.4, 0.0]]],
    ]
)
LENGTHS = torch.tensor([3, 2])


def test_confidence_leaves_eos_out_and_does_not_renormalise() -> None:
    total, queries = confidence(WEIGHTS, LENGTHS)
    assert queries == 5
    assert total[0] == pytest.approx(0.6 + 0.5 + 0.2 + 0.4 + 0.2)


def test_entropy_is_relative_to_uniform_weights() -> None:
    uniform = torch.full((1, 1, 4, 4), 0.25)
    total, queries = entropy(uniform, torch.tensor([3]))
    assert queries == 3 and total[0] == pytest.approx(3.0)


def test_looks_at_the_rarest_tokens() -> None:
    ranks = torch.tensor([[4, 9, 9, -1], [2, 1, -1, -1]])  # EOS and padding hold nothing
    hits, places = rare_hits(WEIGHTS, ranks, 1)
    assert hits[:, 0].tolist() == [3, 1] and places.tolist() == [2, 1], "a token that stands twice counts twice"
    hits, places = rare_hits(WEIGHTS, ranks, 2)
    assert hits[:, 0].tolist() == [3, 2] and places.tolist() == [3, 2]


def test_offsets_count_queries_for_which_they_fit() -> None:
    hits, fits = offset_hits(WEIGHTS, LENGTHS, 1)
    assert hits[:, 0].tolist() == [2, 1] and fits.tolist() == [2, 1]
    hits, fits = offset_hits(WEIGHTS, LENGTHS, -1)
    assert hits[:, 0].tolist() == [1, 1] and fits.tolist() == [2, 1]


def test_words_sum_what_is_looked_at_and_average_what_looks() -> None:
    scores = word_scores(WEIGHTS[0].double().numpy(), ((0, 2), (2, 3)))
    np.testing.assert_allclose(scores[0], [[(0.7 + 0.2) / 2, (0.1 + 0.5) / 2], [0.2, 0.1]], atol=1e-6)


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(Shape(12, 13, 16, 2, 16, 2, 1, max_distance=2)).eval()


def pairs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(3, 12, shape, generator=generator) for shape in ((5, 6), (5, 7)))
    target[:, 0] = 1
    target[2, 4:] = 0
    return [(source[:3], target[:3]), (source[3:], target[3:])]


def test_losses_leave_padding_out(model: Transformer) -> None:
    sums, counts = sentence_losses(model, pairs())
    assert counts.tolist() == [6, 6, 3, 6, 6]
    source, target = pairs()[0]
    logits = torch.log_softmax(model(source[2:3], target[2:3, :3]), 2)[0]
    assert float(sums[2]) == pytest.approx(-float(logits.gather(1, target[2, 1:4, None]).sum().detach()), rel=1e-5)
    assert cross_entropy(model, pairs()) == pytest.approx(float(sums.sum() / counts.sum()))


def test_ablation_is_the_loss_without_the_head(model: Transformer) -> None:
    found = ablation(model, pairs())
    keep = torch.ones(2, 2, dtype=torch.bool)
    keep[1, 0] = False
    without = cross_entropy(remove_heads(model, {"encoder": keep}), pairs())
    assert float(found[1, 0]) == pytest.approx(without - cross_entropy(model, pairs()), abs=1e-6)


def test_gradients_are_slopes_of_the_loss(model: Transformer) -> None:
    model.double()
    batch = pairs()[:1]
    found = gradient_importance(model, batch)
    gates = {"encoder": torch.ones(2, 2, dtype=torch.float64)}
    losses = []
    for step in (-1e-4, 1e-4):
        gates["encoder"][0, 1] = 1 + step
        losses.append(cross_entropy(model, batch, gates))
    assert float(found[0, 1]) == pytest.approx(abs(losses[1] - losses[0]) / 2e-4, rel=1e-4)


def test_observed_weights_are_those_of_the_forward_pass(model: Transformer) -> None:
    source = pairs()[0][0]
    gates = {"encoder": torch.tensor([[1.0, 0.0], [0.5, 1.0]])}
    seen = encoder_attention(model, source, gates)
    hidden = model.encoder_layers[0](model.embed(model.source_embedding, source), None, gates["encoder"][0])
    layer = model.encoder_layers[1]
    q, k, v = layer.attention.project(slice(0, 3), layer.norm1(hidden))
    torch.testing.assert_close(seen.weights[1], layer.attention.weights(q, k, layer.attention.position_bias(6, 6)))
    written = torch.einsum("bhsc,ohc->bhso", v, layer.attention.out_weight).norm(dim=3)
    torch.testing.assert_close(seen.norms[1], written.detach(), atol=1e-5, rtol=1e-4)

"""How well a model translates held-out sentences, and how sure its encoder heads are."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from restudy.methods.heads import confidence, encoder_attention
from restudy.methods.text import corpus_bleu
from restudy.methods.text.grammar import BOS, EOS
from restudy.methods.transformer import Transformer, greedy
from restudy.studies.head_pruning.corpus import Corpus, Pair

LONGEST = 40
"""Most tokens of a translation; the longest reference of either track has fewer."""


def translation_quality(
    model: Transformer, data: Corpus, pairs: list[Pair], gates: Mapping[str, Tensor] | None = None
) -> dict[str, tuple[float, str]]:
    """Metric -> value and unit: `bleu` (0 to 100, greedy) and `sentence_accuracy`, over all held-out sentences."""
    tokens = [
        row for source, _ in pairs for row in greedy(model, source, bos=BOS, eos=EOS, longest=LONGEST, gates=gates)
    ]
    found, wanted = [data.spell(row) for row in tokens], [data.spell(sentence.target) for sentence in data.held_out]
    right = sum(a == b for a, b in zip(found, wanted, strict=True)) / len(wanted)
    return {"bleu": (corpus_bleu(found, wanted), "BLEU"), "sentence_accuracy": (right, "1")}


def shuffled_bleu(data: Corpus) -> float:
    """BLEU of the references against those of other sentences: what knowing the language alone gives."""
    wanted = [data.spell(sentence.target) for sentence in data.held_out]
    return corpus_bleu([*wanted[1:], wanted[0]], wanted)


def mean_confidence(model: Transformer, pairs: list[Pair]) -> Tensor:
    """Confidence of the encoder heads, (layers, H): mean over tokens of the largest weight, EOS left out."""
    total, queries = torch.zeros(0), 0
    for source, _ in pairs:
        lengths = (source != model.shape.padding).sum(1) - 1
        found = [confidence(weights, lengths) for weights in encoder_attention(model, source).weights]
        sums = torch.stack([torch.from_numpy(values) for values, _ in found])
        total = sums if not queries else total + sums
        queries += found[0][1]
    return total / queries

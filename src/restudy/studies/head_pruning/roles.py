"""Counts of what the heads look at: relative positions and grammatical relations, in two halves of the sentences.

A head is chosen on one half and scored on the other, so that the best of many heads is not flattered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restudy.methods.heads import encoder_attention, entropy, offset_hits, word_scores
from restudy.methods.models import derive_seed
from restudy.methods.text import RELATIONS, Sentence
from restudy.methods.transformer import Transformer
from restudy.studies.head_pruning.corpus import EVALUATION_BATCH, Pair, padded

Row = dict[str, Any]
OFFSETS = range(-5, 6)
TREES = ("given", "permuted")
DIRECTIONS = ("to_dependent", "to_head")


def mean_entropy(model: Transformer, pairs: list[Pair]) -> Tensor:
    """Entropy of the encoder heads' weights over its largest value, mean over tokens, (layers, H)."""
    total, queries = torch.zeros(1), 0
    for source, _ in pairs:
        lengths = (source != model.shape.padding).sum(1) - 1
        found = [entropy(weights, lengths) for weights in encoder_attention(model, source).weights]
        total = total + torch.stack([torch.from_numpy(values) for values, _ in found])
        queries += found[0][1]
    return total / queries


def position_rows(
    seed: int, arm: str, model: Transformer, sentences: Sequence[Sentence], gates: Mapping[str, Tensor] | None = None
) -> list[Row]:
    """How often each head's largest score stands at each offset; by weights, and by weights times contributions."""
    sums: dict[tuple[str, int, int, int], Any] = {}
    counts: Counter[tuple[int, int]] = Counter()
    for source, half in _sources(model, sentences):
        lengths = (source != model.shape.padding).sum(1) - 1
        seen = encoder_attention(model, source, gates)
        for layer, (weights, norms) in enumerate(zip(seen.weights, seen.norms, strict=True)):
            for weighting, scores in (("weight", weights), ("norm", weights * norms.unsqueeze(2))):
                for offset in OFFSETS:
                    hits, fits = offset_hits(scores, lengths, offset)
                    key = (weighting, layer, half, offset)
                    sums[key] = sums.get(key, 0.0) + hits.sum(0)
                    if layer == 0 and weighting == "weight":
                        counts[half, offset] += fits.sum()
    return [
        {"seed": seed, "arm": arm, "weighting": weighting, "layer": layer, "head": head, "half": half}
        | {"offset": offset, "hits": float(hits), "count": float(counts[half, offset])}
        for (weighting, layer, half, offset), values in sums.items()
        for head, hits in enumerate(values)
    ]


def relation_rows(
    seed: int, arm: str, model: Transformer, sentences: Sequence[Sentence], gates: Mapping[str, Tensor] | None = None
) -> list[Row]:
    """How often each head's largest word score stands on the word in a relation, in given and in permuted trees."""
    hits: dict[tuple[str, str, str, int, int], Any] = {}
    counts: Counter[tuple[str, str, str, int]] = Counter()
    permuted = permutations(seed, sentences)
    for start in range(0, len(sentences), EVALUATION_BATCH):
        chosen = sentences[start : start + EVALUATION_BATCH]
        source = padded(chosen)[0].to(model.target_embedding.weight.device)
        weights = [w.double().cpu().numpy() for w in encoder_attention(model, source, gates).weights]
        for row, sentence in enumerate(chosen):
            half = (start + row) % 2
            own = permuted[start + row]
            for layer, values in enumerate(weights):
                best = word_scores(values[row], sentence.words).argmax(2)  # (H, W)
                for trees, names in (("given", range(len(own))), ("permuted", own)):
                    for relation, head, dependent in sentence.relations:
                        for direction, a, b in _ends(names[head], names[dependent]):
                            key = (trees, RELATIONS[relation], direction, half)
                            hits[(*key, layer)] = hits.get((*key, layer), 0.0) + (best[:, a] == b)
                            counts[key] += layer == 0
    return [
        {"seed": seed, "arm": arm, "trees": trees, "relation": relation, "direction": direction, "layer": layer}
        | {"head": head, "half": half, "hits": float(hit), "count": float(counts[trees, relation, direction, half])}
        for (trees, relation, direction, half, layer), values in hits.items()
        for head, hit in enumerate(values)
    ]


def relation_baselines(seed: int, sentences: Sequence[Sentence]) -> list[Row]:
    """How often the related word stands at each offset in words, by half."""
    hits: Counter[tuple[str, str, str, int, int]] = Counter()
    counts: Counter[tuple[str, str, str, int]] = Counter()
    permuted = permutations(seed, sentences)
    for number, sentence in enumerate(sentences):
        for trees, names in (("given", range(len(sentence.words))), ("permuted", permuted[number])):
            for relation, head, dependent in sentence.relations:
                for direction, a, b in _ends(names[head], names[dependent]):
                    key = (trees, RELATIONS[relation], direction, number % 2)
                    hits[(*key, b - a)] += 1
                    counts[key] += 1
    return [
        {"seed": seed, "trees": trees, "relation": relation, "direction": direction, "half": half, "offset": offset}
        | {"hits": float(hit), "count": float(counts[trees, relation, direction, half])}
        for (trees, relation, direction, half, offset), hit in sorted(hits.items())
    ]


def permutations(seed: int, sentences: Sequence[Sentence]) -> list[list[int]]:
    """For each sentence an order of its words: trees over permuted words are the control."""
    generator = np.random.default_rng(derive_seed(seed, "permuted trees"))
    return [generator.permutation(len(sentence.words)).tolist() for sentence in sentences]


def _ends(head: int, dependent: int) -> tuple[tuple[str, int, int], tuple[str, int, int]]:
    return (DIRECTIONS[0], head, dependent), (DIRECTIONS[1], dependent, head)


def _sources(model: Transformer, sentences: Sequence[Sentence]) -> list[tuple[Tensor, int]]:
    """Batches of source tokens with their half: even sentences are half 0."""
    device = model.target_embedding.weight.device
    found = []
    for half in (0, 1):
        own = sentences[half::2]
        for start in range(0, len(own), EVALUATION_BATCH):
            found.append((padded(own[start : start + EVALUATION_BATCH])[0].to(device), half))
    return found

"""Corpus BLEU of token sequences (Papineni and others 2002), without any tokenisation or smoothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

ORDER = 4
Array = npt.NDArray[np.float64]


def bleu_statistics(hypothesis: Sequence[Hashable], reference: Sequence[Hashable]) -> Array:
    """What one sentence adds to corpus BLEU, float64 (10,).

    Clipped n-gram matches for n = 1..4, n-grams of the hypothesis for n = 1..4, both lengths.
    """
    matches, totals = [], []
    for n in range(1, ORDER + 1):
        found, wanted = _ngrams(hypothesis, n), _ngrams(reference, n)
        matches.append(sum(min(count, wanted[gram]) for gram, count in found.items()))
        totals.append(max(len(hypothesis) - n + 1, 0))
    return np.array([*matches, *totals, len(hypothesis), len(reference)], dtype=np.float64)


def score(statistics: Array) -> float:
    """BLEU in 0..100 from summed statistics (10,); 0 where an order has no match."""
    matches, totals = statistics[:ORDER], statistics[ORDER : 2 * ORDER]
    if not (matches > 0).all():
        return 0.0
    hypothesis, reference = statistics[-2:]
    brevity = min(0.0, 1.0 - reference / hypothesis)
    return float(100.0 * np.exp(np.log(matches / totals).mean() + brevity))


def corpus_bleu(hypotheses: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]]) -> float:
    """BLEU in 0..100 of a corpus with one reference each: sacreBLEU's value with `tokenize="none"`, no smoothing.

    Raises:
        ValueError: another number of references than of hypotheses, or none.
    """
    if len(hypotheses) != len(references) or not references:
        raise ValueError(f"{len(hypotheses)} hypotheses and {len(references)} references; one each is needed")
    pairs = zip(hypotheses, references, strict=True)
    return score(np.sum([bleu_statistics(h, r) for h, r in pairs], axis=0))


def _ngrams(tokens: Sequence[Hashable], n: int) -> Counter[tuple[Hashable, ...]]:
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))

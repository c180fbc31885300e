"""The verdict on a paper, from the verdicts on its primary statistical claims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from .verdict import Verdict
from .words import (
    ERROR,
    INCOMPLETE,
    INCONCLUSIVE,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    PARTIALLY,
    REPRODUCED,
    VERDICTS,
)


@dataclass(frozen=True, slots=True)
class PaperVerdict:
    """The word for the whole paper, always with the counts it rests on."""

    verdict: str
    counts: tuple[tuple[str, int], ...]
    total: int

    @property
    def text(self) -> str:
        """``partially: 2 of 4 reproduced, 1 not reproduced, 1 inconclusive``."""
        if not self.total:
            return f"{self.verdict}: no primary claim judged at this preset"
        rest = [f"{n} {word}" for word, n in self.counts if word != REPRODUCED]
        hold = dict(self.counts).get(REPRODUCED, 0)
        return f"{self.verdict}: " + ", ".join([f"{hold} of {self.total} reproduced", *rest])


def paper_verdict(primary: Sequence[Verdict]) -> PaperVerdict:
    """The paper's verdict over its primary statistical claims judged at the preset.

    An error makes it ``incomplete`` whatever else holds, since it can be mended.
    """
    words = [verdict.verdict for verdict in primary if verdict.verdict != NOT_TESTABLE]
    count = Counter(words)
    counts = tuple((word, count[word]) for word in VERDICTS if count[word])
    return PaperVerdict(_word(count, len(words)), counts, len(words))


def _word(count: Counter[str], total: int) -> str:
    if not total:
        return NOT_TESTABLE
    if count[ERROR]:
        return INCOMPLETE
    if count[REPRODUCED] == total:
        return REPRODUCED
    if count[REPRODUCED] or count[PARTIALLY]:
        return PARTIALLY
    return NOT_REPRODUCED if 2 * count[NOT_REPRODUCED] > total else INCONCLUSIVE

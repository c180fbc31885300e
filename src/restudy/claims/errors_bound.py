"""Upper bounds for the expected number of false verdicts among those shown."""

from __future__ import annotations

from collections.abc import Iterable

from .assessment import Assessment
from .verdict import Verdict


def false_verdicts(judged: Iterable[tuple[Verdict, Assessment]]) -> tuple[float, float]:
    """Expected false ``reproduced`` and false ``not reproduced``, at most, whatever the truth is.

    Each statistical claim that reached the comparison errs with probability at most alpha a look in each
    direction (Holm only lowers the first), so the bounds are sums of alpha times the looks it had. A claim of
    parts may be refuted by a majority of parts, each at alpha: at most 2 alpha. Claims that an earlier rule
    decided add nothing.
    """
    reproduced = not_reproduced = 0.0
    for verdict, a in judged:
        if not a.statistical or a.stopped:
            continue
        risk = verdict.alpha * verdict.look
        reproduced += risk
        not_reproduced += risk * (2 if a.parts else 1)
    return reproduced, not_reproduced

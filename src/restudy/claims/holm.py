"""Holm's step-down adjustment within the family of a paper's primary statistical claims (Holm 1979)."""

from __future__ import annotations

from collections.abc import Sequence

from .assessment import Assessment


def adjust(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p values, in the given order (statsmodels' ``multipletests``)."""
    if len(p_values) < 2:
        return [float(p) for p in p_values]
    from statsmodels.stats.multitest import multipletests

    return [float(p) for p in multipletests(list(p_values), method="holm")[1]]


def entry(a: Assessment) -> float:
    """The p value with which a member enters: 1 where an earlier rule decides (gate, failure, n < 5, error).

    A control's p value never enters; a claim whose own control shows the effect enters with 1.
    """
    if a.stopped or a.p is None or a.control in ("reproduced", "partially"):
        return 1.0
    return a.p

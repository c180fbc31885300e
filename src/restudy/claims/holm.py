"""Holm's step-down adjustment within the family of a paper's primary statistical claims (Holm 1979)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .assessment import Assessment


def adjust(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p values, in the given order.

    The step-down rule itself, since statsmodels' ``multipletests`` collects garbage in every call (a tenth of
    a second) and takes seconds to import; the tests hold the two together to 1e-10.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return [float(one) for one in adjusted]


def entry(a: Assessment) -> float:
    """The p value with which a member enters: 1 where an earlier rule decides (gate, failure, n < 5, error).

    A control's p value never enters; a claim whose own control shows the effect enters with 1.
    """
    if a.stopped or a.p is None or a.control in ("reproduced", "partially"):
        return 1.0
    return a.p

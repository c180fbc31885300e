"""How many replicates a claim needs."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from . import ttest
from .words import ALPHA, MIN_REPLICATES

LARGEST = 10_000


@lru_cache(maxsize=8)
def _widths(alpha: float) -> npt.NDArray[np.float64]:
    """t(1 - alpha, n - 1) / sqrt(n) for n = 5, 6, ..., 10,000: the half-width in units of the s.d."""
    n = np.arange(MIN_REPLICATES, LARGEST + 1)
    return np.asarray(ttest.quantile(1 - alpha, n - 1) / np.sqrt(n), dtype=np.float64)


def seeds_needed(sd: float, half_width: float, alpha: float = ALPHA, *, paper_variance: float = 0.0,
                 one_draw: bool = False) -> int | None:  # fmt: skip
    """Smallest n >= 5 whose one-sided interval has a half-width of at most ``half_width`` (metric's unit).

    ``half_width`` is S/2 by the scheme. ``paper_variance`` is the variance of the paper's own mean,
    ``one_draw`` adds one draw's. None where 10,000 replicates would not do.
    """
    if not (math.isfinite(sd) and half_width > 0):
        return None
    n = np.arange(MIN_REPLICATES, LARGEST + 1)
    widths = _widths(alpha) * sd
    if one_draw:
        widths = widths * np.sqrt(n + 1.0)
    elif paper_variance:
        widths = _widths(alpha) * np.sqrt(sd**2 + n * paper_variance)
    enough = np.flatnonzero(widths <= half_width * (1 + 1e-12))
    return int(n[enough[0]]) if len(enough) else None

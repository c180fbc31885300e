"""The simple noise scale tr(Sigma) / |G|^2 from squared gradient norms at two batch sizes. numpy only.

McCandlish et al. 2018, appendix A.1: E|g_B|^2 = |G|^2 + tr(Sigma) / B for a mean gradient of B independent examples, so
two batch sizes give unbiased estimates of both; they are averaged separately and divided at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from restudy.errors import ConfigError

Numbers = Sequence[float] | npt.NDArray[np.float64]


@dataclass(frozen=True)
class NoiseScale:
    """Averages over all pairs: `squared_gradient` |G|^2, `trace` tr(Sigma); `simple` is their ratio, in examples."""

    squared_gradient: float
    trace: float

    @property
    def simple(self) -> float:
        """B_simple; NaN where the estimate of |G|^2 is not positive."""
        return self.trace / self.squared_gradient if self.squared_gradient > 0 else math.nan


def noise_scale(small: Numbers, big: Numbers, *, small_batch: int, big_batch: int) -> NoiseScale:
    """Estimate the noise scale from pairs of squared norms of mean gradients.

    Args:
        small, big: |g|^2 (n,) at `small_batch` and `big_batch` examples; a mean over several small batches is fine,
            and they may be parts of the big one.

    Raises:
        ConfigError: lengths that differ, no pair, batch sizes that are not 0 < small < big.
    """
    low, high = np.asarray(small, dtype=np.float64), np.asarray(big, dtype=np.float64)
    if low.shape != high.shape or not low.size:
        raise ConfigError(f"{low.size} small and {high.size} big norms", remedy="give pairs, at least one")
    if not 0 < small_batch < big_batch:
        raise ConfigError(f"batch sizes {small_batch} and {big_batch}", remedy="give 0 < small_batch < big_batch")
    squared = (big_batch * high - small_batch * low) / (big_batch - small_batch)
    trace = (low - high) / (1 / small_batch - 1 / big_batch)
    return NoiseScale(float(squared.mean()), float(trace.mean()))

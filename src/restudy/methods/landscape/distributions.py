"""Distributions of activations, stored small: histograms, moments, and distances between two of them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Histogram:
    """Counts of values in equal bins from low to high, all values inside; `spread` is their standard deviation."""

    low: float
    high: float
    counts: tuple[int, ...]
    mean: float
    spread: float


def units_first(values: Tensor) -> Tensor:
    """View activations (N, C) or (N, C, ...) as (C, samples): height and width count as batch."""
    return values.transpose(0, 1).flatten(1)


def histogram(values: Tensor, bins: int = 48) -> Histogram:
    """Return the histogram of all values, any shape, between their least and their greatest; only finite ones count."""
    flat = values.detach().double().flatten()
    flat = flat[flat.isfinite()]
    if not len(flat):
        return Histogram(math.nan, math.nan, (0,) * bins, math.nan, math.nan)
    low, high = float(flat.min()), float(flat.max())
    if high > low:
        counts = torch.histc(flat, bins, low, high)
    else:
        counts = torch.tensor([float(len(flat)), *[0.0] * (bins - 1)])
    return Histogram(low, high, tuple(int(c) for c in counts), float(flat.mean()), float(flat.std(unbiased=False)))


def moments(values: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and variance of each unit, two tensors (C,) in float64, of activations (N, C, ...)."""
    units = units_first(values.detach()).double()
    return units.mean(1), units.var(1, unbiased=False)


def step_change(before: tuple[Tensor, Tensor], after: tuple[Tensor, Tensor]) -> tuple[float, float]:
    """Return how far means and variances moved, averaged over units, in units of the layer's standard deviation.

    |mu' - mu| / sd and |var' - var| / sd^2, where sd^2 is the mean variance of the units before (NaN where it is 0).
    """
    variance = float(before[1].mean())
    if not variance > 0:
        return math.nan, math.nan
    mean = float((after[0] - before[0]).abs().mean()) / math.sqrt(variance)
    return mean, float((after[1] - before[1]).abs().mean()) / variance


def wasserstein(before: Tensor, after: Tensor) -> float:
    """Return the Wasserstein-1 distance between a unit's two distributions over its pooled sd, mean over units.

    Args:
        before, after: (C, samples), the same number of samples: the distance is then the mean difference of the
            sorted values. Pooled: sd of both samples together. Units that do not vary at all are left out; NaN if
            none varies.
    """
    one, two = before.double().sort(1).values, after.double().sort(1).values
    pooled = torch.cat([one, two], 1).std(1, unbiased=False)
    distance = (one - two).abs().mean(1)
    moving = pooled > 0
    return float((distance[moving] / pooled[moving]).mean()) if bool(moving.any()) else math.nan

"""Names and looks of arms in figures, and means over seeds with their t intervals. No torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from restudy.plotting.style import series
from restudy.studies.importance_weighting.tidy import BySeed

OBJECTIVES = {"vae": "VAE", "iwae": "IWAE", "stl": "STL", "dreg": "DReG"}
LOOKS = series(list(OBJECTIVES))


def arm_label(name: str) -> str:
    """`iwae_k10_fixed` as `IWAE k=10, fixed`."""
    objective, k, *rest = name.split("_")
    return ", ".join([f"{OBJECTIVES[objective]} {k.replace('k', 'k=')}", *([" ".join(rest)] if rest else [])])


def mean_and_half(values: BySeed) -> tuple[float, float]:
    """Mean over seeds and half of its 95% t interval (0 for one seed)."""
    numbers = np.array(list(values.values()))
    n = len(numbers)
    half = stats.t.ppf(0.975, n - 1) * numbers.std(ddof=1) / np.sqrt(n) if n > 1 else 0.0
    return float(numbers.mean()), float(half)


def points(axis: Any, x: float, values: BySeed, look: dict[str, Any], label: str | None = None) -> None:
    """Seeds as dots and the mean with its interval as an error bar."""
    mean, half = mean_and_half(values)
    axis.plot([x] * len(values), list(values.values()), ".", color=look["color"], alpha=0.4, markersize=4)
    axis.errorbar([x], [mean], [half], color=look["color"], marker=look["marker"], label=label, capsize=3)

"""Names in figures, and means over seeds with their t intervals. No torch."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats

from restudy.plotting.style import series

INFILLERS = {
    "zeros": "zeros",
    "mean": "grey",
    "blur": "blur",
    "noise": "noise",
    "local": "local mean",
    "vae": "VAE",
    "gan": "GAN",
    "judge": "regression",
    "ground": "true ground",
}
METHODS = {
    "sdr": "FIDO SDR",
    "ssr": "FIDO SSR",
    "bbmp": "BBMP",
    "joint": "joint",
    "gradient": "gradient",
    "occlusion": "occlusion",
    "random": "random",
}
LOOKS = series(list(INFILLERS))


def arm_name(method: str, infiller: str) -> str:
    """Method and in-filler as they stand in a legend."""
    return ", ".join([METHODS[method], *([INFILLERS[infiller]] if infiller else [])])


def mean_and_half(values: list[float]) -> tuple[float, float]:
    """Mean over seeds and half of its 95% t interval, 0 for a single seed."""
    array: Any = np.asarray(values)
    n = len(array)
    half = float(stats.t.ppf(0.975, n - 1) * array.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0
    return float(array.mean()), half

"""Names in figures, and means with their t intervals. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import stats

from restudy.plotting.style import series

METHOD_NAMES = {
    "sensitivity": "sensitivity",
    "sensitivity_linf": "sensitivity, max",
    "deconvolution": "deconvolution",
    "deconvolution_linf": "deconvolution, max",
    "deconvolution_no_switches": "deconv., no switches",
    "lrp_alpha_beta": "LRP, alpha 2 beta 1",
    "lrp_epsilon": "LRP, epsilon",
    "gradient_x_input": "gradient x input",
    "guided_backprop": "guided backprop",
    "integrated_gradients": "integrated gradients",
    "edges": "edges",
    "noise": "noise",
}
PAIR_NAMES = {"fashion_mnist": "Fashion-MNIST", "mnist5k": "MNIST digits", "garments": "garments on photographs"}
FILL_NAMES = {"uniform": "uniform noise", "mean": "mean", "blur": "blur", "dataset": "other images", "black": "black"}
LOOKS = series(list(METHOD_NAMES))


def present(values: Iterable[str], names: dict[str, str]) -> list[str]:
    """The values that occur, in the order of `names`."""
    found = set(values)
    return [name for name in names if name in found]


def mean_and_half(values: Any) -> tuple[float, float]:
    """Mean and half of the 95% t interval; half 0 for a single value, NaN for none."""
    array = np.asarray(list(values), dtype=float)
    if not len(array):
        return float("nan"), float("nan")
    if len(array) == 1:
        return float(array[0]), 0.0
    half = stats.t.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    return float(array.mean()), float(half)

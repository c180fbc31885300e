"""Names in figures, and means with their t intervals over seeds or photos. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

METHOD_NAMES = {
    "gradient": "gradient",
    "smoothgrad": "SmoothGrad",
    "vargrad": "VarGrad",
    "gradient_x_input": "gradient x input",
    "integrated_gradients": "integrated gradients",
    "smoothgrad_ig": "IG-SmoothGrad",
    "gradcam": "GradCAM",
    "guided_backprop": "guided backprop",
    "guided_gradcam": "guided GradCAM",
    "deconvolution": "deconvolution",
}
METRIC_NAMES = {
    "spearman": "rank, signed",
    "spearman_abs": "rank, absolute",
    "ssim": "SSIM",
    "hog": "HOG",
}
PAIR_NAMES = {
    "cnn-fashion_mnist": "CNN, Fashion-MNIST",
    "mlp-mnist5k": "MLP, MNIST digits",
    "cnn_paper_init-fashion_mnist": "CNN, paper's initial weights",
}


def pairs_of(table: pa.Table) -> list[str]:
    """The pairs of a table in the order of `PAIR_NAMES`."""
    present = set(table["pair"].to_pylist())
    return [pair for pair in PAIR_NAMES if pair in present]


def mean_and_half_width(values: Mapping[Any, float]) -> tuple[float, float]:
    """Mean over replicates and half of its 95% t interval; NaN where one is undefined, half 0 for a single one."""
    array = np.array(list(values.values()))
    if not len(array) or np.isnan(array).any():
        return float("nan"), float("nan")
    if len(array) == 1:
        return float(array[0]), 0.0
    half = stats.t.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    return float(array.mean()), float(half)

"""Structural similarity of many pairs at once (Wang et al. 2004, IEEE TIP 13(4), section III-B)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from restudy.errors import ConfigError
from restudy.methods.similarity.maps import Array, as_images, unit_max

SIGMA = 1.5
RADIUS = 5
"""Half-width in pixels: 3.5 standard deviations, as scikit-image's `gaussian_weights=True` has it."""
_SAMPLES = (2 * RADIUS + 1) ** 2


@dataclass(frozen=True)
class Moments:
    """Images (M, H, W) with their weighted local means and variances, (M, H - 10, W - 10)."""

    images: Array
    mean: Array
    variance: Array


def moments(images: Array) -> Moments:
    """Return the local moments of images (M, H, W); ConfigError for fewer than 11 pixels a side."""
    if min(images.shape[1:]) <= 2 * RADIUS:
        raise ConfigError(
            f"images of {images.shape[1]} x {images.shape[2]} pixels",
            where="ssim",
            remedy=f"at least {2 * RADIUS + 1} pixels a side are needed",
        )
    mean = _smooth(images)
    return Moments(images, mean, _smooth(images * images) - mean * mean)


def ssim(left: Any, right: Any, *, data_range: float = 1.0) -> Array:
    """Return the mean SSIM of pairs of attributions (M, H, W) or (M, 1, H, W), (M,) float64.

    Of each map the absolute value, scaled to a maximum of 1, is compared, so values lie in [0, 1] and
    `data_range` is 1; `data_range=2` gives what older scikit-image computed when no range was named. NaN
    where a map is all zero or not finite. Equals scikit-image's `structural_similarity` with Gaussian
    weights, sigma 1.5.
    """
    return compare_moments(moments(np.abs(unit_max(left))), moments(np.abs(unit_max(right))), data_range=data_range)


def image_ssim(left: Any, right: Any, *, data_range: float) -> Array:
    """Return the mean SSIM of pairs of images (M, H, W) as they are, (M,) float64."""
    return compare_moments(moments(as_images(left)), moments(as_images(right)), data_range=data_range)


def compare_moments(left: Moments, right: Moments, *, data_range: float = 1.0) -> Array:
    """Return the mean SSIM of pairs whose moments are known, (M,) float64."""
    if left.images.shape != right.images.shape:
        raise ConfigError(f"stacks of shape {left.images.shape} and {right.images.shape}", where="ssim")
    if not data_range > 0:
        raise ConfigError(f"data_range is {data_range!r}", where="ssim", remedy="give a number above 0")
    unbiased = _SAMPLES / (_SAMPLES - 1)
    covariance = unbiased * (_smooth(left.images * right.images) - left.mean * right.mean)
    first, second = (0.01 * data_range) ** 2, (0.03 * data_range) ** 2
    numerator = (2 * left.mean * right.mean + first) * (2 * covariance + second)
    denominator = (left.mean**2 + right.mean**2 + first) * (unbiased * (left.variance + right.variance) + second)
    result: Array = (numerator / denominator).mean((1, 2))
    return result


def _smooth(images: Array) -> Array:
    """Apply the Gaussian window where it fits entirely: (M, H, W) to (M, H - 10, W - 10)."""
    result: Array = _band(images.shape[1]) @ images @ _band(images.shape[2]).T
    return result


def _band(size: int) -> Array:
    offsets = np.arange(-RADIUS, RADIUS + 1)
    weights = np.exp(-0.5 * (offsets / SIGMA) ** 2)
    matrix = np.zeros((size - 2 * RADIUS, size))
    for row in range(len(matrix)):
        matrix[row, row : row + 2 * RADIUS + 1] = weights / weights.sum()
    return matrix

"""How complex a heatmap is: bytes of its picture, entropy of its histogram, total variation. numpy only."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from restudy.errors import ConfigError

Array = npt.NDArray[np.float64]
LEVELS = 256


def grey_levels(maps: Any) -> npt.NDArray[np.uint8]:
    """Return maps (N, H, W) as 8-bit pictures: 0 is minus the largest absolute value of the map, 255 plus it.

    A map without any value but 0 becomes uniformly grey. Every method gets the same scale, so a map without negative
    values uses the upper half only.
    """
    array = np.asarray(maps, dtype=np.float64)
    if array.ndim != 3 or not np.isfinite(array).all():
        raise ConfigError(f"maps of shape {array.shape}", where="grey_levels", remedy="give finite maps (N, H, W)")
    top = np.abs(array).max((1, 2), keepdims=True, initial=0.0)
    scaled = np.divide(array, top, out=np.zeros_like(array), where=top > 0)
    found: npt.NDArray[np.uint8] = np.round((scaled + 1.0) * (LEVELS - 1) / 2).astype(np.uint8)
    return found


def entropy_bits(maps: Any) -> Array:
    """Return the Shannon entropy of each map's histogram of grey levels, (N,), 0 to 8 bits per pixel."""
    pictures = grey_levels(maps)
    counts = np.stack([np.bincount(picture.ravel(), minlength=LEVELS) for picture in pictures])
    share = counts / counts.sum(1, keepdims=True)
    found: Array = -(share * np.log2(np.where(share > 0, share, 1.0))).sum(1)
    return np.maximum(found, 0.0)


def png_bytes(maps: Any) -> Array:
    """Return the size of each map as a grey PNG of its own width and height, (N,), bytes.

    Compare maps of one size only; zlib's version can move the numbers by a few bytes.
    """
    from PIL import Image

    sizes = []
    for picture in grey_levels(maps):
        buffer = io.BytesIO()
        Image.fromarray(picture).save(buffer, format="PNG", compress_level=9)
        sizes.append(float(buffer.tell()))
    return np.array(sizes)


def total_variation(maps: Any, mask: Any | None = None) -> Array:
    """Return the mean absolute difference of neighbours of maps scaled to a largest absolute value of 1, (N,).

    `mask` (N, H, W) bool: only pairs with both pixels inside count. NaN for an all-zero map and where no pair is left.
    """
    array = np.asarray(maps, dtype=np.float64)
    inside = np.ones(array.shape, dtype=bool) if mask is None else np.asarray(mask, dtype=bool)
    if array.ndim != 3 or inside.shape != array.shape:
        raise ConfigError(f"maps of shape {array.shape}, mask {inside.shape}", where="total_variation")
    total, pairs = np.zeros(len(array)), np.zeros(len(array))
    for axis in (1, 2):
        near, far = (slice(None),) * axis + (slice(None, -1),), (slice(None),) * axis + (slice(1, None),)
        both = inside[near] & inside[far]
        total += (np.abs(array[near] - array[far]) * both).sum((1, 2))
        pairs += both.sum((1, 2))
    top = np.abs(array).max((1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Array = np.where((top > 0) & (pairs > 0), total / (top * pairs), np.nan)
    return found

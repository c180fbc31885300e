"""Histograms of oriented gradients of many maps at once (Dalal, Triggs 2005), compared by rank correlation."""

from __future__ import annotations

from typing import Any

import numpy as np

from restudy.errors import ConfigError
from restudy.methods.similarity.maps import Array, as_images, unit_max
from restudy.methods.similarity.rank import spearman

ORIENTATIONS = 9
_EPSILON = 1e-5


def hog_descriptors(images: Any, *, cell: int = 4, block: int = 1) -> Array:
    """Return the HOG vectors of images (M, H, W), (M, blocks x block^2 x 9) float64.

    `cell`: side of a cell in pixels; `block`: side of a block in cells, normalised L2-Hys. Cells of 4
    pixels and blocks of 1 cell suit 28 x 28 images; the paper's 16 pixels suit 224 or more. Equals
    scikit-image's `hog`. ConfigError if no block fits into the image (the vector would be empty).
    """
    array = as_images(images)
    height, width = array.shape[1:]
    if cell < 1 or block < 1 or height // cell < block or width // cell < block:
        raise ConfigError(
            f"blocks of {block} x {block} cells of {cell} pixels do not fit into {height} x {width} pixels",
            where="hog",
            remedy="choose smaller cells or blocks",
        )
    histograms = _cell_histograms(array, cell)
    windows = np.lib.stride_tricks.sliding_window_view(histograms, (block, block), axis=(1, 2))
    blocks = np.moveaxis(windows, 3, 5).reshape(*windows.shape[:3], -1)
    clipped = np.minimum(_normalised(blocks), 0.2)
    return _normalised(clipped).reshape(len(array), -1)


def hog_similarity(left: Any, right: Any, *, cell: int = 4, block: int = 1) -> Array:
    """Return the Spearman correlation of the HOG vectors of pairs of attributions (M, H, W), (M,) float64.

    Taken of absolute values scaled to a maximum of 1. NaN where a map is all zero or not finite, or where its
    vector is constant.
    """
    return spearman(
        attribution_descriptors(left, cell=cell, block=block),
        attribution_descriptors(right, cell=cell, block=block),
    )


def attribution_descriptors(maps: Any, *, cell: int = 4, block: int = 1) -> Array:
    """Return the HOG vectors of absolute, unit-max scaled maps (M, H, W); NaN rows for undefined maps."""
    scaled = np.abs(unit_max(maps))
    found = hog_descriptors(np.nan_to_num(scaled), cell=cell, block=block)
    found[np.isnan(scaled[:, 0, 0])] = np.nan
    return found


def _cell_histograms(images: Array, cell: int) -> Array:
    """Return the mean gradient magnitude by cell and orientation, (M, rows, columns, 9)."""
    down, across = np.zeros_like(images), np.zeros_like(images)
    down[:, 1:-1] = images[:, 2:] - images[:, :-2]
    across[:, :, 1:-1] = images[:, :, 2:] - images[:, :, :-2]
    rows, columns = images.shape[1] // cell, images.shape[2] // cell
    inside = np.s_[:, : rows * cell, : columns * cell]
    magnitude = np.hypot(across, down)[inside]
    angle = (np.rad2deg(np.arctan2(down, across)) % 180.0)[inside]
    bins = np.floor(angle / (180.0 / ORIENTATIONS)).astype(np.int64)
    magnitude = np.where(bins < ORIENTATIONS, magnitude, 0.0)  # rounding can leave 180 degrees: no bin
    bins = np.minimum(bins, ORIENTATIONS - 1)
    index = np.arange(len(images))[:, None, None] * rows
    index = (index + (np.arange(rows * cell) // cell)[None, :, None]) * columns
    index = (index + (np.arange(columns * cell) // cell)[None, None, :]) * ORIENTATIONS + bins
    totals = np.zeros(len(images) * rows * columns * ORIENTATIONS, dtype=np.float32)
    # One pixel of every cell at a time, row by row, in single precision: scikit-image's sums to the last bit,
    # so that ties between cells are the same.
    for row in range(cell):
        for column in range(cell):
            pixel = np.s_[:, row::cell, column::cell]
            totals[index[pixel]] = totals[index[pixel]] + magnitude[pixel]
    means = (totals / np.float32(cell**2)).astype(np.float64)
    return means.reshape(len(images), rows, columns, ORIENTATIONS)


def _normalised(blocks: Array) -> Array:
    result: Array = blocks / np.sqrt(np.square(blocks).sum(-1, keepdims=True) + _EPSILON**2)
    return result

"""Spearman rank correlation of many pairs at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restudy.errors import ConfigError
from restudy.methods.similarity.maps import Array, as_array


def ranks(values: Any, mask: Any | None = None) -> Array:
    """Return the ranks of each row of (M, N), 1 for the smallest, ties averaged; float64 (M, N).

    With `mask` (M, N) bool only the true entries are ranked, among themselves; the others become 0. A row
    that holds a value that is not finite where the mask is true becomes NaN.
    """
    array = _rows(values)
    broken = ~np.isfinite(array) if mask is None else ~np.isfinite(array) & _mask(mask, array)
    if mask is not None:
        array = np.where(_mask(mask, array), array, np.inf)
    order = np.argsort(array, axis=1) + np.arange(len(array))[:, None] * array.shape[1]
    ordered = array.ravel().take(order)
    position = np.arange(array.shape[1], dtype=np.float64)[None]
    starts = np.ones(array.shape, dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    ends = np.ones_like(starts)
    ends[:, :-1] = starts[:, 1:]
    first = np.maximum.accumulate(np.where(starts, position, 0.0), axis=1)
    last = np.minimum.accumulate(np.where(ends, position, np.inf)[:, ::-1], axis=1)[:, ::-1]
    result = np.empty_like(array)
    result.ravel()[order] = (first + last) / 2 + 1
    if mask is not None:
        result[~_mask(mask, array)] = 0.0
    result[broken.any(1)] = np.nan
    return result


def centred_ranks(values: Any, mask: Any | None = None) -> Array:
    """Return ranks minus their mean, divided by their norm, (M, N); NaN for a constant row.

    The Spearman correlation of two rows is the sum of the products of theirs.
    """
    found = ranks(values, mask)
    inside = np.ones(found.shape, dtype=bool) if mask is None else _mask(mask, found)
    count = inside.sum(1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        centred = np.where(inside, found - (count + 1) / 2, 0.0)
        centred[np.isnan(found[:, 0])] = np.nan
        norm = np.sqrt(np.square(centred).sum(1, keepdims=True))
        result: Array = centred / np.where(norm > 0, norm, np.nan)
    return result


def spearman(left: Any, right: Any, mask: Any | None = None) -> Array:
    """Return the Spearman correlation of the rows of two stacks (M, N), (M,) float64.

    Maps of more dimensions (M, ...) are flattened. `mask` (M, ...) bool keeps the foreground only. NaN
    where a row is constant, has fewer than two kept entries or holds values that are not finite. The same
    as `scipy.stats.spearmanr` on each pair.
    """
    first, second = _rows(left), _rows(right)
    if first.shape != second.shape:
        raise ConfigError(f"stacks of shape {first.shape} and {second.shape}", where="spearman")
    return correlate(centred_ranks(first, mask), centred_ranks(second, mask))


def correlate(left: Array, right: Array) -> Array:
    """Return the row-wise sums of products of two stacks of `centred_ranks`, (M,), within [-1, 1]."""
    result: Array = np.clip(np.einsum("mn,mn->m", left, right), -1.0, 1.0)
    return result


def _rows(values: Any) -> Array:
    array = as_array(values)
    if array.ndim < 2:
        raise ConfigError(f"values have shape {array.shape}", where="similarity", remedy="give a stack (M, N)")
    return array.reshape(len(array), -1)


def _mask(mask: Any, like: Array) -> NDArray[np.bool_]:
    array = as_array(mask).astype(bool).reshape(len(mask), -1)
    if array.shape != like.shape:
        raise ConfigError(f"mask of shape {array.shape} for maps of shape {like.shape}", where="similarity")
    return array

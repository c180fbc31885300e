"""Stacks of maps as numpy arrays, and the named steps before a comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restudy.errors import ConfigError

Array = NDArray[np.float64]


def as_array(values: Any) -> Array:
    """Return anything array-like, a torch tensor on any device included, as float64."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if str(values.dtype) in ("torch.bfloat16", "torch.float16") else values
    return np.asarray(values, dtype=np.float64)


def as_images(values: Any) -> Array:
    """Return maps (M, H, W) or (M, 1, H, W) as float64 (M, H, W); ConfigError for anything else."""
    array = as_array(values)
    if array.ndim == 4 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 3:
        raise ConfigError(
            f"maps have shape {array.shape}",
            where="similarity",
            remedy="give (M, H, W); several channels go through pool_channels first",
        )
    return array


_POOLS: dict[str, Callable[[Array], Array]] = {
    "sum": lambda maps: maps.sum(1),
    "abs_sum": lambda maps: np.abs(maps).sum(1),
    "l2": lambda maps: np.sqrt(np.square(maps).sum(1)),
    "linf": lambda maps: np.abs(maps).max(1),
}


def pool_channels(maps: Any, how: str) -> Array:
    """Reduce (M, C, H, W) to (M, H, W) float64: `sum` (keeps the sign), `abs_sum`, `l2` or `linf`."""
    if how not in _POOLS:
        raise ConfigError(f"pooling {how!r} is not known", remedy=f"allowed: {', '.join(_POOLS)}")
    array = as_array(maps)
    if array.ndim != 4:
        raise ConfigError(f"maps have shape {array.shape}", where="pool_channels", remedy="give (M, C, H, W)")
    return _POOLS[how](array)


def unit_max(maps: Any) -> Array:
    """Divide each map (M, H, W) by its largest absolute value; an all-zero or non-finite map becomes NaN."""
    array = as_images(maps)
    top = np.abs(array).max((1, 2), keepdims=True)
    top = np.where((top > 0) & np.isfinite(top), top, np.nan)
    scaled: Array = array / top
    return scaled

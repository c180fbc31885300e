"""All similarity metrics by name, and a reference stack whose share of the work is done once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from restudy.errors import ConfigError
from restudy.methods.similarity.hog import attribution_descriptors
from restudy.methods.similarity.maps import Array, as_images, unit_max
from restudy.methods.similarity.rank import centred_ranks, correlate
from restudy.methods.similarity.ssim import Moments, compare_moments, moments

METRICS = {
    "spearman": "rank correlation of the signed maps",
    "spearman_abs": "rank correlation of the absolute maps",
    "spearman_foreground": "rank correlation of the signed maps on the foreground",
    "spearman_abs_foreground": "rank correlation of the absolute maps on the foreground",
    "ssim": "structural similarity of absolute maps scaled to a maximum of 1, data range 1",
    "ssim_legacy": "the same with data range 2, as older scikit-image assumed",
    "hog": "rank correlation of HOG vectors of absolute maps",
}
"""Metric name to what it measures; section 3.1 of Adebayo et al. 2018."""


def metrics(foreground: bool = False) -> tuple[str, ...]:
    """Return the names of the metrics, those on the foreground included on request."""
    return tuple(name for name in METRICS if foreground or not name.endswith("_foreground"))


class Reference:
    """A stack of maps (M, H, W) or (M, 1, H, W) prepared for comparison with many others.

    Ranks, local moments and descriptors are computed at the first use and kept. `mask` (M, H, W) bool marks
    the foreground. `cell`, `block`: HOG's, see `hog_descriptors`.
    """

    def __init__(self, maps: Any, *, mask: Any | None = None, cell: int = 4, block: int = 1) -> None:
        self.maps = as_images(maps)
        self.mask = None if mask is None else as_images(mask) > 0
        if self.mask is not None and self.mask.shape != self.maps.shape:
            raise ConfigError(
                f"mask of shape {self.mask.shape} for maps of shape {self.maps.shape}", where="similarity"
            )
        self.cell, self.block = cell, block

    def compare(self, other: Any, names: Sequence[str]) -> dict[str, Array]:
        """Return metric name to (M,) float64 for this stack against `other`, maps of the same shape.

        NaN marks an undefined value (an all-zero, constant or non-finite map): the caller counts them.
        """
        second = (
            other
            if isinstance(other, Reference)
            else Reference(other, mask=self.mask, cell=self.cell, block=self.block)
        )
        if second.maps.shape != self.maps.shape:
            raise ConfigError(f"stacks of shape {self.maps.shape} and {second.maps.shape}", where="similarity")
        return {name: self._metric(name, second) for name in names}

    def _metric(self, name: str, other: Reference) -> Array:
        if name == "ssim":
            return compare_moments(self._moments, other._moments, data_range=1.0)
        if name == "ssim_legacy":
            return compare_moments(self._moments, other._moments, data_range=2.0)
        if name == "hog":
            return correlate(self._descriptors, other._descriptors)
        parts = {
            "spearman": ("_signed", False),
            "spearman_abs": ("_absolute", False),
            "spearman_foreground": ("_signed_foreground", True),
            "spearman_abs_foreground": ("_absolute_foreground", True),
        }
        if name not in parts:
            raise ConfigError(f"metric {name!r} is not known", remedy=f"metrics: {', '.join(METRICS)}")
        attribute, masked = parts[name]
        if masked and (self.mask is None or other.mask is None):
            raise ConfigError(f"{name} needs a mask", where="similarity", remedy="give mask=(M, H, W)")
        return correlate(getattr(self, attribute), getattr(other, attribute))

    @cached_property
    def _signed(self) -> Array:
        return centred_ranks(self._flat(self.maps))

    @cached_property
    def _absolute(self) -> Array:
        return centred_ranks(self._flat(np.abs(self.maps)))

    @cached_property
    def _signed_foreground(self) -> Array:
        return centred_ranks(self._flat(self.maps), self._flat(self.mask))

    @cached_property
    def _absolute_foreground(self) -> Array:
        return centred_ranks(self._flat(np.abs(self.maps)), self._flat(self.mask))

    @cached_property
    def _moments(self) -> Moments:
        return moments(np.abs(unit_max(self.maps)))

    @cached_property
    def _descriptors(self) -> Array:
        return centred_ranks(attribution_descriptors(self.maps, cell=self.cell, block=self.block))

    def _flat(self, array: Any) -> Any:
        return array.reshape(len(array), -1)


def compare(
    left: Any,
    right: Any,
    names: Sequence[str] | None = None,
    *,
    mask: Any | None = None,
    cell: int = 4,
    block: int = 1,
) -> dict[str, Array]:
    """Compare two stacks of maps pair by pair: metric name to (M,) float64; see `Reference`.

    Without names: all metrics, those on the foreground only with a mask.
    """
    chosen = names if names is not None else metrics(foreground=mask is not None)
    return Reference(left, mask=mask, cell=cell, block=block).compare(right, chosen)

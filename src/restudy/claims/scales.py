"""Scales on which replicates are tested, and how effects, margins and bounds travel to and fro.

A scale ``g`` is applied to every replicate before the test. Each has a neutral point ``v0`` with
``g(v0) = 0``: 0 for identity and fisher_z, 1/2 for logit, 1 for log. Two rules follow:

* a *place* (a bound, the paper's value) is transformed with ``g`` itself;
* a *size* (SESOI, margin), always stated in the metric's unit, is read at the neutral point:
  ``g(v0 + size)``. So a SESOI of .15 is a correlation of .15 against 0, a proportion of .65 against .5,
  or a ratio of 1.15 against 1; between two arms it is the same distance on the scale (Cohen's q,
  log odds ratio, log ratio).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from .words import Scale

Array = npt.NDArray[np.float64]

NEUTRAL: Final[dict[Scale, float]] = {"identity": 0.0, "fisher_z": 0.0, "logit": 0.5, "log": 1.0}
DOMAIN: Final[dict[Scale, tuple[float, float]]] = {
    "identity": (-math.inf, math.inf),
    "fisher_z": (-1.0, 1.0),
    "logit": (0.0, 1.0),
    "log": (0.0, math.inf),
}
_FORWARD: Final[dict[Scale, Callable[[Array], Array]]] = {
    "identity": lambda v: v,
    "fisher_z": np.arctanh,
    "logit": lambda v: np.log(v) - np.log1p(-v),
    "log": np.log,
}
_BACK: Final[dict[Scale, Callable[[float], float]]] = {
    "identity": lambda e: e,
    "fisher_z": math.tanh,
    "logit": lambda e: 1.0 / (1.0 + math.exp(-e)) if e > -700 else 0.0,
    "log": lambda e: math.exp(e) if e < 700 else math.inf,
}


def inside(scale: Scale, values: Array) -> npt.NDArray[np.bool_]:
    """True where a value lies strictly inside the scale's domain (NaN passes: it is a failed replicate)."""
    low, high = DOMAIN[scale]
    return np.isnan(values) | ((values > low) & (values < high))


def forward(scale: Scale, values: Array) -> Array:
    """Values in the metric's unit -> the test scale, elementwise; the caller has checked the domain."""
    with np.errstate(invalid="ignore"):
        return _FORWARD[scale](values)


def place(scale: Scale, value: float) -> float:
    """A bound or a paper's value, in the metric's unit, on the test scale."""
    return float(forward(scale, np.asarray(value, dtype=np.float64)))


def size(scale: Scale, value: float) -> float:
    """A SESOI or margin, in the metric's unit, on the test scale: its distance from the neutral point."""
    return value if scale == "identity" else place(scale, NEUTRAL[scale] + value)


def back_place(scale: Scale, value: float) -> float:
    """A place on the test scale, back in the metric's unit."""
    return value if math.isnan(value) else _BACK[scale](value)


def back_size(scale: Scale, value: float) -> float:
    """An effect on the test scale, back in the metric's unit, read at the neutral point."""
    return back_place(scale, value) - NEUTRAL[scale]

"""The paper's toy: three Bernoulli variables of one parameter, seen as one variable of 8 categories. No torch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

TARGET = np.array([0.6, 0.51, 0.48])
BITS = np.array([[(z >> 2) & 1, (z >> 1) & 1, z & 1] for z in range(8)], dtype=np.float64)
"""The three bits of each category, (8, 3); categories in lexicographic order, which breaks ties among equal q."""
F = ((BITS - TARGET) ** 2).sum(1)
"""f(z) = |b - p0|^2, (8,)."""
ETAS = (0.0, -4.0)
RIGHT_CORNER, WRONG_CORNER = float(F[7]), float(F[0])
"""Loss as eta goes to plus and to minus infinity: .6705 and .8505."""


def sigmoid(eta: Array | float) -> Array:
    """1 / (1 + exp(-eta))."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(eta, dtype=np.float64))))


def probabilities(eta: float) -> Array:
    """q(z) of the 8 categories, (8,)."""
    p = float(sigmoid(eta))
    ones = BITS.sum(1)
    return np.asarray(p**ones * (1 - p) ** (3 - ones))


def score(eta: float) -> Array:
    """d log q(z) / d eta, (8, 1)."""
    return np.asarray((BITS.sum(1) - 3 * float(sigmoid(eta)))[:, None])


def loss(eta: Array | float) -> Array:
    """E|b - p0|^2, any shape."""
    p = sigmoid(eta)[..., None]
    return np.asarray((p * (1 - TARGET) ** 2 + (1 - p) * TARGET**2).sum(-1))


def gradient(eta: float) -> float:
    """The exact d loss / d eta."""
    p = float(sigmoid(eta))
    return float(p * (1 - p) * (1 - 2 * TARGET).sum())

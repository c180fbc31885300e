"""The pass or fail rule of both sanity checks, the same for every method and every similarity metric.

A map that stays as similar to the trained net's as an honest retraining would leave it, although the net was randomised
or had nothing to learn, does not describe the net: the method is rejected. It is accepted when the similarity falls
clearly below that yardstick.
"""

from __future__ import annotations

import math

MARGIN = 0.10
"""Smallest fall below the retrained net's similarity that counts as a response, in points of the metric."""

ACCEPTED, REJECTED, UNDEFINED, NOT_APPLICABLE = "accepted", "rejected", "no map", "not applicable"
TESTS = ("parameters", "data")
METRICS = ("spearman", "spearman_abs", "ssim", "hog")
"""The four similarity metrics of the paper: signed and absolute rank correlation, SSIM, HOG."""


def decide(changed: float, yardstick: float) -> str:
    """Decision of one test under one metric.

    Args:
        changed: similarity to the trained net's map after the net was randomised or trained on permuted labels.
        yardstick: similarity of an honestly retrained net's map.

    Returns:
        `accepted`, `rejected`, or `no map` where either similarity is undefined.
    """
    if math.isnan(changed) or math.isnan(yardstick):
        return UNDEFINED
    return ACCEPTED if yardstick - changed >= MARGIN else REJECTED

"""Normalisation layers: batch norm, the noise that brings covariate shift back, l_p normalisation, and exact theory."""

from restudy.methods.normalization.functional import batch_norm, lp_norm, statistics
from restudy.methods.normalization.layers import AffineNoise, BatchNorm, LpNorm, noisy_batch_norm
from restudy.methods.normalization.theory import (
    Reduction,
    gradient_reduction,
    matching_affine,
    printed_bound,
    weight_gradient_bound,
)

__all__ = [
    "AffineNoise",
    "BatchNorm",
    "LpNorm",
    "Reduction",
    "batch_norm",
    "gradient_reduction",
    "lp_norm",
    "matching_affine",
    "noisy_batch_norm",
    "printed_bound",
    "statistics",
    "weight_gradient_bound",
]

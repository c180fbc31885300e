"""How alike two attributions are: rank correlation, SSIM, HOG; many pairs at once, undefined values as NaN.

values = compare(trained, randomized, ("spearman", "spearman_abs", "ssim", "hog"))
values["ssim"]    # (M,) float64, NaN where undefined: count them, do not drop them
"""

from restudy.methods.similarity.hog import hog_descriptors, hog_similarity
from restudy.methods.similarity.maps import pool_channels, unit_max
from restudy.methods.similarity.metrics import METRICS, Reference, compare, metrics
from restudy.methods.similarity.rank import ranks, spearman
from restudy.methods.similarity.ssim import ssim

__all__ = [
    "METRICS",
    "Reference",
    "compare",
    "hog_descriptors",
    "hog_similarity",
    "metrics",
    "pool_channels",
    "ranks",
    "spearman",
    "ssim",
    "unit_max",
]

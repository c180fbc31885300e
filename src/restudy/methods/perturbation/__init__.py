"""Region perturbation: is what a heatmap calls relevant also what the model's decision rests on? (Samek et al. 2017)

Regions of an image are replaced, those that a heatmap ranks highest first, and the score of the class is followed. The
area over that curve (AOPC) measures heatmaps without a human eye; what replaces the regions (the fill) matters a lot.

    grid = Grid.of(images, 4)
    orders = {"lrp": region_order(grid.sums(heatmap), "morf", generator)}
    curves = perturbation_curves(model, images, classes, orders, grid, image_mean(), steps=8, generator=generator)
    aopc(curves["lrp"].logit)

Maps are (N, H, W): how channels are pooled is the caller's choice (`restudy.methods.relevance.heatmaps` names it).
"""

from restudy.methods.perturbation.complexity import entropy_bits, grey_levels, png_bytes, total_variation
from restudy.methods.perturbation.curves import SCORES, Curves, abpc, aopc, perturbation_curves
from restudy.methods.perturbation.fills import Fill, blur, constant, from_images, generative, image_mean, uniform
from restudy.methods.perturbation.regions import ORDERS, Grid, pixel_steps, region_order

__all__ = [
    "ORDERS",
    "SCORES",
    "Curves",
    "Fill",
    "Grid",
    "abpc",
    "aopc",
    "blur",
    "constant",
    "entropy_bits",
    "from_images",
    "generative",
    "grey_levels",
    "image_mean",
    "perturbation_curves",
    "pixel_steps",
    "png_bytes",
    "region_order",
    "total_variation",
    "uniform",
]

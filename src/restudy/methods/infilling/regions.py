"""What a map is worth: removal curves, flipping area, shape, boxes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from skimage.measure import label
from torch import Tensor, nn

from restudy.methods.infilling.fillers import Infiller, composite
from restudy.methods.infilling.objectives import log_odds

Bools = npt.NDArray[np.bool_]
Box = tuple[int, int, int, int]


def removal_fractions() -> Tensor:
    """Shares of the pixels at which a removal curve is taken: by 1/112 up to a quarter, then by 1/28, float32 (50,)."""
    return torch.cat([torch.arange(29) / 112, 0.25 + torch.arange(1, 22) / 28])


def removal_ranks(saliency: Tensor, seed: int) -> Tensor:
    """Rank of each pixel, 0 for the most salient, int64 (N, S * S); ties are broken at random."""
    flat = saliency.flatten(1)
    generator = torch.Generator().manual_seed(seed)
    shuffled = torch.argsort(torch.rand(flat.shape, generator=generator), 1).to(flat.device)
    order = torch.argsort(flat.gather(1, shuffled), dim=1, descending=True, stable=True)
    return torch.argsort(shuffled.gather(1, order), 1)


@torch.no_grad()
def removal_curves(
    model: nn.Module, images: Tensor, infiller: Infiller, target: Tensor, ranks: Tensor, fractions: Tensor
) -> tuple[Tensor, Tensor]:
    """Fill in the k most salient pixels, for k of growing share; the in-filler gets no noise, so it must need none.

    Returns log-odds of the target (N, K) and whether another class is predicted, bool (N, K).
    """
    size = images.shape[-1]
    scores, flips = [], []
    for k in (fractions * size * size).round().tolist():
        gone = (ranks < k).view(len(images), 1, size, size).to(images.dtype)
        logits = model(composite(images, infiller(images, gone, images.new_zeros(len(images), 0)), gone))
        scores.append(log_odds(logits, target))
        flips.append(logits.argmax(1) != target)
    return torch.stack(scores, 1), torch.stack(flips, 1)


def flipping_area(flips: Tensor, fractions: Tensor) -> Tensor:
    """Smallest share of pixels whose removal changes the class, (N,); 1 where none does."""
    first = flips.float().argmax(1)
    return torch.where(flips.any(1), fractions.to(flips.device)[first], torch.ones(()))


def area_under_curve(values: Tensor, fractions: Tensor) -> Tensor:
    """Trapezoid rule over the shares, (N,)."""
    return torch.trapezoid(values, fractions.to(values.device), dim=1)


def parts_and_perimeter(region: Bools) -> tuple[int, float]:
    """Number of 4-connected parts of a bool (S, S), and perimeter^2 / area (16 for a square, 0 for nothing).

    The perimeter counts pixel edges between region and outside, the image's border included.
    """
    area = int(region.sum())
    if not area:
        return 0, 0.0
    padded = np.pad(region, 1).astype(np.int8)
    edges = np.abs(np.diff(padded, axis=0)).sum() + np.abs(np.diff(padded, axis=1)).sum()
    parts = int(label(region, connectivity=1).max())  # type: ignore[no-untyped-call]
    return parts, float(edges) ** 2 / area


def bounding_box(region: Bools) -> Box:
    """Top, left, bottom, right (exclusive) of a bool (S, S); four zeros for nothing."""
    rows, columns = np.nonzero(region)
    if not len(rows):
        return (0, 0, 0, 0)
    return int(rows.min()), int(columns.min()), int(rows.max()) + 1, int(columns.max()) + 1


def largest_part_box(region: Bools) -> Box:
    """The bounding box of the largest 4-connected part."""
    labels = label(region, connectivity=1)  # type: ignore[no-untyped-call]
    sizes = np.bincount(labels.ravel(), minlength=2)[1:]
    return bounding_box(labels == 1 + np.argmax(sizes)) if sizes.any() else (0, 0, 0, 0)


def box_iou(one: Box, other: Box) -> float:
    """Intersection over union of two boxes (top, left, bottom, right exclusive); 0 where one is empty."""
    height = min(one[2], other[2]) - max(one[0], other[0])
    width = min(one[3], other[3]) - max(one[1], other[1])
    both = max(height, 0) * max(width, 0)
    areas = [(b[2] - b[0]) * (b[3] - b[1]) for b in (one, other)]
    return both / (sum(areas) - both) if both else 0.0

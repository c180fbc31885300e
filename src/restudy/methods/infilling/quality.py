"""How good a fill is: distance from real images, the seam at its border, what it knows of the hidden pixels."""

from __future__ import annotations

import torch
from torch import Tensor

from restudy.methods.infilling.fillers import Infiller


def neighbour_distance(features: Tensor, real: Tensor, neighbours: int = 5) -> Tensor:
    """Mean Euclidean distance to the nearest real feature vectors, (N,); `features` (N, D), `real` (M, D)."""
    return torch.cdist(features, real).topk(neighbours, largest=False).values.mean(1)


def seam(images: Tensor, completed: Tensor, hidden: Tensor) -> Tensor:
    """|log| of the mean absolute step across the border of the hidden region over that in the original, (N,).

    Images (N, 1, S, S). 0 where the border is crossed as in the original; a border that is too rough or too smooth
    counts alike. NaN where a mask has no border.
    """
    total = [torch.zeros(len(images), device=images.device) for _ in range(2)]
    count = torch.zeros(len(images), device=images.device)
    for axis in (2, 3):
        border = torch.diff(hidden.float(), dim=axis).abs()
        count += border.flatten(1).sum(1)
        for which, picture in enumerate((completed, images)):
            total[which] += (torch.diff(picture, dim=axis).abs() * border).flatten(1).sum(1)
    ratio = (total[0] / count + 1e-3) / (total[1] / count + 1e-3)
    return ratio.log().abs()


def leak(infiller: Infiller, images: Tensor, hidden: Tensor, noise: Tensor, seed: int) -> Tensor:
    """Largest absolute change of a hidden pixel's fill when all hidden pixels are exchanged for others, (N,).

    Images and `hidden` (N, 1, S, S); the other pixels are uniform in [0, 1]. 0 for an in-filler that does not see them.
    """
    generator = torch.Generator().manual_seed(seed)
    other = torch.where(hidden > 0, torch.rand(images.shape, generator=generator).to(hidden.device), images)
    change = (infiller(other, hidden, noise) - infiller(images, hidden, noise)).abs() * hidden
    return change.flatten(1).amax(1)

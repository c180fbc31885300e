"""Holes: those to train in-fillers with, as they meet them while masks are optimised, and rectangles."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def random_holes(count: int, size: int, generator: torch.Generator) -> Tensor:
    """Float (count, 1, size, size), 1 where hidden; a third each of rectangles, of pixels and of smooth fields.

    Rectangles have sides from a fifth of the canvas to the whole. Pixels are dropped independently with a rate that
    is uniform for each image. Smooth fields are uniform rates on a 4 x 4 grid, upsampled and drawn per pixel, which
    is what masks look like halfway through their optimisation.
    """
    kind = torch.randint(3, (count, 1, 1, 1), generator=generator)
    sides = torch.randint(size // 5, size + 1, (count, 2), generator=generator)
    corners = (torch.rand(count, 2, generator=generator) * (size - sides + 1)).long()
    rates = torch.rand(count, 1, 1, 1, generator=generator)
    field = torch.rand(count, 1, 4, 4, generator=generator) * 2 - 0.5
    smooth = F.interpolate(field, size=(size, size), mode="bilinear", align_corners=False)
    draws = torch.rand(count, 1, size, size, generator=generator)
    dropped = torch.where(kind == 1, draws < rates, draws < smooth)
    return torch.where(kind == 0, rectangles(corners, sides, size), dropped).float()


def rectangles(corners: Tensor, sides: Tensor | int, size: int) -> Tensor:
    """Bool (N, 1, size, size), true on rectangles: top left corners int64 (N, 2), heights and widths (N, 2) or one."""
    place, ends = torch.arange(size, device=corners.device), corners + sides
    rows = (place >= corners[:, :1]) & (place < ends[:, :1])
    columns = (place >= corners[:, 1:]) & (place < ends[:, 1:])
    return (rows[:, :, None] & columns[:, None, :])[:, None]

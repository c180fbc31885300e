"""A grid of square regions, their relevance, and the orders in which they are perturbed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from restudy.errors import ConfigError

Order = Literal["morf", "lerf", "random"]
"""Most relevant first, least relevant first, or any order (Samek et al. 2017)."""
ORDERS: tuple[str, ...] = get_args(Order)


@dataclass(frozen=True)
class Grid:
    """Regions of `size` x `size` pixels that cover an image without overlap.

    They start at the upper left corner and are numbered by rows. Where the image is no multiple of `size`, the regions
    at the right and lower edge are smaller.
    """

    height: int
    width: int
    size: int

    def __post_init__(self) -> None:
        if self.size < 1 or self.height < 1 or self.width < 1:
            raise ConfigError(
                f"regions of {self.size} pixels on {self.height} x {self.width}",
                where="Grid",
                remedy="give positive sizes",
            )

    @classmethod
    def of(cls, images: Tensor, size: int) -> Grid:
        """Return the grid of images (..., H, W)."""
        return cls(images.shape[-2], images.shape[-1], size)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of regions."""
        return -(-self.height // self.size), -(-self.width // self.size)

    @property
    def count(self) -> int:
        """Number of regions."""
        return self.shape[0] * self.shape[1]

    def index(self, device: torch.device | str = "cpu") -> Tensor:
        """Return the region of each pixel, int64 (H, W)."""
        down = torch.arange(self.height, device=device) // self.size
        right = torch.arange(self.width, device=device) // self.size
        return down[:, None] * self.shape[1] + right

    def sums(self, maps: Tensor) -> Tensor:
        """Return the sum of maps (N, H, W) over each region, float64 (N, regions)."""
        if maps.dim() != 3 or maps.shape[1:] != (self.height, self.width):
            raise ConfigError(
                f"maps have shape {tuple(maps.shape)}", where="Grid", remedy=f"give (N, {self.height}, {self.width})"
            )
        found = torch.zeros(len(maps), self.count, dtype=torch.float64, device=maps.device)
        return found.index_add_(1, self.index(maps.device).flatten(), maps.detach().double().flatten(1))

    def steps(self, share: float) -> int:
        """Return how many regions are a share of all of them, rounded, at least one."""
        return max(1, round(share * self.count))


def region_order(scores: Tensor, order: str, generator: torch.Generator) -> Tensor:
    """Return the order in which regions are perturbed, int64 (N, regions): entry k is the region of step k + 1.

    Args:
        scores: relevance of each region, (N, regions), finite; ignored by `random`.
        order: `morf`, `lerf` or `random`.
        generator: a CPU generator; draws the random order, and who comes first among equal scores.

    Raises:
        ConfigError: unknown order, scores that are not finite.
    """
    if order not in ORDERS:
        raise ConfigError(f"order {order!r} is not known", remedy=f"allowed: {', '.join(ORDERS)}")
    if not bool(torch.isfinite(scores).all()):
        raise ConfigError("scores of regions are not finite", where="region_order", remedy="remove NaN and infinity")
    chance = torch.rand(scores.shape, generator=generator, dtype=torch.float64).argsort(1).to(scores.device)
    if order == "random":
        return chance
    ranked = scores.gather(1, chance).argsort(dim=1, descending=order == "morf", stable=True)
    return chance.gather(1, ranked)


def pixel_steps(order: Tensor, grid: Grid) -> Tensor:
    """Return for each pixel the number of regions perturbed before its own, int64 (N, H, W).

    Image k of a perturbation sequence is perturbed exactly where this is below k.
    """
    step = torch.empty_like(order)
    step.scatter_(1, order, torch.arange(order.shape[1], device=order.device).expand_as(order).contiguous())
    return step[:, grid.index(order.device).flatten()].view(len(order), grid.height, grid.width)

"""Spirals in the plane, half of them turning each way, observed with noise at irregular times."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.methods.models import derive_seed

TURNS = 3.0
"""A whole spiral; a trajectory is a window of it that starts anywhere the window and its future fit."""
UNIT = 3.0
"""The authors' coordinates are divided by this, so that positions have about unit size."""
GRID = 100
"""Equally spaced times of a window, among which the observed ones are drawn; the future has as many."""


@dataclass(frozen=True)
class Spirals:
    """Trajectories of one split.

    Attributes:
        truth: (B, 2 GRID, 2) without noise: the window, then its future. values: (B, n, 2) noisy observations.
        index: (B, n) int64, increasing, where in the window they stand. ahead: (B, n) the same for the future.
        grid: (2 GRID,) times, from 0 on, in radians of the spiral.
    """

    truth: Tensor
    values: Tensor
    index: Tensor
    ahead: Tensor
    grid: Tensor

    def future(self) -> Tensor:
        """True positions at the future times to be predicted, (B, n, 2)."""
        return self.truth.gather(1, (self.ahead + GRID)[..., None].expand(-1, -1, 2))


def spirals(count: int, points: int, window: float, noise: float, seed: int, split: str) -> Spirals:
    """Draw `count` trajectories with `points` of `GRID` observations each, without replacement.

    The curves are those of the authors' example: anticlockwise r = .3 a; clockwise r = 15 / a, with the angle a running
    down from one more than the whole spiral's. The same trajectories are observed at every number of points.

    Args:
        window: radians of a window. noise: standard deviation of an observation. split: name of the draw.
    """
    generator = torch.Generator().manual_seed(derive_seed(seed, "spirals", split))
    total = 2 * math.pi * TURNS
    grid = torch.arange(2 * GRID) * (window / (GRID - 1))
    start = torch.rand(count, 1, generator=generator) * (total - float(grid[-1]))
    angle = start + grid
    clockwise = torch.arange(count)[:, None] % 2 == 0
    down = total + 1 - angle
    radius = torch.where(clockwise, 15.0 / down, 0.3 * angle)
    turned = torch.where(clockwise, down, angle)
    truth = torch.stack([radius * torch.cos(turned), radius * torch.sin(turned)], 2) / UNIT
    noisy = truth[:, :GRID] + noise * torch.randn(count, GRID, 2, generator=generator)
    orders = [torch.rand(count, GRID, generator=generator).argsort(1)[:, :points].sort(1).values for _ in range(2)]
    values = noisy.gather(1, orders[0][..., None].expand(-1, -1, 2))
    return Spirals(truth, values, orders[0], orders[1], grid)

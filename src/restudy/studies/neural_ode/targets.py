"""Densities on the plane: unnormalised targets to match, and point sets to fit."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restudy.methods.models import derive_seed

POINT_SETS = ("circles", "moons")
POTENTIALS = ("crescents", "wave")
SIDE = 6.0
"""Normalising constants are integrals over the square of this half side; the tails outside are below 1e-8."""


def log_target(name: str, z: Tensor) -> Tensor:
    """Unnormalised log density of (B, 2): two crescents or a sine wave (Rezende & Mohamed 2015, table 1): (B,)."""
    if name == "crescents":
        ring = 0.5 * ((z.square().sum(1).sqrt() - 2) / 0.4).square()
        sides = torch.stack([-0.5 * ((z[:, 0] - at) / 0.6).square() for at in (2.0, -2.0)])
        return torch.logsumexp(sides, 0) - ring
    if name == "wave":
        # The wave runs on for ever; a normal in z1 makes it a density.
        return -0.5 * ((z[:, 1] - torch.sin(0.5 * math.pi * z[:, 0])) / 0.4).square() - 0.5 * z[:, 0].square()
    raise ValueError(f"unknown target {name!r}; known: {', '.join(POTENTIALS)}")


def square(side: int, half: float = SIDE) -> tuple[Tensor, float]:
    """Midpoints of a grid of side x side cells on [-half, half]^2, float64 (side^2, 2), and the area of a cell."""
    line = (torch.arange(side, dtype=torch.float64) + 0.5) * (2 * half / side) - half
    first, second = torch.meshgrid(line, line, indexing="xy")
    return torch.stack([first.reshape(-1), second.reshape(-1)], 1), (2 * half / side) ** 2


def log_normalizer(name: str, side: int = 600) -> float:
    """log of the target's integral, by the midpoint rule."""
    points, area = square(side)
    return float(torch.logsumexp(log_target(name, points), 0)) + math.log(area)


def points_of(name: str, count: int, seed: int, *names: str | int) -> Tensor:
    """Draws from two rings, or from two interleaved half moons, float32 (count, 2), about unit size."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "points", name, *names))
    angle = torch.rand(count, generator=generator) * math.pi
    which = torch.randint(2, (count,), generator=generator).float()
    noise = torch.randn(count, 2, generator=generator)
    if name == "circles":
        radius = 1.0 - 0.5 * which
        return torch.stack([radius * torch.cos(2 * angle), radius * torch.sin(2 * angle)], 1) + 0.06 * noise
    if name == "moons":
        sign = 1 - 2 * which
        ring = torch.stack([sign * torch.cos(angle) + which - 0.5, sign * torch.sin(angle) + 0.5 * which - 0.25], 1)
        return ring + 0.1 * noise
    raise ValueError(f"unknown point set {name!r}; known: {', '.join(POINT_SETS)}")

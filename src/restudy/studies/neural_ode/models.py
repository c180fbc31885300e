"""Networks and data of the paper: classifiers that differ in their body alone, densities on the plane, spirals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.data import fashion_mnist
from restudy.errors import ConfigError
from restudy.methods.continuous import ConvField, OdeBlock, PlainStack, ResidualStack, Solver, TiedStack
from restudy.methods.continuous.fields import group_norm
from restudy.methods.models import derive_seed

MEAN, SPREAD = 0.286, 0.353  # of Fashion-MNIST's training pixels
CLASSES = 10
ARMS = ("odenet", "rknet", "resnet6", "tied6", "mlp", "plain6", "plain12", "resnet12")
BLOCKS = 6


class Classifier(nn.Module):
    """Stem, body and head on images (B, 1, side, side): logits (B, 10)."""

    def __init__(self, stem: nn.Module, body: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.stem, self.body, self.head = stem, body, head

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, 10)."""
        return self.head(self.body(self.stem(images)))  # type: ignore[no-any-return]


def stem(channels: int, side: int) -> nn.Sequential:
    """A 3x3 convolution, then halvings by 4x4 convolutions: two for 28 pixels, one for 14, both end at 6x6."""
    layers: list[nn.Module] = [nn.Conv2d(1, channels, 3)]
    for _ in range({28: 2, 14: 1}[side]):
        layers += [group_norm(channels), nn.ReLU(), nn.Conv2d(channels, channels, 4, 2, 1)]
    return nn.Sequential(*layers)


def head(channels: int) -> nn.Sequential:
    """norm, ReLU, average over places, linear."""
    return nn.Sequential(
        group_norm(channels), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)
    )


def build(arm: str, *, channels: int, side: int, hidden: int, tolerance: float, seed: int) -> nn.Module:
    """The classifier of an arm; stem and head start from the same weights in all arms of a seed.

    `odenet` and `rknet` are the same network, trained by the adjoint and through the solver; `tied6` applies their
    field six times with unit steps.

    Raises:
        ConfigError: an unknown arm.
    """
    if arm not in ARMS:
        raise ConfigError(f"unknown arm {arm!r}", remedy=f"known: {', '.join(ARMS)}")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "ends"))
        begin, end = stem(channels, side), head(channels)
        torch.manual_seed(derive_seed(seed, "body"))
        if arm == "mlp":
            return nn.Sequential(nn.Flatten(), nn.Linear(side * side, hidden), nn.ReLU(), nn.Linear(hidden, CLASSES))
        if arm in ("odenet", "rknet"):
            solver = Solver(tolerance=tolerance, adjoint=arm == "odenet")
            return Classifier(begin, OdeBlock(ConvField(channels), solver), end)
        if arm == "tied6":
            return Classifier(begin, TiedStack(channels, BLOCKS), end)
        kind = PlainStack if arm.startswith("plain") else ResidualStack
        return Classifier(begin, kind(channels, int(arm.removeprefix("plain").removeprefix("resnet"))), end)


@dataclass(frozen=True)
class Images:
    """Inputs (N, 1, side, side) float32 and labels (N,) int64, to train on and to test on."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


def load_images(seed: int, train_images: int, test_images: int, side: int) -> Images:
    """Training images drawn anew for each seed and the first test images, averaged to `side` pixels, standardised."""
    data = fashion_mnist.load()
    generator = torch.Generator().manual_seed(derive_seed(seed, "images"))
    chosen = torch.randperm(len(data.train_labels), generator=generator)[:train_images].numpy()

    def prepared(images: Any) -> Tensor:
        grey = (torch.tensor(images, dtype=torch.float32)[:, None] / 255 - MEAN) / SPREAD
        return F.avg_pool2d(grey, 28 // side)

    return Images(
        prepared(data.train_images[chosen]),
        torch.tensor(data.train_labels[chosen]),
        prepared(data.test_images[:test_images]),
        torch.tensor(data.test_labels[:test_images]),
    )


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


def draw_spirals(count: int, points: int, window: float, noise: float, seed: int, split: str) -> Spirals:
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

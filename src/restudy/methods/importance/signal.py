"""Signal-to-noise ratio of a gradient estimator (Rainforth et al. 2018), over all parameters together."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.importance.gradients import Objective, backward
from restudy.methods.importance.models import DeepGaussianAutoencoder

AT_ONCE = 50
"""Gradients that are held in memory together."""


@dataclass(frozen=True)
class Moments:
    """Mean (P,) and summed variance of a gradient over `draws` independent draws, float64."""

    mean: Tensor
    total_variance: float
    draws: int

    @property
    def squared_norm(self) -> float:
        """Unbiased estimate of the squared norm of the expected gradient; negative where noise hides it."""
        return float(self.mean.square().sum()) - self.total_variance / self.draws

    @property
    def signal_to_noise(self) -> float:
        """Norm of the expected gradient over the root of its summed variance; NaN where noise hides the norm."""
        if self.squared_norm <= 0 or self.total_variance <= 0:
            return math.nan
        return math.sqrt(self.squared_norm / self.total_variance)


def moments(draws: Iterable[Tensor]) -> Moments:
    """Moments of gradients that come in batches (R, P).

    Raises:
        ConfigError: fewer than two draws.
    """
    running = _Running()
    for batch in draws:
        running.add(batch)
    return running.moments()


def distance(one: Moments, other: Moments) -> tuple[float, float]:
    """Norm of the difference of two mean gradients from independent draws, and its standard error.

    The second number is the root of what noise alone adds to the squared norm: where the expected gradients are equal,
    the first is about as large as the second.
    """
    noise = one.total_variance / one.draws + other.total_variance / other.draws
    return float((one.mean - other.mean).norm()), math.sqrt(noise)


def gradient_moments(
    objective: Objective, model: DeepGaussianAutoencoder, x: Tensor, k: int, draws: int, generator: torch.Generator
) -> tuple[Moments, Moments]:
    """Moments of the gradient for one mini-batch: over all encoder parameters, and over all decoder parameters.

    Args:
        objective: the estimator.
        model: left unchanged; its `.grad` is emptied.
        x: binary images (B, pixels), the same for every draw.
        k: samples for each image.
        draws: independent gradients.
        generator: for their noise.
    """
    parts = model.encoder_parameters(), model.decoder_parameters()
    running = _Running(), _Running()
    for start in range(0, draws, AT_ONCE):
        rows: tuple[list[Tensor], list[Tensor]] = ([], [])
        for _ in range(min(AT_ONCE, draws - start)):
            model.zero_grad(set_to_none=True)
            backward(objective, model, x, model.draw_noise(k, len(x), generator))
            for kept, parameters in zip(rows, parts, strict=True):
                kept.append(torch.cat([p.grad.flatten() for p in parameters if p.grad is not None]))
        for sums, kept in zip(running, rows, strict=True):
            sums.add(torch.stack(kept))
    model.zero_grad(set_to_none=True)
    return running[0].moments(), running[1].moments()


class _Running:
    """Moments of rows that come in batches, by Chan et al. 1983: a mean far above the spread costs no digits."""

    def __init__(self) -> None:
        self.count, self.mean, self.spread = 0, torch.zeros(()), 0.0

    def add(self, batch: Tensor) -> None:
        """Take in rows (R, P)."""
        rows = batch.double()
        here = rows.mean(0)
        delta, total = here - self.mean, self.count + len(rows)
        between = float(delta.square().sum()) * self.count * len(rows) / total
        self.spread += float((rows - here).square().sum()) + between
        self.mean, self.count = self.mean + delta * (len(rows) / total), total

    def moments(self) -> Moments:
        """What was taken in so far."""
        if self.count < 2:
            raise ConfigError(f"{self.count} draws of a gradient", remedy="a variance needs at least 2")
        return Moments(self.mean, self.spread / (self.count - 1), self.count)

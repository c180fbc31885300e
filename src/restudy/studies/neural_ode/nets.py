"""Classifiers that differ in their body alone: an ODE, residual, tied or plain blocks between one stem and head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.continuous import ConvField, OdeBlock, PlainStack, ResidualStack, Solver, TiedStack
from restudy.methods.continuous.fields import group_norm
from restudy.methods.models import derive_seed

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

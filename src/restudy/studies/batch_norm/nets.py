"""The convolutional nets of the study: eight convolutions after VGG-A, the same initial weights in every arm."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.normalization import AffineNoise, BatchNorm, LpNorm

FACTORS = (1, 2, 4, 4, 8, 8, 8, 8)
"""Channels of the convolutions over the width; 64 gives VGG-A."""
POOLED = frozenset({1, 2, 4, 6})
"""Convolutions followed by a pool: four, since 28 pixels do not survive VGG's five."""
CLASSES = 10
DEPTH = len(FACTORS)

NORMS: dict[str, Callable[[int], nn.Module] | None] = {
    "std": None,
    "std_noise": None,
    "bn": BatchNorm,
    "noisy": BatchNorm,
    "l1": lambda units: LpNorm(units, 1),
    "l2": lambda units: LpNorm(units, 2),
    "linf": lambda units: LpNorm(units, math.inf),
}
NOISY = frozenset({"noisy", "std_noise"})


class Block(nn.Module):
    """Convolution, normalisation, noise, ReLU, pool; absent ones are identities, so that every place has a name.

    The output of `conv` is what a normalisation would see, that of `noise` the input of the non-linearity.
    """

    def __init__(self, inputs: int, outputs: int, arm: str, pooled: bool) -> None:
        super().__init__()
        build = NORMS[arm]
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=build is None)
        self.norm = nn.Identity() if build is None else build(outputs)
        self.noise = AffineNoise() if arm in NOISY else nn.Identity()
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2) if pooled else nn.Identity()

    def forward(self, images: Tensor) -> Tensor:
        """(N, C, H, W) to (N, C', H, W), halved where pooled."""
        found: Tensor = self.pool(self.relu(self.noise(self.norm(self.conv(images)))))
        return found


class VGG(nn.Module):
    """Eight blocks `conv1` ... `conv8` and a linear layer `logits`; (N, 1, 28, 28) to (N, 10)."""

    def __init__(self, arm: str, width: int, *, seed: int) -> None:
        """Glorot-uniform weights from `seed`, the same in every arm, and zero biases; ConfigError: no such arm."""
        super().__init__()
        if arm not in NORMS:
            raise ConfigError(f"arm {arm!r} is not known", where="VGG", remedy=f"allowed: {', '.join(NORMS)}")
        channels = [1, *(factor * width for factor in FACTORS)]
        for number in range(1, DEPTH + 1):
            block = Block(channels[number - 1], channels[number], arm, number in POOLED)
            self.add_module(f"conv{number}", block)
        self.logits = nn.Linear(channels[-1], CLASSES)
        generator = torch.Generator().manual_seed(derive_seed(seed, "initial weights"))
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.xavier_uniform_(module.weight, generator=generator)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, 10)."""
        found = images
        for number in range(1, DEPTH + 1):
            found = self.get_submodule(f"conv{number}")(found)
        logits: Tensor = self.logits(found.flatten(1))
        return logits


def split(run: str) -> tuple[str, float]:
    """The arm and the learning rate of a run: `bn-0.1` is batch norm at 0.1, `std-1e-7` is fine too.

    Raises:
        ConfigError: another form.
    """
    arm, _, rate = run.partition("-")
    try:
        return arm, float(rate)
    except ValueError:
        raise ConfigError(f"run {run!r}", where="batch_norm", remedy="write arm-rate, e.g. bn-0.1") from None

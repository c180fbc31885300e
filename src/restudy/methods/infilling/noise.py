"""Random numbers that belong to an image, not to its place in a batch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from restudy.errors import ConfigError


class Noise:
    """One generator for each image: what an image draws is the same alone and in any batch.

    Args:
        seeds: one for each image. device: where the draws go; they are always made on the CPU.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu") -> None:
        if not seeds:
            raise ConfigError("no seeds for the noise", remedy="give one for each image")
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.device = device

    def uniform(self, *shape: int) -> Tensor:
        """Float32 (images, *shape), uniform in [0, 1)."""
        return torch.stack([torch.rand(shape, generator=g) for g in self.generators]).to(self.device)

    def normal(self, *shape: int) -> Tensor:
        """Float32 (images, *shape), standard normal."""
        return torch.stack([torch.randn(shape, generator=g) for g in self.generators]).to(self.device)

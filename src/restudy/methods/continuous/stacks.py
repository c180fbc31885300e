"""Discrete relatives of the ODE block: residual, plain and weight-tied stacks of the same convolutions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from restudy.methods.continuous.fields import ConvField, group_norm


class ConvBlock(nn.Module):
    """norm, ReLU, conv 3x3, norm, ReLU, conv 3x3 on (B, C, H, W): the body of a residual block, without its skip."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(group_norm(channels) for _ in range(2))
        self.convs = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))

    def forward(self, z: Tensor) -> Tensor:
        """Same shape as z."""
        for norm, conv in zip(self.norms, self.convs, strict=True):
            z = conv(torch.relu(norm(z)))
        return z


class PlainStack(nn.Module):
    """Every block replaces what it is given: z <- block(z)."""

    def __init__(self, channels: int, blocks: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(ConvBlock(channels) for _ in range(blocks))

    def forward(self, z: Tensor) -> Tensor:
        """Same shape as z."""
        for block in self.blocks:
            z = block(z)
        return z


class ResidualStack(PlainStack):
    """Every block adds to what it is given: z <- z + block(z)."""

    def forward(self, z: Tensor) -> Tensor:
        """Same shape as z."""
        for block in self.blocks:
            z = z + block(z)
        return z


class TiedStack(nn.Module):
    """One field applied `blocks` times with unit steps: z <- z + f(t, z) for t = 0, 1, ...

    The same arithmetic as Euler's method on [0, blocks] (Chen et al. 2018, equations 1 and 2).
    """

    def __init__(self, channels: int, blocks: int, field: nn.Module | None = None) -> None:
        super().__init__()
        self.field = ConvField(channels) if field is None else field
        self.blocks = blocks

    def forward(self, z: Tensor) -> Tensor:
        """Same shape as z."""
        for number in range(self.blocks):
            z = z + self.field(torch.tensor(float(number), dtype=z.dtype, device=z.device), z)
        return z

"""Right-hand sides f(t, z). No in-place operation: traces and adjoints differentiate through them twice."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TimedConv(nn.Module):
    """3x3 convolution over (B, C, H, W) with the time as one more channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels + 1, channels, 3, padding=1)

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        """Same shape as z."""
        return self.conv(torch.cat([torch.ones_like(z[:, :1]) * t, z], 1))  # type: ignore[no-any-return]


def group_norm(channels: int) -> nn.GroupNorm:
    """Group normalisation with two channels to a group, as 32 groups of 64 channels have."""
    return nn.GroupNorm(max(1, channels // 2), channels)


class ConvField(nn.Module):
    """norm, ReLU, conv, norm, ReLU, conv, norm; the time is a channel of both convolutions (authors' MNIST example)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList(group_norm(channels) for _ in range(3))
        self.first, self.second = TimedConv(channels), TimedConv(channels)

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        """dz/dt, (B, C, H, W) as z."""
        hidden = self.first(t, torch.relu(self.norms[0](z)))
        hidden = self.second(t, torch.relu(self.norms[1](hidden)))
        return self.norms[2](hidden)  # type: ignore[no-any-return]


class MlpField(nn.Module):
    """Smooth fully connected field on (..., dimensions), with as many hidden layers as `hidden` has sizes.

    Args:
        dimensions: of z. hidden: sizes. timed: the time is one more input. activation: a smooth one, made once a layer.
    """

    def __init__(
        self,
        dimensions: int,
        hidden: tuple[int, ...],
        *,
        timed: bool = False,
        activation: type[nn.Module] = nn.Tanh,
    ) -> None:
        super().__init__()
        self.timed = timed
        sizes = [dimensions + timed, *hidden, dimensions]
        layers: list[nn.Module] = []
        for before, after in zip(sizes, sizes[1:], strict=False):
            layers += [nn.Linear(before, after), activation()]
        self.net = nn.Sequential(*layers[:-1])

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        """dz/dt, of z's shape."""
        if self.timed:
            z = torch.cat([z, torch.ones_like(z[..., :1]) * t], -1)
        return self.net(z)  # type: ignore[no-any-return]


class PlanarField(nn.Module):
    """sum_n s_n(t) u_n tanh(w_n . z + b_n) over `width` units (Chen et al. 2018, section 4).

    The gates s_n(t) in (0, 1) are a small network of the time. The trace of the Jacobian is a sum of `width` dot
    products; nothing is differentiated and no determinant is taken.
    """

    def __init__(self, dimensions: int, width: int, gate_hidden: int = 16) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.randn(width, dimensions) / width)
        self.w = nn.Parameter(torch.randn(width, dimensions))
        self.b = nn.Parameter(torch.randn(width))
        self.gates = nn.Sequential(nn.Linear(1, gate_hidden), nn.Tanh(), nn.Linear(gate_hidden, width), nn.Sigmoid())

    def forward(self, t: Tensor, z: Tensor) -> Tensor:
        """dz/dt, (B, dimensions)."""
        return self.both(t, z)[0]

    def trace(self, t: Tensor, z: Tensor) -> Tensor:
        """Trace of the Jacobian with regard to z, in closed form: (B,)."""
        return self.both(t, z)[1]

    def both(self, t: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """dz/dt (B, dimensions) and the trace (B,), sharing the activations."""
        gate = self.gates(t.reshape(1, 1))[0]
        hidden = torch.tanh(z @ self.w.T + self.b)
        trace = (1 - hidden * hidden) @ (gate * (self.u * self.w).sum(1))
        return (hidden * gate) @ self.u, trace

"""Continuous normalising flows with a closed-form trace, and the planar normalising flow they are compared with."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.methods.continuous.fields import PlanarField
from restudy.methods.continuous.solve import Solver


def normal_log_density(z: Tensor, scale: float) -> Tensor:
    """log N(z; 0, scale^2 I) in nats: (B, D) to (B,)."""
    constant = z.shape[1] * (math.log(scale) + 0.5 * math.log(2 * math.pi))
    return -0.5 * (z / scale).square().sum(1) - constant


class _Augmented(nn.Module):
    """d(z, log p)/dt = (f, -tr df/dz): the instantaneous change of variables (Chen et al. 2018, theorem 1)."""

    def __init__(self, field: PlanarField) -> None:
        super().__init__()
        self.field = field

    def forward(self, t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Slopes of z (B, D) and of log p (B,)."""
        slope, trace = self.field.both(t, state[0])
        return slope, -trace


class ContinuousFlow(nn.Module):
    """A density on R^D: the base N(0, scale^2 I) at time 0, carried by an ODE to time `end`.

    Both directions cost the same, so the model samples and evaluates densities alike.
    """

    def __init__(self, field: PlanarField, solver: Solver, *, end: float = 1.0, scale: float = 1.0) -> None:
        super().__init__()
        self.augmented = _Augmented(field)
        self.solver, self.end, self.scale = solver, end, scale

    @property
    def field(self) -> PlanarField:
        """The right-hand side."""
        return self.augmented.field

    def transport(self, z: Tensor, start: float, end: float) -> tuple[Tensor, Tensor]:
        """Carry points (B, D) from one time to another: where they end, and the change of log p on the way (B,)."""
        times = torch.tensor([start, end], dtype=z.dtype, device=z.device)
        moved, change = self.solver(self.augmented, (z, torch.zeros_like(z[:, 0])), times)
        return moved[-1], change[-1]

    def push(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Base points (B, D) to samples (B, D) and their log density (B,), nats."""
        x, change = self.transport(z, 0.0, self.end)
        return x, normal_log_density(z, self.scale) + change

    def sample(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Samples (count, D) and their log density (count,), nats."""
        u = self.field.u
        z = torch.randn(count, u.shape[1], generator=generator, dtype=u.dtype).to(u.device) * self.scale
        return self.push(z)

    def invert(self, x: Tensor) -> Tensor:
        """Base points (B, D) of samples (B, D)."""
        return self.transport(x, self.end, 0.0)[0]

    def log_prob(self, x: Tensor) -> Tensor:
        """log density of points (B, D), nats: carry them back and add the trace integral, (B,)."""
        z, change = self.transport(x, self.end, 0.0)
        return normal_log_density(z, self.scale) - change


class PlanarFlow(nn.Module):
    """K planar layers z + u tanh(w . z + b) on N(0, scale^2 I) (Rezende & Mohamed 2015, section 4.1).

    u is bent so that every layer is invertible, but the inverse has no closed form: samples and their density only.
    """

    def __init__(self, dimensions: int, layers: int, scale: float = 1.0) -> None:
        super().__init__()
        self.u = nn.Parameter(torch.randn(layers, dimensions) / layers)
        self.w = nn.Parameter(torch.randn(layers, dimensions))
        self.b = nn.Parameter(torch.randn(layers))
        self.scale = scale

    def bent(self) -> Tensor:
        """u with w . u > -1 in every layer: (layers, dimensions)."""
        product = (self.u * self.w).sum(1, keepdim=True)
        return self.u + (F.softplus(product) - 1 - product) * self.w / self.w.square().sum(1, keepdim=True)

    def push(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Base points (B, D) to samples (B, D) and their log density (B,), nats."""
        log_density = normal_log_density(z, self.scale)
        for u, w, b in zip(self.bent(), self.w, self.b, strict=True):
            hidden = torch.tanh(z @ w + b)
            log_density = log_density - torch.log(1 + (1 - hidden.square()) * (u @ w))
            z = z + hidden[:, None] * u
        return z, log_density

"""Event times as an inhomogeneous Poisson process whose intensity is read from an ODE's state."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import integrate
from torch import Tensor, nn

from restudy.methods.continuous.fields import MlpField
from restudy.methods.continuous.solve import Solver


class _WithIntegral(nn.Module):
    """d(z, Lambda)/dt = (f, lambda(z)): the intensity is integrated by the same solver, at the same tolerance."""

    def __init__(self, field: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.field, self.head = field, head

    def forward(self, t: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Slopes of z (latent,) and of the expected count, a scalar."""
        return self.field(t, state[0]), self.intensity(state[0])

    def intensity(self, z: Tensor) -> Tensor:
        """lambda(z) > 0, events per unit of time: (..., latent) to (...)."""
        return F.softplus(self.head(z)[..., 0])


class PoissonProcess(nn.Module):
    """lambda(z(t)) on [0, end], z(0) learned (Chen et al. 2018, section 5.1).

    Args:
        latent, hidden: dimensions of z and of the field's two hidden layers.
        end: of the window, in units of time. solver: for z and the integral.
    """

    def __init__(self, latent: int, hidden: int, *, end: float, solver: Solver) -> None:
        super().__init__()
        self.system = _WithIntegral(MlpField(latent, (hidden, hidden)), nn.Linear(latent, 1))
        self.initial = nn.Parameter(torch.randn(latent))
        self.end, self.solver = end, solver

    def solve(self, times: Tensor) -> tuple[Tensor, Tensor]:
        """States (T, latent) and expected counts since 0 (T,) at increasing `times` (T,), the first of which is 0."""
        state, count = self.solver(self.system, (self.initial, self.initial.new_zeros(())), times)
        return state, count

    def intensity(self, times: Tensor) -> Tensor:
        """lambda at increasing `times` (T,), the first of which is 0: (T,)."""
        return self.system.intensity(self.solve(times)[0])

    def log_likelihood(self, events: Tensor, sequences: int = 1) -> Tensor:
        """sum_i log lambda(t_i) - sequences * int_0^end lambda dt, in nats.

        Args:
            events: (N,), increasing, strictly inside the window; of all sequences together. sequences: how many
                independent realisations they come from.
        """
        edge = events.new_tensor([0.0, self.end])
        state, count = self.solve(torch.cat([edge[:1], events, edge[1:]]))
        return self.system.intensity(state[1:-1]).log().sum() - sequences * count[-1]

    @torch.no_grad()
    def log_likelihood_by_quadrature(self, events: Tensor, sequences: int = 1, tolerance: float = 1e-10) -> float:
        """The same from a solution by SciPy and adaptive quadrature of its intensity: an independent path, slow."""

        def flat(t: float, z: Any) -> Any:
            moved: Tensor = self.system.field(events.new_tensor(t), events.new_tensor(z))
            return moved.numpy()

        start = self.initial.detach().numpy()
        dense = integrate.solve_ivp(
            flat, (0.0, self.end), start, rtol=tolerance, atol=tolerance, dense_output=True, method="DOP853"
        ).sol

        def intensity(t: Any) -> Any:
            return self.system.intensity(events.new_tensor(dense(t).T)).numpy()

        total, _ = integrate.quad(intensity, 0.0, self.end, limit=400, epsabs=1e-9, epsrel=1e-9)
        return float(np.log(intensity(events.numpy())).sum() - sequences * total)

"""The latent ODE: a recurrent encoder, a latent trajectory that an ODE defines at all times, and a decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from restudy.methods.continuous.fields import MlpField
from restudy.methods.continuous.recurrent import Cell, cell, gaussian_nll
from restudy.methods.continuous.solve import Solver


class LatentOde(nn.Module):
    """q(z0 | observations) from a network that reads backwards in time; z(t) by an ODE; x ~ N(decoder(z(t)), spread^2).

    Chen et al. 2018, section 5 and the authors' spiral example: f 4-20-20-4 with ELU, 25 encoder units, decoder 4-20-2.

    Args:
        observed, latent: dimensions. hidden: of field and decoder. encoder: units. kind: cell of the encoder.
        spread: standard deviation of the likelihood. solver: may be exchanged at any time.
    """

    def __init__(
        self,
        observed: int,
        latent: int,
        hidden: int,
        encoder: int,
        *,
        kind: Cell,
        spread: float,
        solver: Solver,
    ) -> None:
        super().__init__()
        self.spread, self.solver = spread, solver
        self.encoder = cell(kind, observed + 1, encoder)
        self.posterior = nn.Linear(encoder, 2 * latent)
        self.field = MlpField(latent, (hidden, hidden), activation=nn.ELU)
        self.decoder = nn.Sequential(nn.Linear(latent, hidden), nn.ReLU(), nn.Linear(hidden, observed))

    def encode(self, values: Tensor, times: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of z0, (B, latent) each.

        With every observation goes the time since the one before it (since 0 for the first), so that irregular
        observations can be told from regular ones.

        Args:
            values: (B, N, observed). times: (B, N), increasing, from 0 on.
        """
        gaps = times.diff(dim=1, prepend=torch.zeros_like(times[:, :1]))
        _, state = self.encoder(torch.cat([values, gaps[..., None]], -1).flip(1))
        mean, log_variance = self.posterior(state[-1]).chunk(2, 1)
        return mean, log_variance

    def trajectory(self, z0: Tensor, grid: Tensor) -> Tensor:
        """Latent states (T, B, latent) at the times of `grid` (T,), whose first is the time of z0."""
        return self.solver(self.field, z0, grid)

    def loss(self, values: Tensor, index: Tensor, grid: Tensor, noise: Tensor) -> Tensor:
        """Negative ELBO, nats per observed number, with one draw of z0.

        Args:
            values: (B, N, observed). index: (B, N) int64, where the observations stand in `grid`. grid: (T,), from 0
                on. noise: (B, latent), standard normal.
        """
        mean, log_variance = self.encode(values, grid[index])
        path = self.trajectory(mean + (0.5 * log_variance).exp() * noise, grid).transpose(0, 1)
        at = path.gather(1, index[..., None].expand(-1, -1, path.shape[2]))
        likelihood = gaussian_nll(values - self.decoder(at), self.spread).sum((1, 2))
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(1)
        return (likelihood + divergence).mean() / values[0].numel()

    @torch.no_grad()
    def predict(self, values: Tensor, times: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
        """From the posterior mean: observations (B, T, observed) and latent states (B, T, latent) at all of `grid`."""
        mean, _ = self.encode(values, times)
        path = self.trajectory(mean, grid).transpose(0, 1)
        return self.decoder(path), path

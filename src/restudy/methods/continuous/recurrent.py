"""Recurrent networks on irregular observations: encoders read backwards, forecasters predict the next observation."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

Cell = Literal["rnn", "gru"]


def cell(kind: Cell, inputs: int, hidden: int) -> nn.RNNBase:
    """A tanh RNN or a GRU over (B, N, inputs)."""
    if kind == "gru":
        return nn.GRU(inputs, hidden, batch_first=True)
    return nn.RNN(inputs, hidden, batch_first=True)


def gaussian_nll(error: Tensor, spread: float) -> Tensor:
    """-log N(error; 0, spread^2), nats, elementwise."""
    return 0.5 * (error / spread).square() + math.log(spread) + 0.5 * math.log(2 * math.pi)


class Recurrent(nn.Module):
    """Forecaster: reads an observation and predicts the next one, as a Gaussian of fixed spread.

    Args:
        observed: dimensions of an observation. hidden: of the state. kind: of the cell.
        gaps: the time to the next observation is one more input; without it the model does not know about time.
        spread: standard deviation of the likelihood, that of the observation noise.
    """

    def __init__(self, observed: int, hidden: int, *, kind: Cell, gaps: bool, spread: float) -> None:
        super().__init__()
        self.gaps, self.spread = gaps, spread
        self.cell = cell(kind, observed + gaps, hidden)
        self.head = nn.Linear(hidden, observed)

    def _inputs(self, values: Tensor, gaps: Tensor) -> Tensor:
        return torch.cat([values, gaps[..., None]], -1) if self.gaps else values

    def loss(self, values: Tensor, times: Tensor) -> Tensor:
        """Negative log-likelihood of every observation but the first, nats per number.

        Args:
            values: (B, N, observed). times: (B, N), increasing.
        """
        inputs = self._inputs(values[:, :-1], times.diff(dim=1))
        predicted = self.head(self.cell(inputs)[0])
        return gaussian_nll(values[:, 1:] - predicted, self.spread).mean()

    @torch.no_grad()
    def forecast(self, values: Tensor, times: Tensor, future: Tensor) -> Tensor:
        """Predictions (B, M, observed) at `future` times (B, M), each fed back to predict the next."""
        ahead = torch.cat([times, future], 1).diff(dim=1)
        read = values.shape[1]
        outputs, state = self.cell(self._inputs(values, ahead[:, :read]))
        found = [self.head(outputs[:, -1])]
        for place in range(1, future.shape[1]):
            inputs = self._inputs(found[-1], ahead[:, read + place - 1])[:, None]
            output, state = self.cell(inputs, state)
            found.append(self.head(output[:, 0]))
        return torch.stack(found, 1)

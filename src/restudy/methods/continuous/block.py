"""A layer whose output is the solution of an ODE, with its evaluations counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from restudy.methods.continuous.solve import Solver


class Counted(nn.Module):
    """A field that counts its evaluations in `calls`; set it to 0 to count anew."""

    def __init__(self, field: nn.Module) -> None:
        super().__init__()
        self.field = field
        self.calls = 0

    def forward(self, t: Tensor, state: Any) -> Any:
        """The field's value; one more call."""
        self.calls += 1
        return self.field(t, state)


@dataclass(frozen=True)
class Evaluations:
    """Evaluations of the field (NFE): in the forward pass, and in the backward pass of the adjoint method."""

    forward: int
    backward: int


class OdeBlock(nn.Module):
    """z(end) for z(start) = input, where dz/dt = field(t, z): any shape, kept (Chen et al. 2018, section 3).

    Attributes:
        solver: may be exchanged at any time; the weights do not depend on it.
        start, end: the interval, 0 and 1 unless given.
    """

    def __init__(self, field: nn.Module, solver: Solver, start: float = 0.0, end: float = 1.0) -> None:
        super().__init__()
        self.counted = Counted(field)
        self.solver, self.start, self.end = solver, start, end
        self._forward = 0

    def forward(self, z: Tensor) -> Tensor:
        """Solve from `start` to `end`; counts start anew."""
        self.counted.calls = 0
        times = torch.tensor([self.start, self.end], dtype=z.dtype, device=z.device)
        found: Tensor = self.solver(self.counted, z, times)[-1]
        self._forward = self.counted.calls
        return found

    @property
    def evaluations(self) -> Evaluations:
        """Of the last forward pass, and of the adjoint's backward pass since (0 with backpropagation)."""
        return Evaluations(self._forward, self.counted.calls - self._forward)

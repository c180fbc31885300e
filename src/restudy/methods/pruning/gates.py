"""One Hard Concrete gate for each attention head of a Transformer (Voita and others 2019, section 6)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from restudy.methods.pruning.hard_concrete import (
    DEFAULT,
    HardConcrete,
    deterministic_gate,
    probability_open,
    sample_gate,
)


class HeadGates(nn.Module):
    """Gates by kind of attention; independent of the input, one draw for a batch.

    Args:
        shapes: kind of attention -> (layers, heads). start: log_alpha at the beginning; 2 opens nearly all, so that a
            trained model starts as it is. law: the distribution.
    """

    def __init__(self, shapes: Mapping[str, tuple[int, int]], start: float = 2.0, law: HardConcrete = DEFAULT) -> None:
        super().__init__()
        self.law = law
        self.log_alpha = nn.ParameterDict({k: nn.Parameter(torch.full(s, start)) for k, s in shapes.items()})

    def sample(self, generator: torch.Generator) -> dict[str, Tensor]:
        """Gates of a training step, (layers, H) for each kind; noise is drawn on the CPU."""
        found = {}
        for kind, log_alpha in self.log_alpha.items():
            noise = torch.rand(log_alpha.shape, generator=generator, dtype=log_alpha.dtype)
            found[kind] = sample_gate(log_alpha, noise.to(log_alpha.device), self.law)
        return found

    def penalty(self) -> Tensor:
        """The expected number of open gates, a scalar."""
        return torch.stack([probability_open(a, self.law).sum() for a in self.log_alpha.values()]).sum()

    @torch.no_grad()
    def deterministic(self) -> dict[str, Tensor]:
        """Gates at test time, (layers, H)."""
        return {kind: deterministic_gate(a, self.law) for kind, a in self.log_alpha.items()}

    @torch.no_grad()
    def binary(self) -> dict[str, Tensor]:
        """Test-time gates set to 1 where they are above one half and to 0 elsewhere."""
        return {kind: (gate > 0.5).to(gate.dtype) for kind, gate in self.deterministic().items()}

    @torch.no_grad()
    def open_by_probability(self) -> int:
        """How many gates have P(g = 0) < 1/2: the other way to count what is left."""
        return sum(int((probability_open(a, self.law) > 0.5).sum()) for a in self.log_alpha.values())

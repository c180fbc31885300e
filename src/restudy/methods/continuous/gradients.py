"""Gradients of a loss of z(t1): by the adjoint equations written out, and by backpropagation through the solver.

torchdiffeq's own adjoint is what studies use; the equations stand here so that it can be checked against them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.methods.continuous.solve import Solver


@dataclass(frozen=True)
class Gradients:
    """dL/dz(t0) in the state's shape, dL/dtheta by parameter, dL/dt0 and dL/dt1 (scalars)."""

    state: Tensor
    parameters: tuple[Tensor, ...]
    start: Tensor
    end: Tensor

    def flat(self) -> Tensor:
        """State and parameters as one vector."""
        return torch.cat([part.reshape(-1) for part in (self.state, *self.parameters)])


def backprop_gradients(
    field: nn.Module, z0: Tensor, start: float, end: float, loss: Callable[[Tensor], Tensor], solver: Solver
) -> Gradients:
    """Gradients by autograd: through the solver's operations, or by torchdiffeq's adjoint where `solver` says so."""
    z0 = z0.detach().requires_grad_()
    times = torch.tensor([start, end], dtype=z0.dtype, device=z0.device, requires_grad=True)
    value = loss(solver(field, z0, times)[-1])
    parameters = list(field.parameters())
    found = torch.autograd.grad(value, [z0, times, *parameters], allow_unused=True)
    filled = [torch.zeros_like(p) if g is None else g for g, p in zip(found, [z0, times, *parameters], strict=True)]
    return Gradients(filled[0], tuple(filled[2:]), filled[1][0], filled[1][1])


def adjoint_gradients(
    field: nn.Module, z1: Tensor, start: float, end: float, loss: Callable[[Tensor], Tensor], solver: Solver
) -> Gradients:
    """Solve [z, a, dL/dtheta, dL/dt] backwards from z(t1), with a(t) = dL/dz(t) (Chen et al. 2018, algorithm 1).

    da/dt = -a^T df/dz;  dL/dtheta = -int_{t1}^{t0} a^T df/dtheta dt;  dL/dt1 = a(t1)^T f(z(t1), t1);
    dL/dt0 = -dL/dt1 - int_{t1}^{t0} a^T df/dt dt, which equals -a(t0)^T f(z(t0), t0).

    Args:
        field: f(t, z). z1: the solution at `end`. loss: scalar function of it. solver: for the augmented system.
    """
    parameters = list(field.parameters())
    leaf = z1.detach().requires_grad_()
    (a1,) = torch.autograd.grad(loss(leaf), leaf)
    t1 = torch.tensor(end, dtype=z1.dtype, device=z1.device)
    with torch.no_grad():
        at_end = (a1 * field(t1, z1)).sum()

    def augmented(t: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        with torch.enable_grad():
            t, z = t.detach().requires_grad_(), state[0].detach().requires_grad_()
            value = field(t, z)
            # The sign belongs to all three: -a^T df/d(t, z, theta).
            slopes = torch.autograd.grad(value, [t, z, *parameters], -state[1], allow_unused=True)
        inputs = [t, z, *parameters]
        filled = [torch.zeros_like(i) if s is None else s for s, i in zip(slopes, inputs, strict=True)]
        return (value.detach(), filled[1], filled[0], *filled[2:])

    initial = (z1.detach(), a1, -at_end, *(torch.zeros_like(p) for p in parameters))
    times = torch.tensor([end, start], dtype=z1.dtype, device=z1.device)
    with torch.no_grad():
        _, state, at_start, *slopes = (part[-1] for part in solver(augmented, initial, times))
    return Gradients(state, tuple(slopes), at_start, at_end)


def relative_gap(found: Gradients | Sequence[Tensor], reference: Gradients | Sequence[Tensor]) -> float:
    """Euclidean distance over the reference's length, over state and parameters together."""
    mine, theirs = (
        g.flat() if isinstance(g, Gradients) else torch.cat([t.reshape(-1) for t in g]) for g in (found, reference)
    )
    return float((mine - theirs).norm() / theirs.norm())

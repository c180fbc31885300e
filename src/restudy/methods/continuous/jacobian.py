"""What a flow would cost, or can be checked with, the long way: full Jacobians, their traces and determinants."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def full_jacobian(function: Callable[[Tensor], Tensor], z: Tensor, *, differentiable: bool = False) -> Tensor:
    """Jacobian of a function that treats examples alone, by one backward pass a dimension: (B, D) to (B, D, D).

    `differentiable`: the result can be differentiated in turn, as training with it would need.
    """
    z = z.detach().requires_grad_()
    value = function(z)
    rows = [
        torch.autograd.grad(value[:, i].sum(), z, retain_graph=True, create_graph=differentiable)[0]
        for i in range(z.shape[1])
    ]
    return torch.stack(rows, 1)


def log_abs_det(function: Callable[[Tensor], Tensor], z: Tensor, *, differentiable: bool = False) -> Tensor:
    """log |det| of the full Jacobian of `function` at each of (B, D): (B,)."""
    found: Tensor = torch.linalg.slogdet(full_jacobian(function, z, differentiable=differentiable)).logabsdet
    return found


def autograd_trace(function: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """Trace of the Jacobian at each of (B, D), by one backward pass a dimension: (B,)."""
    return torch.diagonal(full_jacobian(function, z), dim1=1, dim2=2).sum(1)

"""Second derivatives of the loss: along the gradient, and the largest one. Exact, by differentiating twice."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from restudy.methods.landscape.probe import Probe, Weights


def curvature_along_gradient(probe: Probe) -> float:
    """Return g'Hg / ||g||^2 on the probe's batch in its mode: one Hessian-vector product; NaN where g is 0."""
    with probe.graph() as (_, leaves, gradient):
        direction = [g.detach() for g in gradient.values()]
        product = _product(list(gradient.values()), list(leaves.values()), direction)
        squared = _inner(direction, direction)
        return _inner(direction, product) / squared if squared > 0 else math.nan


def top_eigenvalue(probe: Probe, *, iterations: int = 20, seed: int = 0, tolerance: float = 1e-3) -> float:
    """Return the Hessian's eigenvalue of largest absolute value, by power iteration from a random vector.

    Args:
        iterations: Hessian-vector products at most; it ends earlier when the estimate changes by less than
            `tolerance` times itself. seed: of the first vector.
    """
    generator = torch.Generator().manual_seed(seed)
    with probe.graph() as (_, leaves, gradient):
        flat = list(gradient.values())
        vector = [torch.randn(g.shape, generator=generator, dtype=g.dtype).to(g.device) for g in flat]
        estimate = math.nan
        for _ in range(iterations):
            length = math.sqrt(_inner(vector, vector))
            if not length > 0 or not math.isfinite(length):
                break
            vector = [v / length for v in vector]
            product = _product(flat, list(leaves.values()), vector)
            before, estimate = estimate, _inner(vector, product)
            if abs(estimate - before) <= tolerance * abs(estimate):
                break
            vector = product
        return estimate


def hessian_vector(probe: Probe, vector: Weights) -> dict[str, Tensor]:
    """Return the Hessian times a vector given by parameter name."""
    with probe.graph() as (_, leaves, gradient):
        found = _product(list(gradient.values()), list(leaves.values()), [vector[n] for n in leaves])
        return dict(zip(leaves, found, strict=True))


def _product(gradient: list[Tensor], leaves: list[Tensor], vector: list[Tensor]) -> list[Tensor]:
    found = torch.autograd.grad(gradient, leaves, vector, retain_graph=True, allow_unused=True, materialize_grads=True)
    return [f.detach() for f in found]


def _inner(first: list[Tensor], second: list[Tensor]) -> float:
    return float(sum(float((a.double() * b.double()).sum()) for a, b in zip(first, second, strict=True)))

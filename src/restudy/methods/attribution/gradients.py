"""Gradient, gradient x input, integrated gradients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.attribution.passes import Problem
from restudy.methods.attribution.registry import Method, Option, register

QUADRATURES = ("riemann_middle", "gausslegendre")


def gradient(problem: Problem) -> Tensor:
    """Return d logit / d input, (N, C, H, W), computed once for a problem."""
    result: Tensor = problem.remember("gradient", lambda: problem.gradients(problem.inputs, problem.target))
    return result


def quadrature(rule: str, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Return positions in (0, 1) and weights that sum to 1, both (steps,) float64.

    `riemann_middle`: midpoints of equal intervals; `gausslegendre`: exact for polynomials up to degree 2
    steps - 1.
    """
    if rule == "riemann_middle":
        return (np.arange(steps) + 0.5) / steps, np.full(steps, 1.0 / steps)
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return (nodes + 1.0) / 2.0, weights / 2.0


def path_attribution(problem: Problem, points: Tensor, options: Mapping[str, Any]) -> Tensor:
    """Return integrated gradients at points (N, C, H, W): (x - x0) times the mean gradient from x0 to x.

    Options `steps`, `quadrature`, `baseline` as in `integrated_gradients`. Steps run together, `batch_size`
    images in a pass.
    """
    baseline = baseline_of(options["baseline"], points)
    difference = points - baseline
    positions, weights = quadrature(options["quadrature"], options["steps"])
    group = max(1, problem.batch_size // len(points))
    total = torch.zeros_like(points)
    for start in range(0, len(positions), group):
        part = torch.as_tensor(positions[start : start + group], dtype=points.dtype, device=points.device)
        weight = torch.as_tensor(weights[start : start + group], dtype=points.dtype, device=points.device)
        path = baseline + part.view(-1, 1, 1, 1, 1) * difference
        grads = problem.gradients(path.flatten(0, 1), problem.target.repeat(len(part)))
        total += torch.tensordot(weight, grads.view(path.shape), dims=1)
    return difference * total


def baseline_of(value: float | Tensor, points: Tensor) -> Tensor:
    """Return the baseline as a tensor that broadcasts over (N, C, H, W); ConfigError if it does not."""
    baseline = torch.as_tensor(value, dtype=points.dtype, device=points.device)
    sizes = zip(reversed(baseline.shape), reversed(points.shape), strict=False)
    if baseline.dim() > points.dim() or any(size not in (1, full) for size, full in sizes):
        raise ConfigError(
            f"baseline has shape {tuple(baseline.shape)}",
            remedy=f"it must broadcast to {tuple(points.shape)}",
        )
    return baseline


PATH_OPTIONS = (
    Option("steps", 50, (int,), "points on the path from the baseline to the input", minimum=1),
    Option("quadrature", "riemann_middle", (str,), "rule of the integral", choices=QUADRATURES),
    Option("baseline", 0.0, (float, int, Tensor), "start of the path, broadcast to (N, C, H, W)"),
)

register(
    Method(
        "gradient",
        "d logit / d input",
        "Simonyan, Vedaldi, Zisserman 2014, arXiv:1312.6034, section 3",
        lambda problem, options: gradient(problem),
    )
)
register(
    Method(
        "gradient_x_input",
        "input times gradient",
        "Shrikumar et al. 2016, arXiv:1605.01713, section 1",
        lambda problem, options: problem.inputs * gradient(problem),
    )
)
register(
    Method(
        "integrated_gradients",
        "(input - baseline) times the mean gradient on the straight path between them",
        "Sundararajan, Taly, Yan 2017, arXiv:1703.01365, section 3",
        lambda problem, options: path_attribution(problem, problem.inputs, options),
        options=PATH_OPTIONS,
        passes=lambda options: float(options["steps"]),
    )
)

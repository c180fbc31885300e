"""Stage `descend`: steps that plain gradient descent and heavy-ball momentum need on random quadratics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restudy.bench.context import Context, Outputs


def descend(
    context: Context,
    *,
    seeds: Sequence[int],
    condition_number: float,
    dimensions: int,
    goal: float,
    max_steps: int,
    instances: int,
) -> Outputs:
    """Run both methods from the same start on the same quadratics.

    Returns:
        `steps`: seed, method, metric, value, unit; `curves`: seed, method, step, error.
    """
    rows: list[tuple[int, int, str, str, float, str]] = []
    curves: list[tuple[int, str, int, float]] = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for instance in range(instances):
            inner = generator.uniform(1, condition_number, dimensions - 2)
            curvature, start = np.append(inner, [1, condition_number]), generator.normal(size=dimensions)
            for method, momentum in (("plain", None), ("momentum", _best(condition_number)), ("zero", 0.0)):
                error = errors(curvature, start, momentum, max_steps)
                reached = np.flatnonzero(error <= goal)
                steps = int(reached[0]) if len(reached) else max_steps
                rows.append((seed, instance, method, "steps", float(steps), "steps"))
                if instance == 0:
                    points = np.unique(np.geomspace(1, max_steps, 60).astype(int)) - 1
                    curves.extend((seed, method, int(i), float(error[i])) for i in points)
    names = ("seed", "instance", "method", "metric", "value", "unit")
    return {
        "steps": pa.table({n: list(c) for n, c in zip(names, zip(*rows, strict=True), strict=True)}),
        "curves": pa.table(
            dict(zip(("seed", "method", "step", "error"), map(list, zip(*curves, strict=True)), strict=True))
        ),
    }


def errors(
    curvature: NDArray[np.float64], start: NDArray[np.float64], momentum: float | None, steps: int
) -> NDArray[np.float64]:
    """Relative error after each step, float64 of shape (steps,).

    Args:
        curvature: eigenvalues of the quadratic, shape (dimensions,).
        start: first iterate, shape (dimensions,).
        momentum: heavy-ball coefficient; None is plain gradient descent with its best step size.
        steps: number of steps.
    """
    low, high = curvature.min(), curvature.max()
    rate = 4 / (np.sqrt(low) + np.sqrt(high)) ** 2 if momentum else 2 / (low + high)
    here, before = start.copy(), start.copy()
    found = np.empty(steps)
    for step in range(steps):
        here, before = here - rate * curvature * here + (momentum or 0.0) * (here - before), here
        found[step] = np.linalg.norm(here) / np.linalg.norm(start)
    return found


def _best(condition_number: float) -> float:
    """Polyak's coefficient for a quadratic of known conditioning."""
    root = np.sqrt(condition_number)
    return float(((root - 1) / (root + 1)) ** 2)

"""What is run: plain gradient descent and heavy-ball momentum on random quadratics. Replace it by the paper's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

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
    """Run both methods from the same start on the same quadratics, and momentum 0 as a check."""
    rows: list[dict[str, Any]] = []
    curves: list[dict[str, Any]] = []
    for seed in seeds:
        generator = np.random.default_rng(seed)
        for instance in range(instances):
            inner = generator.uniform(1, condition_number, dimensions - 2)
            curvature, start = np.append(inner, [1, condition_number]), generator.normal(size=dimensions)
            for method, momentum in (("plain", None), ("momentum", _best(condition_number)), ("zero", 0.0)):
                error = errors(curvature, start, momentum, max_steps)
                reached = np.flatnonzero(error <= goal)
                steps = float(reached[0] + 1) if len(reached) else float(max_steps)
                where = {"seed": seed, "instance": instance, "method": method}
                rows.append({**where, "metric": "steps", "value": steps, "unit": "steps"})
                rows.append({**where, "metric": "log_steps", "value": np.log(steps), "unit": "nats"})
                if instance == 0:
                    points = np.unique(np.geomspace(1, max_steps, 60).astype(int))
                    curves += [{"seed": seed, "method": method, "step": n, "error": error[n - 1]} for n in points]
    return {"steps": rows, "curves": curves}


def errors(
    curvature: NDArray[np.float64], start: NDArray[np.float64], momentum: float | None, steps: int
) -> NDArray[np.float64]:
    """Relative error after each step, float64 (steps,); both methods with their best step size.

    Args:
        curvature: eigenvalues of the quadratic, (dimensions,).
        start: first iterate, (dimensions,).
        momentum: heavy-ball coefficient; None is plain gradient descent.
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

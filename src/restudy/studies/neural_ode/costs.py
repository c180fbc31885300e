"""Stage `costs`: CPU time of a closed-form trace against a determinant, by dimension (claim O14)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from restudy.bench.context import Context, Outputs
from restudy.methods.continuous import PlanarField, log_abs_det
from restudy.methods.models import derive_seed
from restudy.studies.neural_ode.tidy import table


def time_traces(
    context: Context, *, seeds: Sequence[int], dimensions: Sequence[int], width: int, batch: int, repeats: int
) -> Outputs:
    """Time both ways of a change of variables for one field evaluation, float32; the least of `repeats` counts.

    Returns the volatile `trace_timings`: `trace`, the closed form of the planar field; `determinant`, log |det| of
    the full Jacobian of one step z + f(0, z).
    """
    rows = []
    for seed in seeds:
        for size in dimensions:
            torch.manual_seed(derive_seed(seed, "costs", size))
            field, z, t = PlanarField(size, width), torch.randn(batch, size), torch.zeros(())

            def trace(field: PlanarField = field, z: torch.Tensor = z, t: torch.Tensor = t) -> object:
                with torch.no_grad():
                    return field.trace(t, z)

            def determinant(field: PlanarField = field, z: torch.Tensor = z, t: torch.Tensor = t) -> object:
                return log_abs_det(lambda points: points + field(t, points), z)

            for method, run, count in (("trace", trace, 20), ("determinant", determinant, 1)):
                seconds = least(run, repeats, count)
                rows.append({"seed": seed, "method": method, "dimensions": size, "seconds": seconds})
    return {"trace_timings": table("trace_timings", rows)}


def least(run: Callable[[], object], repeats: int, count: int) -> float:
    """CPU seconds of a call: the least of `repeats` means over `count` calls."""
    run()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(count):
            run()
        found.append((time.process_time() - start) / count)
    return min(found)

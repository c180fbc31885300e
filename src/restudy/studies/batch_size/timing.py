"""Stage `timing`: CPU time of a step of one MLP at growing batch sizes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.sweeps.programs import build
from restudy.methods.training import keep_freed_memory
from restudy.studies.batch_size.tidy import SGD, TIMINGS
from restudy.studies.batch_size.workloads import CLASSES, make_model, parse


def time_steps(
    context: Context, *, seeds: Sequence[int], timed_batch_sizes: Sequence[int], timed_steps: int, side: int
) -> Outputs:
    """Return `timings`: median CPU seconds of a step of one MLP with plain SGD, random inputs, one thread."""
    keep_freed_memory()
    rows: list[dict[str, Any]] = []
    for seed in seeds:
        for batch_size in timed_batch_sizes:
            value = median_step(batch_size, timed_steps, side, seed, context.device)
            at = {"seed": seed, "batch_size": batch_size, "metric": "cpu_per_step", "unit": "seconds"}
            rows.append({**at, "value": value})
    return {"timings": pa.Table.from_pylist(rows, schema=TIMINGS)}


def median_step(batch_size: int, steps: int, side: int, seed: int, device: str = "cpu") -> float:
    """Median process CPU time of a step, in seconds."""
    model = make_model(parse(SGD), side, derive_seed(seed, "timing")).to(device)
    program = build([model], "sgd", torch.tensor([0.01]), torch.tensor([0.0]))
    generator = torch.Generator().manual_seed(derive_seed(seed, "timed batch"))
    x = torch.randn(batch_size, side * side, generator=generator).to(device)
    y = torch.randint(CLASSES, (batch_size,), generator=generator).to(device)
    found = []
    for _ in range(steps + 5):
        start = time.process_time()
        program.step(x, y)
        found.append(time.process_time() - start)
    return float(np.median(found[5:]))

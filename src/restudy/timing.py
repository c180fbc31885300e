"""CPU time of this process, for benchmarks: ratios are read from it, never seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any


def race(runners: Sequence[Callable[[], Any]], repeats: int) -> tuple[list[Any], list[float]]:
    """Run each once to warm up, then all in turn `repeats` times.

    Returns what the first calls returned, and the least CPU seconds of each.
    """
    results = [run() for run in runners]
    best = [float("inf")] * len(runners)
    for _ in range(repeats):
        for index, run in enumerate(runners):
            start = time.process_time()
            run()
            best[index] = min(best[index], time.process_time() - start)
    return results, best


def least(run: Callable[[], Any], repeats: int) -> float:
    """Least CPU seconds of a call, after one to warm up."""
    return race([run], repeats)[1][0]

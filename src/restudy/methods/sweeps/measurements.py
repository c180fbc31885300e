"""Steps to a result and budgets over a table of measurements (Shallue et al. 2018, sections 3 and 4). No torch.

A table of measurements has one row for each measured step of each trial:

| column | type | meaning |
|---|---|---|
| `batch_size` | int64 | examples in a step |
| `trial_id` | int64 | number of the trial within its batch size |
| `step` | int64 | updates taken before the measurement |
| `status` | string | of the trial: `complete`, `incomplete` (ended before its budget), `infeasible` (diverged) |
| a metric | float64 | e.g. `validation_error`; NaN or null where it was not measured |

Only complete trials count. A goal is reached when the metric is strictly past it: below for errors, above for scores.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from restudy.errors import ConfigError

COMPLETE, INCOMPLETE, INFEASIBLE = "complete", "incomplete", "infeasible"
STATUSES = (COMPLETE, INCOMPLETE, INFEASIBLE)
KEYS = ("batch_size", "trial_id", "step", "status")
Better = Literal["lower", "higher"]
BETTER: dict[str, Better] = {"lower": "lower", "higher": "higher"}
Numbers = npt.NDArray[Any]


def first_steps(
    measurements: pa.Table, goal: float, *, metric: str = "validation_error", better: Better = "lower"
) -> pa.Table:
    """Return one row per trial: `batch_size`, `trial_id`, `status`, and `steps`, the first measured step past the goal.

    `steps` is float64, NaN for a trial that never got there; trials of any status are listed, in the order of batch
    size and trial. Raises ConfigError for absent columns, an unknown status, or a trial with two of them.
    """
    batch, trial, step, status, value = _columns(measurements, metric)
    past = value < goal if _lower(better) else value > goal
    keys = np.stack([batch, trial], 1)
    unique, at = np.unique(keys, axis=0, return_inverse=True) if len(keys) else (keys.reshape(0, 2), batch)
    at = at.reshape(-1)
    steps = np.full(len(unique), np.inf)
    np.minimum.at(steps, at[past], step[past].astype(np.float64))
    found = np.zeros(len(unique), dtype=status.dtype)
    found[at] = status
    if len(at) and (found[at] != status).any():
        raise ConfigError("a trial has two statuses", where="measurements", remedy="give each trial its final status")
    steps[np.isinf(steps)] = np.nan
    return pa.table(
        {
            "batch_size": pa.array(unique[:, 0], pa.int64()),
            "trial_id": pa.array(unique[:, 1], pa.int64()),
            "status": pa.array([STATUSES[i] for i in found], pa.string()),
            "steps": pa.array(steps, pa.float64()),
        }
    )


def fewest_steps(trials: pa.Table) -> pa.Table:
    """Return the best complete trial of each batch size, from a table as `first_steps` returns it.

    Columns: `batch_size`, `trial_id` (null where none reached the goal), `steps` (float64, NaN there). Ties go to the
    smaller trial. A batch size without a complete trial keeps its row, NaN.
    """
    batch, trial, steps = (trials[name].to_numpy() for name in ("batch_size", "trial_id", "steps"))
    complete = pc.equal(trials["status"], COMPLETE).to_numpy(zero_copy_only=False).astype(bool)
    sizes = sorted(set(batch.tolist()))
    names: list[int | None] = []
    fewest: list[float] = []
    for size in sizes:
        chosen = np.flatnonzero((batch == size) & complete & ~np.isnan(steps))
        order = sorted((float(steps[i]), int(trial[i])) for i in chosen)
        names.append(order[0][1] if order else None)
        fewest.append(order[0][0] if order else float("nan"))
    columns = {"batch_size": pa.array(sizes, pa.int64()), "trial_id": pa.array(names, pa.int64())}
    return pa.table({**columns, "steps": pa.array(fewest, pa.float64())})


def steps_to_result(
    measurements: pa.Table, goal: float, *, metric: str = "validation_error", better: Better = "lower"
) -> pa.Table:
    """Return S(B): for each batch size the first measured step past the goal, least over its complete trials.

    Args:
        measurements: as the module says. goal: strictly to be passed. metric: its column. better: `lower` or `higher`.

    Returns:
        `batch_size`, `trial_id` (null where the goal was never reached), `steps` (float64, NaN there), by batch size.

    Raises:
        ConfigError: absent columns, an unknown status, a trial with two of them, another word for `better`.
    """
    return fewest_steps(first_steps(measurements, goal, metric=metric, better=better))


def apply_step_budget(measurements: pa.Table, steps: float) -> pa.Table:
    """Return the measurements of at most so many steps."""
    return measurements.filter(pc.less_equal(measurements["step"], steps))


def apply_example_budget(measurements: pa.Table, examples: float) -> pa.Table:
    """Return the measurements of at most so many examples, batch size times step; epochs times the data set's size."""
    seen = pc.multiply(measurements["batch_size"], measurements["step"])
    return measurements.filter(pc.less_equal(seen, examples))


def best_errors(measurements: pa.Table, *, metric: str = "validation_error", better: Better = "lower") -> pa.Table:
    """Return the best measured value of each batch size over its complete trials: `batch_size`, `trial_id`, `value`.

    Ties go to the smaller trial, and within it to nothing: the value is the same. Batch sizes without a finite value
    of a complete trial are left out. Raises ConfigError as `first_steps` does.
    """
    batch, trial, _, status, value = _columns(measurements, metric)
    chosen = (status == STATUSES.index(COMPLETE)) & np.isfinite(value)
    signed = value if _lower(better) else -value
    order = np.lexsort((trial[chosen], signed[chosen], batch[chosen]))
    sizes, first = np.unique(batch[chosen][order], return_index=True)
    at = order[first]
    return pa.table(
        {
            "batch_size": pa.array(sizes, pa.int64()),
            "trial_id": pa.array(trial[chosen][at], pa.int64()),
            "value": pa.array(value[chosen][at], pa.float64()),
        }
    )


def _lower(better: str) -> bool:
    if better not in ("lower", "higher"):
        raise ConfigError(f"better is {better!r}", remedy="allowed: lower, higher")
    return better == "lower"


def _columns(measurements: pa.Table, metric: str) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Batch size, trial, step, place of the status in STATUSES, and the metric with NaN for null."""
    absent = [name for name in (*KEYS, metric) if name not in measurements.column_names]
    if absent:
        raise ConfigError(f"no column {', '.join(absent)}", where="measurements", remedy=f"needed: {', '.join(KEYS)}")
    place = pc.index_in(measurements["status"], value_set=pa.array(STATUSES))
    if place.null_count:
        raise ConfigError("an unknown status", where="measurements", remedy=f"known: {', '.join(STATUSES)}")
    whole = [measurements[name].to_numpy() for name in KEYS[:3]]
    value = pc.fill_null(measurements[metric].cast(pa.float64()), float("nan")).to_numpy()
    return whole[0], whole[1], whole[2], place.to_numpy(), value

"""What a training function of a user's own must do, and how one trial of it is run and recorded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from restudy.errors import ConfigError
from restudy.methods.sweeps.measurements import COMPLETE, INCOMPLETE, INFEASIBLE
from restudy.own_model import one_line

DIVERGED = 2.0
"""A loss above this multiple of the first one makes a trial infeasible."""
Train = Callable[..., Iterable[Any]]
RECORDS = pa.schema(
    [("batch_size", pa.int64()), ("trial_id", pa.int64()), ("step", pa.int64()), ("status", pa.string())]
    + [("value", pa.float64())]
)


def run_trial(train: Train, *, batch_size: int, trial_id: int, steps: int, **rates: Any) -> pa.Table:
    """Run one trial: `train(batch_size=, learning_rate=, momentum=, steps=, seed=)` yields what it measures.

    Each item is `(step, value)` or `(step, value, loss)`: the updates taken so far, increasing, the metric that the
    goal is about, and optionally the training loss. The function is stopped at the first item of `steps` or more.

    Returns:
        One row per item, table `RECORDS`. The trial is `infeasible` when a value or loss is not finite, when a loss is
        above twice the first, or when the function raises FloatingPointError or OverflowError; `incomplete` when it
        ends before `steps`; else `complete`.

    Raises:
        ConfigError: items of another form, steps that do not increase, any other error of the function.
    """
    rows: list[tuple[int, float]] = []
    status, first, where = INCOMPLETE, math.nan, f"batch size {batch_size}, trial {trial_id}"
    try:
        items: Any = train(batch_size=batch_size, steps=steps, **rates)
        if not isinstance(items, Iterable):
            what = f"the training function returns {type(items).__name__}"
            raise ConfigError(what, where=where, remedy="yield (step, value) while it trains")
        for item in items:
            step, value, loss = _item(item, where)
            if rows and step <= rows[-1][0]:
                raise ConfigError(f"step {step} after step {rows[-1][0]}", where=where, remedy="yield growing steps")
            first = loss if math.isnan(first) else first
            rows.append((step, value))
            if not math.isfinite(value) or math.isinf(loss) or _is_nan(item) or loss > DIVERGED * first:
                status = INFEASIBLE
                break
            if step >= steps:
                status = COMPLETE
                break
    except (FloatingPointError, OverflowError):
        status = INFEASIBLE
    except ConfigError:
        raise
    except Exception as error:
        text = f"the training function failed: {one_line(error)}"
        raise ConfigError(text, where=where, remedy="run it alone with these arguments") from error
    rows = rows or [(0, math.nan)]
    columns = [[batch_size] * len(rows), [trial_id] * len(rows), [s for s, _ in rows], [status] * len(rows)]
    return pa.table([*(pa.array(c) for c in columns), pa.array([v for _, v in rows], pa.float64())], schema=RECORDS)


def _item(item: Any, where: str) -> tuple[int, float, float]:
    """Step, value and loss (NaN where none is given)."""
    try:
        step, value, *rest = item
        if len(rest) > 1 or isinstance(item, str | bytes | dict | set):
            raise ValueError
        return int(step), float(value), float(rest[0]) if rest else math.nan
    except (TypeError, ValueError):
        raise ConfigError(
            f"{item!r:.60} is not (step, value) or (step, value, loss)",
            where=where,
            remedy="yield tuples of two or three numbers",
        ) from None


def _is_nan(item: Any) -> bool:
    """Whether a loss was given and is not a number."""
    return len(item) > 2 and math.isnan(float(item[2]))

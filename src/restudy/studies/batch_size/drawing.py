"""Names in figures, and what several figures draw. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from restudy.plotting.style import series
from restudy.studies.batch_size.trials import curve
from restudy.tables import Tables, levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = {
    "fashion-mlp64-sgd": "MLP 64, SGD",
    "fashion-mlp64-momentum": "MLP 64, momentum",
    "fashion-mlp64-nesterov": "MLP 64, Nesterov",
    "fashion-mlp32-momentum": "MLP 32, momentum",
    "fashion-mlp128x3-momentum": "MLP 3 x 128, momentum",
    "fashion_half-mlp64-momentum": "half of the data, momentum",
    "fashion-softmax-sgd": "softmax regression, SGD",
    "mnist5k-mlp64-sgd": "MNIST digits, MLP 64, SGD",
    "fashion-cnn-momentum": "CNN, momentum",
}
LOOKS = series(list(NAMES))
GUIDE: dict[str, Any] = {"color": "0.4", "linestyle": "--", "linewidth": 0.8}


def workloads_of(tables: Tables) -> list[str]:
    """The workloads of a run in the order of `NAMES`."""
    present = set(tables["trials"]["workload"].to_pylist())
    return [name for name in NAMES if name in present]


def curves(tables: Tables, workload: str, metric: str = "steps") -> tuple[Any, Any]:
    """Batch sizes (n,) and steps (seeds, n), NaN where the goal was not reached."""
    found = [curve(tables, workload, seed, metric) for seed in levels(tables["trials"])]
    sizes = sorted({b for one in found for b in one})
    return np.array(sizes), np.array([[one.get(b, np.nan) for b in sizes] for one in found])


def geometric_mean(values: Any) -> Any:
    """Over the first axis, leaving out NaN; NaN where nothing is left."""
    logs, known = np.log(values), ~np.isnan(values)
    count = known.sum(0)
    return np.where(count > 0, np.exp(np.where(known, logs, 0).sum(0) / np.maximum(count, 1)), np.nan)


def perfect_scaling(axis: Axes, sizes: Any, first: float) -> None:
    """The dashed guide: steps halve when the batch doubles."""
    axis.plot(sizes, first * sizes[0] / sizes, **GUIDE)


def log_axes(axes: Iterable[Axes], **labels: str) -> None:
    """Both axes logarithmic, the batch size in powers of 2."""
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_yscale("log")
        axis.set(**labels)


def first_steps_table(rows: pa.Table) -> pa.Table:
    """What `bootstrap_scaling` takes, from the rows of `outcomes`."""
    return rows.select(["batch_size", "trial_id", "status", "steps"])


def styled(name: str, **changes: Any) -> Mapping[str, Any]:
    """A workload's look, with changes."""
    return {**LOOKS[name], **changes}

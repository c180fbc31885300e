"""One number per replicate from the results tables. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Tables = Mapping[str, pa.Table]


def plain_minus_momentum_log_steps(tables: Tables) -> pa.Table:
    """Per seed: mean over quadratics of ln(steps of plain) - ln(steps of momentum); positive favours momentum."""
    return _paired(tables["steps"], "plain", "momentum", np.log)


def zero_momentum_deviation(tables: Tables) -> pa.Table:
    """Per seed: largest difference in steps between plain descent and momentum 0."""
    return _paired(tables["steps"], "plain", "zero", np.asarray)


def _paired(table: pa.Table, first: str, second: str, scale: Callable[[np.ndarray], np.ndarray]) -> pa.Table:
    seeds = sorted(set(table["seed"].to_pylist()))
    values = []
    for seed in seeds:
        mine = table.filter(pc.equal(table["seed"], seed)).sort_by("instance")
        one, two = (mine.filter(pc.equal(mine["method"], method))["value"].to_numpy() for method in (first, second))
        values.append(float(np.mean(scale(one) - scale(two))))
    return pa.table({"replicate": seeds, "value": values})

"""Whether a search can be believed: is the best trial inside the searched range, and are enough trials feasible?

An optimum on the edge of the box fakes a plateau or a rule of scaling. numpy and pyarrow only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from restudy.methods.sweeps.measurements import COMPLETE, INFEASIBLE

OUTER = 0.05
"""Share of a logarithmic range at each end that counts as its edge."""
Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Edge:
    """Where the best trial lies in the logarithm of the searched range: 0 is the lower end, 1 the upper.

    `blocked`: some trial above the best one diverged, so the upper limit is the optimiser's and not the box's.
    """

    position: float
    blocked: bool

    @property
    def inside(self) -> bool:
        """True unless the best trial lies in the outer 5%: at the upper end this counts only where nothing diverged."""
        low, high = self.position >= OUTER, self.position <= 1 - OUTER or self.blocked
        return bool(low and high) and not math.isnan(self.position)


def edge_of(values: Array, steps: Array, feasible: npt.NDArray[np.bool_], low: float, high: float) -> Edge:
    """Place the best trial of one batch size in the range of a hyper-parameter.

    Args:
        values: (n,) the hyper-parameter of each trial, above 0. steps: (n,) first step past the goal, NaN if never.
        feasible: (n,) false for trials that diverged. low, high: the ends of the searched range.

    Returns:
        NaN as the position where no feasible trial reached the goal, which is not inside.
    """
    reached = np.where(feasible, steps, np.nan)
    if np.isnan(reached).all():
        return Edge(math.nan, False)
    best = values[int(np.nanargmin(reached))]
    place = math.log(best / low) / math.log(high / low)
    return Edge(place, bool((values[~feasible] > best).any()))


def outer_advantage(values: Array, steps: Array, low: float, high: float) -> float:
    """Steps of the best trial in the outer 5% of a log range over those of the best inner one; below .9 is a warning.

    `steps` (n,) is NaN for trials that do not count. 1 where no outer trial reached the goal, 0 where only outer ones.
    """
    place = np.log(values / low) / math.log(high / low)
    outer = (place < OUTER) | (place > 1 - OUTER)
    best_outer = np.nanmin(np.append(steps[outer], np.inf), initial=np.inf)
    best_inner = np.nanmin(np.append(steps[~outer], np.inf), initial=np.inf)
    if np.isinf(best_outer):
        return 1.0
    return 0.0 if np.isinf(best_inner) else float(best_outer / best_inner)


def feasible_shares(trials: pa.Table) -> dict[int, float]:
    """Share of trials that did not diverge, by batch size, from a table as `first_steps` returns it."""
    batch, status = trials["batch_size"].to_numpy(), np.array(trials["status"].to_pylist())
    ended = np.isin(status, (COMPLETE, INFEASIBLE))
    return {
        int(b): float((status[(batch == b) & ended] == COMPLETE).mean()) if ((batch == b) & ended).any() else math.nan
        for b in sorted(set(batch.tolist()))
    }

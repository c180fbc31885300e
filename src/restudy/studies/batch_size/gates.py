"""Whether a sweep can be believed: the optimum inside the box, enough feasible trials, goals reached in time."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.methods.sweeps import COMPLETE, INFEASIBLE, edge_of, feasible_shares, outer_advantage
from restudy.studies.batch_size.tidy import (
    CONVEX,
    DEEP,
    DIGITS,
    HALF,
    MOMENTUM,
    NARROW,
    SGD,
    Tables,
    budgets,
    column,
    curve,
    ends_of,
    outcomes,
    replicates,
    seeds_of,
    where,
)

Statistic = Callable[[Tables], pa.Table]
MAY_BEAT = 0.9
"""Steps of the best trial in the outer 5% of the range of 1 - m over those of the best inner one, at least."""
LATE = 0.7
NEVER = 2.0


def inside_share(tables: Tables, workload: str, seed: int) -> float:
    """Share of the batch sizes whose best effective learning rate lies inside the searched range."""
    low, high = ends_of(tables, workload, "effective_learning_rate")
    trials, found = outcomes(tables, workload, seed), []
    for size in budgets(tables, workload):
        rows = where(trials, batch_size=size)
        feasible = np.array([s != INFEASIBLE for s in rows["status"].to_pylist()], dtype=bool)
        edge = edge_of(column(rows, "effective_learning_rate"), column(rows, "steps"), feasible, low, high)
        found.append(edge.inside)
    return float(np.mean(found))


def inner_share(tables: Tables, workload: str, seed: int) -> float:
    """Share of the batch sizes where no trial at the edge of 1 - m beats the best inner one by more than a tenth."""
    low, high = ends_of(tables, workload, "one_minus_momentum")
    trials, found = outcomes(tables, workload, seed), []
    for size in budgets(tables, workload):
        rows = where(trials, batch_size=size, status=COMPLETE)
        found.append(outer_advantage(1 - column(rows, "momentum"), column(rows, "steps"), low, high) >= MAY_BEAT)
    return float(np.mean(found))


def slowest_share(tables: Tables, workload: str, seed: int) -> float:
    """S over the step budget at the batch size where it is largest; 2 where the goal was never reached."""
    limits = budgets(tables, workload)
    shares = [s / limits[b] for b, s in curve(tables, workload, seed).items()]
    return float(max(NEVER if math.isnan(s) else s for s in shares))


def least_feasible(tables: Tables, workload: str, seed: int) -> float:
    """Share of feasible trials at the batch size where it is smallest."""
    return min(feasible_shares(outcomes(tables, workload, seed)).values())


def _over(
    workloads: tuple[str, ...],
    of: Callable[[Tables, str, int], float],
    worst: Callable[[list[float]], float],
    says: str,
) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        seeds = seeds_of(tables["trials"])
        return replicates({seed: worst([of(tables, name, seed) for name in workloads]) for seed in seeds})

    statistic.__doc__ = says
    return statistic


_BOTH = (SGD, MOMENTUM)
inside_sgd = _over((SGD,), inside_share, min, "Gate: share of B with the best rate inside the box, plain SGD.")
inside_both = _over(_BOTH, inside_share, min, "Gate: the same, the smaller of plain SGD and momentum.")
inside_digits = _over((DIGITS,), inside_share, min, "Gate: the same on MNIST digits.")
inner_momentum = _over((MOMENTUM,), inner_share, min, "Gate: share of B where the edge of 1 - m is not needed.")
slowest_sgd = _over((SGD,), slowest_share, max, "Gate: S over the budget at the slowest B, plain SGD.")
slowest_both = _over(_BOTH, slowest_share, max, "Gate: the same, the larger of plain SGD and momentum.")
slowest_digits = _over((DIGITS,), slowest_share, max, "Gate: the same on MNIST digits.")
inside_models = _over((NARROW, DEEP), inside_share, min, "Gate: share inside, the smaller of two models.")
inside_halves = _over((HALF, MOMENTUM), inside_share, min, "Gate: share inside, the smaller of half and all data.")
slowest_models = _over((NARROW, DEEP), slowest_share, max, "Gate: S over the budget, the larger of two models.")
slowest_halves = _over((HALF, MOMENTUM), slowest_share, max, "Gate: S over the budget, half and all data.")
feasible_models = _over((NARROW, DEEP), least_feasible, min, "Gate: least feasible share of two models.")
feasible_halves = _over((HALF, MOMENTUM), least_feasible, min, "Gate: least feasible share, half and all data.")
slowest_convex = _over((CONVEX,), slowest_share, max, "Gate: the same for softmax regression.")
enough_feasible_sgd = _over((SGD,), least_feasible, min, "Gate: least share of feasible trials, plain SGD.")
enough_feasible = _over(_BOTH, least_feasible, min, "Gate: the same, the smaller of plain SGD and momentum.")
enough_feasible_digits = _over((DIGITS,), least_feasible, min, "Gate: the same on MNIST digits.")


def late_gain_sgd(tables: Tables) -> pa.Table:
    """Gate: what the best error gains in the last 30% of the steps at the batch size where that is most, plain SGD."""
    limits = budgets(tables, SGD)
    found = {}
    for seed in seeds_of(tables["trials"]):
        rows = where(tables["measurements"], workload=SGD, seed=seed, kind="search", status=COMPLETE)
        gains = []
        for size, limit in limits.items():
            own = where(rows, batch_size=size)
            errors, steps = column(own, "validation_error"), column(own, "step")
            gains.append(errors[steps <= LATE * limit].min() - errors.min() if len(errors) else math.nan)
        found[seed] = float(max(gains))
    return replicates(found)

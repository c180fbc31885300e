"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

A replicate is the whole sweep of a seed; positive is the paper's direction. S is the least number of steps to the
stated goal over the complete trials of the search. Trials that never got there count with their step budget wherever a
ratio needs a number, which makes failures look milder than they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from restudy.methods.sweeps import fit_scaling, local_slopes, log_slope, noise_scale
from restudy.studies.batch_size import rules
from restudy.studies.batch_size.gates import (
    enough_feasible,
    enough_feasible_digits,
    enough_feasible_sgd,
    feasible_halves,
    feasible_models,
    inner_momentum,
    inside_both,
    inside_digits,
    inside_halves,
    inside_models,
    inside_sgd,
    late_gain_sgd,
    slowest_both,
    slowest_convex,
    slowest_digits,
    slowest_halves,
    slowest_models,
    slowest_sgd,
)
from restudy.studies.batch_size.quality import error_of_largest, errors_by_epoch_budget, errors_by_step_budget
from restudy.studies.batch_size.tidy import (
    CONVEX,
    DEEP,
    DIGITS,
    HALF,
    MOMENTUM,
    NARROW,
    SGD,
    BySeed,
    Tables,
    best_trials,
    curve,
    per_seed,
    replicates,
    seeds_of,
    where,
)

__all__ = [
    "enough_feasible",
    "enough_feasible_digits",
    "enough_feasible_sgd",
    "error_of_largest",
    "errors_by_epoch_budget",
    "errors_by_step_budget",
    "feasible_halves",
    "feasible_models",
    "inner_momentum",
    "inside_both",
    "inside_digits",
    "inside_halves",
    "inside_models",
    "inside_sgd",
    "late_gain_sgd",
    "slowest_both",
    "slowest_convex",
    "slowest_digits",
    "slowest_halves",
    "slowest_models",
    "slowest_sgd",
]
Statistic = Callable[[Tables], pa.Table]
MIDDLE = -0.975
"""Middle of the slopes that count as perfect scaling, -1.2 to -.75."""


def _identity(claim: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], claim=claim)
        return replicates(dict(zip(rows["case"].to_pylist(), rows["value"].to_pylist(), strict=True)))

    statistic.__doc__ = says
    return statistic


reading_error = _identity("X1", "Differences of steps to the result and budgets from loops over the definition.")
update_error = _identity("X2", "Per rule, depth and program: deviation of the parameters from torch.optim.SGD.")
noise_error = _identity("X3", "Per pair of batch sizes: error of both means in units of 4 standard errors.")


# B1, B8, B10, B14: the shape
def _small(tables: Tables, workload: str, seed: int) -> float:
    points = sorted(curve(tables, workload, seed).items())[:3]
    return log_slope([b for b, _ in points], [s for _, s in points])


def _large(tables: Tables, workload: str, seed: int) -> float:
    points = sorted(curve(tables, workload, seed).items())[-2:]
    return log_slope([b for b, _ in points], [s for _, s in points])


def _by_seed(workload: str, of: Callable[[Tables, str, int], float], says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(per_seed(tables, workload, lambda seed: of(tables, workload, seed)))

    statistic.__doc__ = says
    return statistic


def _from_middle(tables: Tables, workload: str, seed: int) -> float:
    return _small(tables, workload, seed) - MIDDLE


small_slope = _by_seed(SGD, _from_middle, "Slope of log S over the three smallest batches, minus -.975.")
large_slope = _by_seed(SGD, _large, "Slope of log S over the two largest batches.")
small_slope_digits = _by_seed(DIGITS, _from_middle, "As `small_slope`, on MNIST digits.")
large_slope_digits = _by_seed(DIGITS, _large, "As `large_slope`, on MNIST digits.")
large_slope_convex = _by_seed(CONVEX, _large, "As `large_slope`, for softmax regression.")


def slopes_by_region(tables: Tables) -> pa.Table:
    """Slope of log S in three groups: `small`, the first two intervals; `large`, the last; `middle`, between them."""
    rows = []
    for seed in seeds_of(tables["trials"]):
        points = sorted(curve(tables, SGD, seed).items())
        slopes = local_slopes([b for b, _ in points], [s for _, s in points])
        middle = float(slopes[2:-1].mean()) if len(slopes) > 3 else float("nan")
        named = {"small": float(slopes[:2].mean()), "middle": middle, "large": float(slopes[-1])}
        rows += [{"replicate": seed, "group": group, "value": value} for group, value in named.items()]
    return pa.Table.from_pylist(rows)


# B2, B3, B4, B12: what moves the curve
def _critical(tables: Tables, workload: str, seed: int) -> float:
    found = curve(tables, workload, seed)
    return fit_scaling(np.array(list(found), dtype=np.float64), np.array(list(found.values()))).b_crit


def _plateau(tables: Tables, workload: str, seed: int) -> float:
    points = sorted(curve(tables, workload, seed).items())
    return points[-1][1] / points[0][1]


def _first(tables: Tables, workload: str, seed: int) -> float:
    return min(curve(tables, workload, seed).items())[1]


def _ratio(above: str, below: str, of: Callable[[Tables, str, int], float], says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        top = per_seed(tables, above, lambda seed: of(tables, above, seed))
        base = per_seed(tables, below, lambda seed: of(tables, below, seed))
        return replicates({seed: top[seed] / base[seed] for seed in top})

    statistic.__doc__ = says
    return statistic


critical_momentum_over_sgd = _ratio(MOMENTUM, SGD, _critical, "B_crit with momentum over B_crit of plain SGD.")
steps_sgd_over_momentum = _ratio(SGD, MOMENTUM, _first, "S at the smallest batch: plain SGD over momentum.")
critical_deep_over_narrow = _ratio(DEEP, NARROW, _critical, "B_crit of 3 x 128 units over that of 32 units.")
critical_half_over_full = _ratio(HALF, MOMENTUM, _critical, "B_crit on half of the training images over all.")
plateau_sgd_over_momentum = _ratio(SGD, MOMENTUM, _plateau, "S(largest) / S(smallest): plain SGD over momentum.")
plateau_narrow_over_deep = _ratio(NARROW, DEEP, _plateau, "S(largest) / S(smallest): 32 units over 3 x 128.")


def critical_of_halves(tables: Tables) -> pa.Table:
    """Control: B_crit of plain SGD from the trials with even numbers over that from the odd ones."""
    even, odd = (rules.parity(tables, SGD, remainder) for remainder in (0, 1))
    return replicates({s: _critical(even, SGD, s) / _critical(odd, SGD, s) for s in seeds_of(tables["trials"])})


# B5, B9: learning rates
def linear_over_tuned(tables: Tables) -> pa.Table:
    """Median over B of S on the line of the linear rule over S of as many searched trials, momentum arm."""
    return replicates(rules.rule_over_tuned(tables, MOMENTUM, "linear"))


def square_root_over_tuned(tables: Tables) -> pa.Table:
    """The same for the square-root rule."""
    return replicates(rules.rule_over_tuned(tables, MOMENTUM, "square_root"))


def rerun_over_tuned(tables: Tables) -> pa.Table:
    """Control: the best trials trained again in the place of the rule's."""
    return replicates(rules.rule_over_tuned(tables, MOMENTUM, "rerun"))


def frozen_over_tuned(tables: Tables) -> pa.Table:
    """Median over B of S with the rates of the smallest batch over S with those of B, both trained again; momentum."""
    return replicates(rules.frozen_over_tuned(tables, MOMENTUM))


def _rates_by_batch(workload: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        sizes = sorted(set(where(tables["trials"], workload=workload, kind="search")["batch_size"].to_pylist()))
        rows = []
        for seed in seeds_of(tables["trials"]):
            best = best_trials(tables, workload, seed)
            for size in sizes:
                rate = best.get(size, {}).get("effective_learning_rate", float("nan"))
                rows.append({"replicate": seed, "x": float(size), "value": rate})
        return pa.Table.from_pylist(rows)

    statistic.__doc__ = says
    return statistic


best_rates_sgd = _rates_by_batch(SGD, "Best learning rate at every batch size, plain SGD.")
best_rates_momentum = _rates_by_batch(MOMENTUM, "Best effective learning rate at every batch size, momentum.")


# B7
def _simple(tables: Tables, workload: str) -> BySeed:
    """B_simple along the best trial of the smallest batch, up to its goal."""
    found: BySeed = {}
    for seed in seeds_of(tables["trials"]):
        rows = where(tables["noise"], workload=workload, seed=seed)
        small, big = (where(rows, metric=m)["value"].to_numpy() for m in ("small_norm", "big_norm"))
        known = np.isfinite(small) & np.isfinite(big)
        if not known.any():
            found[seed] = float("nan")
            continue
        sizes = {n: rows[n][0].as_py() for n in ("small_batch", "big_batch")}
        found[seed] = noise_scale(small[known], big[known], **sizes).simple
    return found


def simple_over_critical(tables: Tables) -> pa.Table:
    """B_simple over B_crit, plain SGD on Fashion-MNIST."""
    simple = _simple(tables, SGD)
    critical = per_seed(tables, SGD, lambda seed: _critical(tables, SGD, seed))
    return replicates({seed: simple[seed] / critical[seed] for seed in simple})


def orders_alike(tables: Tables) -> pa.Table:
    """Correlation of log B_simple with log B_crit over the workloads with plain SGD; 0 by chance."""
    names = (SGD, DIGITS, CONVEX)
    simple = {n: _simple(tables, n) for n in names}
    critical = {n: per_seed(tables, n, partial(_critical, tables, n)) for n in names}
    found: BySeed = {}
    for seed in seeds_of(tables["trials"]):
        logs = np.log([[one[n][seed] for n in names] for one in (simple, critical)])
        found[seed] = float(np.corrcoef(logs)[0, 1])
    return replicates(found)


# B8, B11, B13
def _test_over_validation(tables: Tables, workload: str, seed: int) -> float:
    validation, test = curve(tables, workload, seed), curve(tables, workload, seed, "steps_test")
    logs = [np.log(test[b] / s) for b, s in validation.items() if not np.isnan(s) and not np.isnan(test[b])]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


test_over_validation = _by_seed(SGD, _test_over_validation, "S by test error over S by validation error, mean over B.")


def _last_over_quarter(tables: Tables, workload: str, seed: int) -> float:
    points = sorted(curve(tables, workload, seed).items())
    return points[-1][1] / points[-2][1]


full_over_quarter = _by_seed(DIGITS, _last_over_quarter, "S with all n training images in a batch over S with n / 4.")


def _examples(tables: Tables, workload: str, seed: int) -> float:
    points = sorted(curve(tables, workload, seed).items())
    return points[-1][0] * points[-1][1] / (points[0][0] * points[0][1])


full_over_extrapolation = _by_seed(
    DIGITS, _examples, "S of full-batch descent over what perfect scaling from the smallest batch would give."
)


def examples_per_second(tables: Tables) -> pa.Table:
    """Examples per CPU second at each batch size (timing, this machine)."""
    rows = where(tables["timings"], metric="cpu_per_step").to_pylist()
    found = [{"replicate": r["seed"], "x": float(r["batch_size"]), "value": r["batch_size"] / r["value"]} for r in rows]
    return pa.Table.from_pylist(found)

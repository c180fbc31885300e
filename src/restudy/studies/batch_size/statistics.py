"""One number per replicate from the results tables, for every claim, control and gate.

A replicate is the whole sweep of a seed; positive is the paper's direction. S is the least number of steps to the
stated goal over the complete trials of the search. Trials that never got there count with their step budget wherever a
ratio needs a number, which makes failures look milder than they are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, each, largest, measure, smallest
from restudy.methods.sweeps import fit_scaling, local_slopes, log_slope, noise_scale
from restudy.tables import Tables, grouped, levels, where

from . import trials
from .trials import (
    CONVEX,
    DEEP,
    DIGITS,
    HALF,
    MOMENTUM,
    NARROW,
    SGD,
    Curve,
    best_trials,
    curve,
    errors_under,
    per_sweep,
)

MIDDLE = -0.975
"""Middle of the slopes that count as perfect scaling, -1.2 to -.75."""
Number = Callable[[Curve], float]

# Identities
identity = partial(each, "identities")
reading_error, update_error, noise_error = identity(claim="X1"), identity(claim="X2"), identity(claim="X3")


def of_curve(number: Number, workload: str, says: str) -> Measure:
    """Return a number of a workload's curve S(B)."""
    return per_sweep(workload, lambda tables, seed: number(curve(tables, workload, seed)), f"{says} ({workload})")


# B1, B8, B10, B12, B14: the shape
def small_slope_of(steps: Curve) -> float:
    """Return the slope of log S over the three smallest batches."""
    return log_slope(*zip(*sorted(steps.items())[:3], strict=True))


def large_slope_of(steps: Curve) -> float:
    """Return the slope of log S over the two largest batches."""
    return log_slope(*zip(*sorted(steps.items())[-2:], strict=True))


def plateau_of(steps: Curve) -> float:
    """Return S at the largest batch over S at the smallest."""
    return steps[max(steps)] / steps[min(steps)]


small = partial(of_curve, small_slope_of, says="slope of log S over the three smallest batches")
large = partial(of_curve, large_slope_of, says="slope of log S over the two largest batches")
plateau = partial(of_curve, plateau_of, says="S(largest) / S(smallest)")
small_slope, small_slope_digits = small(SGD) - MIDDLE, small(DIGITS) - MIDDLE
large_slope, large_slope_digits, large_slope_convex = large(SGD), large(DIGITS), large(CONVEX)
plateau_sgd_over_momentum = plateau(SGD) / plateau(MOMENTUM)
plateau_narrow_over_deep = plateau(NARROW) / plateau(DEEP)


@measure
def slopes_by_region(tables: Tables) -> pa.Table:
    """Slope of log S in three groups: `small`, the first two intervals; `large`, the last; `middle`, between them."""
    found: dict[str, dict[int, float]] = {"small": {}, "middle": {}, "large": {}}
    for seed in levels(tables["trials"]):
        slopes = local_slopes(*zip(*sorted(curve(tables, SGD, seed).items()), strict=True))
        found["small"][seed], found["large"][seed] = float(slopes[:2].mean()), float(slopes[-1])
        found["middle"][seed] = float(slopes[2:-1].mean()) if len(slopes) > 3 else float("nan")
    return grouped(found)


# B2, B3, B4: what moves the curve
def critical_of(steps: Curve) -> float:
    """Return the critical batch size of a fit to the curve."""
    return fit_scaling(np.array(list(steps), dtype=np.float64), np.array(list(steps.values()))).b_crit


critical = partial(of_curve, critical_of, says="B_crit")
first = partial(of_curve, lambda steps: steps[min(steps)], says="S at the smallest batch")
critical_momentum_over_sgd = critical(MOMENTUM) / critical(SGD)
critical_deep_over_narrow = critical(DEEP) / critical(NARROW)
critical_half_over_full = critical(HALF) / critical(MOMENTUM)
steps_sgd_over_momentum = first(SGD) / first(MOMENTUM)


@measure
def critical_of_halves(tables: Tables) -> Values:
    """B_crit of plain SGD from the trials with even numbers over that from the odd ones."""
    even, odd = (trials.parity(tables, SGD, remainder) for remainder in (0, 1))
    seeds = levels(tables["trials"])
    return {s: critical_of(curve(even, SGD, s)) / critical_of(curve(odd, SGD, s)) for s in seeds}


# B5, B9: learning rates
def rule(kind: str) -> Measure:
    """Return S of a rule, or of the best trials again, over S of as many searched trials; momentum."""
    formula = f"median over B of S ({kind}) / S (search, as many trials)"
    return Measure(partial(trials.rule_over_tuned, workload=MOMENTUM, kind=kind), formula)


linear_over_tuned, square_root_over_tuned, rerun_over_tuned = rule("linear"), rule("square_root"), rule("rerun")
frozen_over_tuned = Measure(
    partial(trials.frozen_over_tuned, workload=MOMENTUM),
    "median over B of S with the rates of the smallest batch / S with those of B, both trained again",
)


def best_rates(workload: str) -> Measure:
    """Return the best effective learning rate at every batch size."""

    def compute(tables: Tables) -> pa.Table:
        sizes = levels(where(tables["trials"], workload=workload, kind="search"), "batch_size")
        best = {seed: best_trials(tables, workload, seed) for seed in levels(tables["trials"])}
        name, none = "effective_learning_rate", float("nan")
        return grouped({float(b): {s: row.get(b, {}).get(name, none) for s, row in best.items()} for b in sizes}, "x")

    return Measure(compute, f"best effective learning rate at each B ({workload})")


best_rates_sgd, best_rates_momentum = best_rates(SGD), best_rates(MOMENTUM)


# B7: gradient noise
def simple_noise(workload: str) -> Measure:
    """Return B_simple along the best trial of the smallest batch, up to its goal."""

    def compute(tables: Tables) -> Values:
        found: Values = {}
        for seed in levels(tables["trials"]):
            rows = where(tables["noise"], workload=workload, seed=seed)
            norms = [where(rows, metric=m)["value"].to_numpy() for m in ("small_norm", "big_norm")]
            known = np.isfinite(norms[0]) & np.isfinite(norms[1])
            found[seed] = float("nan")
            if known.any():
                sizes = {name: rows[name][0].as_py() for name in ("small_batch", "big_batch")}
                found[seed] = noise_scale(norms[0][known], norms[1][known], **sizes).simple
        return found

    return Measure(compute, f"B_simple ({workload})")


simple_over_critical = simple_noise(SGD) / critical(SGD)


@measure
def orders_alike(tables: Tables) -> Values:
    """Correlation of log B_simple with log B_crit over the workloads with plain SGD; 0 by chance."""
    names = (SGD, DIGITS, CONVEX)
    pairs = [[of(name).values(tables) for name in names] for of in (simple_noise, critical)]
    logs = {seed: np.log([[one[seed] for one in row] for row in pairs]) for seed in levels(tables["trials"])}
    return {seed: float(np.corrcoef(both)[0, 1]) for seed, both in logs.items()}


# B8, B11, B13
@partial(per_sweep, SGD, says="S by test error / S by validation error, mean over B")
def test_over_validation(tables: Tables, seed: int) -> float:
    """Return the geometric mean over B of S by test error over S by validation error."""
    validation, test = curve(tables, SGD, seed), curve(tables, SGD, seed, "steps_test")
    logs = [np.log(test[b] / s) for b, s in validation.items() if not np.isnan(s) and not np.isnan(test[b])]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def last_over_quarter(steps: Curve) -> float:
    """Return S with all n training images in a batch over S with n / 4."""
    *_, quarter, full = sorted(steps)
    return steps[full] / steps[quarter]


full_over_quarter = of_curve(last_over_quarter, DIGITS, "S(n) / S(n / 4)")
full_over_extrapolation = of_curve(
    lambda steps: max(steps) * steps[max(steps)] / (min(steps) * steps[min(steps)]),
    DIGITS,
    "S of full-batch descent / what perfect scaling from the smallest batch gives",
)


@measure
def examples_per_second(tables: Tables) -> pa.Table:
    """Examples per CPU second at each batch size (timing, this machine)."""
    found: dict[float, dict[int, float]] = {}
    for row in where(tables["timings"], metric="cpu_per_step").to_pylist():
        found.setdefault(float(row["batch_size"]), {})[row["seed"]] = row["batch_size"] / row["value"]
    return grouped(found, "x")


# B6: quality
@partial(per_sweep, SGD, says="best validation error, smallest batch - largest")
def error_of_largest(tables: Tables, seed: int) -> float:
    """Return the best validation error without a budget: the smallest batch minus the largest; positive is no loss."""
    errors = errors_under(tables, SGD, "none", seed)
    return errors[min(errors)] - errors[max(errors)]


errors_by_step_budget = Measure(
    partial(trials.errors_by_batch, budget="steps", sign=-1.0), "-best error at equal steps"
)
errors_by_epoch_budget = Measure(
    partial(trials.errors_by_batch, budget="epochs", sign=1.0), "best error at equal examples"
)


# Gates: whether a sweep can be believed
def of_sweep(share: Callable[[Tables, str, int], float], workload: str, says: str) -> Measure:
    """Return a number of a workload's sweep."""
    return per_sweep(workload, lambda tables, seed: share(tables, workload, seed), f"{says} ({workload})")


inside = partial(of_sweep, trials.inside_share, says="share of B with the best rate inside the box")
slowest = partial(of_sweep, trials.slowest_share, says="S / step budget at the slowest B")
feasible = partial(of_sweep, trials.least_feasible, says="least share of feasible trials")
inside_sgd, inside_digits = inside(SGD), inside(DIGITS)
inside_both = smallest(inside(SGD), inside(MOMENTUM))
inside_models, inside_halves = smallest(inside(NARROW), inside(DEEP)), smallest(inside(HALF), inside(MOMENTUM))
inner_momentum = of_sweep(trials.inner_share, MOMENTUM, "share of B where the edge of 1 - m is not needed")
slowest_sgd, slowest_digits, slowest_convex = slowest(SGD), slowest(DIGITS), slowest(CONVEX)
slowest_both = largest(slowest(SGD), slowest(MOMENTUM))
slowest_models, slowest_halves = largest(slowest(NARROW), slowest(DEEP)), largest(slowest(HALF), slowest(MOMENTUM))
feasible_models = smallest(feasible(NARROW), feasible(DEEP))
feasible_halves = smallest(feasible(HALF), feasible(MOMENTUM))
enough_feasible_sgd, enough_feasible_digits = feasible(SGD), feasible(DIGITS)
enough_feasible = smallest(feasible(SGD), feasible(MOMENTUM))
late_gain_sgd = of_sweep(trials.late_gain, SGD, "gain of the best error in the last 30% of the steps, most over B")

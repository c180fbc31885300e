"""One number per replicate from the results tables, for every claim and gate.

The replicate is the seed (the draw for exact statements); positive is the paper's direction. Unless a name says
otherwise the nets are the convolutional ones at learning rate 0.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, each, mean, measure
from restudy.tables import Array, Tables, by_seed, levels, ordered, where

RATE = "0.1"
"""The paper's learning rate, at which the four arms are compared."""
STD, BN, NOISY, STD_NOISE = (f"{arm}-{RATE}" for arm in ("std", "bn", "noisy", "std_noise"))
SLOW, FAST, DEEP = "1e-7", "1e-6", "deep_"
LEVEL_AT = 0.6
"""The level to reach is the plain net's smoothed train accuracy at this share of the run."""
EARLY = 600
"""Covariate shift is summed up over the probes up to this step."""
Probes = dict[tuple[str, int], float]


# Train accuracy: gates, N2, N3, N6, N9
training = partial(mean, "training")
accuracy = partial(training, metric="train_accuracy")
std_diverged = training(run=STD, metric="diverged")
bn_minus_std = accuracy(run=BN) - accuracy(run=STD)
noisy_keeps_three_quarters = accuracy(run=NOISY) - accuracy(run=STD) - 0.75 * bn_minus_std
noisy_keeps_half = accuracy(run=NOISY) - accuracy(run=STD) - 0.5 * bn_minus_std
half_std_minus_noise = 0.5 * accuracy(run=STD) - accuracy(run=STD_NOISE)
l1_minus_bn, l2_minus_bn, linf_minus_bn = (
    accuracy(run=f"{norm}-{RATE}") - accuracy(run=BN) for norm in ("l1", "l2", "linf")
)


def at_best_rate(arm: str) -> Measure:
    """Return an arm's train accuracy at the learning rate that is best for it, by mean over seeds."""

    def compute(tables: Tables) -> Values:
        rows = where(tables["training"], arm=arm, metric="train_accuracy")
        by_rate = [by_seed(rows, run=run) for run in levels(rows, "run")]
        means = [float(np.nanmean(list(values.values()))) for values in by_rate]
        return dict(by_rate[int(np.argmax(means))]) if by_rate else {}

    return Measure(compute, f"train accuracy of {arm} at its own best learning rate")


std_best_accuracy, bn_best_accuracy = at_best_rate("std"), at_best_rate("bn")


# Speed: N1, N2
def steps_ratio(run: str) -> Measure:
    """Return steps to the plain net's level at 60% of its run: plain over another run.

    A run that never reaches it counts with its whole length, which speaks against it.
    """

    def compute(tables: Tables) -> Values:
        found = {}
        for seed in levels(tables["curves"]):
            steps, plain = ordered(tables["curves"], "step", "accuracy", run=STD, seed=seed)
            other_steps, other = ordered(tables["curves"], "step", "accuracy", run=run, seed=seed)
            if not len(steps) or not len(other_steps):
                found[seed] = math.nan
                continue
            level = smoothed(plain)[np.searchsorted(steps, LEVEL_AT * steps[-1])]
            found[seed] = reached(steps, smoothed(plain), level) / reached(other_steps, smoothed(other), level)
        return found

    return Measure(compute, f"steps to the plain net's level, {STD} / {run}")


def smoothed(values: Array) -> Array:
    """Average each window with its two neighbours, (windows,); the ends have one."""
    padded = np.concatenate([[np.nan], values, [np.nan]])
    return np.asarray(np.nanmean(np.stack([padded[:-2], padded[1:-1], padded[2:]]), axis=0), dtype=np.float64)


def reached(steps: Array, accuracy: Array, level: float) -> float:
    """Return the step at which a level is first reached, between two windows; the last step where it never is."""
    above = np.flatnonzero(accuracy >= level)
    if not len(above):
        return float(steps[-1])
    place = int(above[0])
    if place == 0:
        return float(steps[0])
    low, high = accuracy[place - 1], accuracy[place]
    return float(steps[place - 1] + (steps[place] - steps[place - 1]) * (level - low) / (high - low))


bn_steps_ratio, noisy_steps_ratio = steps_ratio(BN), steps_ratio(NOISY)


# Probes on the way: N4, N5, N11, N12
def probes(table: pa.Table, run: str, seed: int, metric: str) -> Probes:
    """Return a metric of a run by layer ("" where it has none) and step."""
    rows = where(table, run=run, seed=seed, metric=metric)
    names = zip(rows["layer"].to_pylist(), rows["step"].to_pylist(), strict=True)
    return dict(zip(names, rows["value"].to_pylist(), strict=True))


def first_third(tables: Tables, run: str, prefix: str = "") -> float:
    """Return the step that ends the first third of a run."""
    return max(where(tables[f"{prefix}curves"], run=run)["step"].to_pylist(), default=0) / 3


def median(values: list[float]) -> float:
    """Return the median, NaN of nothing."""
    return float(np.median(values)) if values else math.nan


def log10(value: float) -> float:
    """Return the logarithm; NaN where there is none."""
    return math.log10(value) if 0 < value < 1e300 else math.nan


def at_same_probes(
    metric: str, combine: Callable[[float, float], float], one: str, other: str, prefix: str, says: str, part: str
) -> Measure:
    """Return the median of a combination of two runs over layers and probes at the same layer and step.

    `part`: `all` of the run, its first third (`first`), the rest (`late`), or the steps up to EARLY (`early`).
    """

    def compute(tables: Tables) -> Values:
        table, end = tables[f"{prefix}probes"], first_third(tables, one, prefix)
        low, high = {"all": (-1, math.inf), "first": (-1, end), "late": (end, math.inf), "early": (-1, EARLY)}[part]
        found = {}
        for seed in levels(table):
            a, b = (probes(table, run, seed, metric) for run in (one, other))
            found[seed] = median([combine(a[key], b[key]) for key in a if key in b and low < key[1] <= high])
        return found

    return Measure(compute, f"median of {says} of {metric}, {one} and {other}, {part} probes")


def ratio(one: float, other: float) -> float:
    """Return a quotient, NaN over 0."""
    return one / other if other else math.nan


def log_ratio(metric: str, part: str = "first", one: str = STD, other: str = BN, prefix: str = "") -> Measure:
    """Return the median of log10(one / other) over the probes of a part of the run."""
    return at_same_probes(metric, lambda a, b: log10(ratio(a, b)), one, other, prefix, "log10 of the ratio", part)


def shift(run: str, reduce: Callable[[Array], float], says: str, prefix: str = "", until: int = EARLY) -> Measure:
    """Return a summary of cos(G, G') over all layers and the probes up to a step."""

    def compute(tables: Tables) -> Values:
        table = tables[f"{prefix}probes"]
        cells = {seed: probes(table, run, seed, "shift_cosine") for seed in levels(table)}
        values = {seed: [v for (_, step), v in cell.items() if step <= until] for seed, cell in cells.items()}
        return {seed: float(reduce(np.array(v))) if v else math.nan for seed, v in values.items()}

    return Measure(compute, f"{says} of cos(G, G') of {run} over layers and probes")


def low(cells: Array) -> float:
    """Return the value that a fifth of the cells lie at or below."""
    return float(np.quantile(cells, 0.2))


std_shift_cosine = shift(STD, np.median, "median", until=10**9)
shift_cosine_gap = at_same_probes("shift_cosine", lambda a, b: a - b, STD, BN, "", "difference", "all")
loss_range_gap, gradient_change_gap = log_ratio("loss_range"), log_ratio("gradient_change")
smoothness_gap = log_ratio("effective_smoothness")
relative_loss_range_gap = log_ratio("loss_range_relative")
relative_gradient_change_gap = log_ratio("gradient_change_relative")
late_loss_range_gap, late_gradient_change_gap = log_ratio("loss_range", "late"), log_ratio("gradient_change", "late")
late_smoothness_gap = log_ratio("effective_smoothness", "late")


@measure
def curvature_gap(tables: Tables) -> Values:
    """(c_std - 1.5 c_BN) / (|c_std| + 1.5 |c_BN|) for the median curvatures g'Hg/||g||^2 of the first third.

    Above 0 where the plain net's curvature along the gradient is more than 1.5 times batch norm's; stays defined
    where one of them is not positive. In [-1, 1].
    """
    table, end, found = tables["probes"], first_third(tables, STD), {}
    for seed in levels(table):
        plain, other = (
            median([v for (_, step), v in probes(table, run, seed, "curvature").items() if step <= end])
            for run in (STD, BN)
        )
        size = abs(plain) + 1.5 * abs(other)
        found[seed] = (plain - 1.5 * other) / size if size > 0 else math.nan
    return found


@measure
def output_gradient_gap(tables: Tables) -> Values:
    """Median over layers and the first third's probes of log10 of ||dL/dy||, plain over batch norm at equal loss.

    y is the output of a layer's convolution. Batch norm's value is read at the plain net's train loss, from the
    line through its own probes by loss; probes whose loss it never has are left out.
    """
    table, end, found = tables["probes"], first_third(tables, STD), {}
    for seed in levels(table):
        loss, other_loss = (probes(table, run, seed, "loss") for run in (STD, BN))
        plain, other = (probes(table, run, seed, "output_gradient_norm") for run in (STD, BN))
        values: list[float] = []
        for layer in {name for name, _ in plain}:
            known = sorted(
                (other_loss["", s], math.log10(v)) for (name, s), v in other.items() if name == layer and v > 0
            )
            if not known:
                continue
            x, y = zip(*known, strict=True)
            own = [(loss["", s], v) for (name, s), v in plain.items() if name == layer and s <= end and v > 0]
            values += [math.log10(v) - float(np.interp(at, x, y)) for at, v in own if x[0] <= at <= x[-1]]
        found[seed] = median(values)
    return found


# Drift of activations: gates of N2, N8, B1
def drift_ratio(metric: str, one: str, other: str, place: str = "input") -> Measure:
    """Return the median over the layers of a drift, one run over another, each averaged over time."""

    def compute(tables: Tables) -> Values:
        table = where(tables["drift"], metric=metric, place=place)
        found: dict[int, list[float]] = {seed: [] for seed in levels(tables["drift"])}
        for layer in levels(table, "layer"):
            a, b = (by_seed(table, run=run, layer=layer) for run in (one, other))
            for seed in found:
                value = b.get(seed, math.nan)
                found[seed].append(a[seed] / value if value > 0 else math.nan)
        return {seed: median(values) for seed, values in found.items()}

    return Measure(compute, f"median over layers of {metric} at the {place}, {one} / {other}")


noisy_mean_drift = drift_ratio("mean_change", NOISY, STD)
noisy_variance_drift = drift_ratio("variance_change", NOISY, STD)
stability_ratio = drift_ratio("wasserstein", STD, BN)
stability_ratio_before = drift_ratio("wasserstein", STD, BN, "before")

# The deep linear network
deep = partial(mean, "deep_training")


def loss_fall(run: str) -> Measure:
    """Return the deep linear network's loss at the start over that at the end."""
    return deep(run=run, metric="first_loss") / deep(run=run, metric="last_loss")


def deep_log_ratio(metric: str, rate: str) -> Measure:
    """Return the median of log10(plain / batch norm) over the first third's probes of the deep linear network."""
    return log_ratio(metric, "first", f"std-{rate}", f"bn-{rate}", DEEP)


def deep_size(rate: str) -> Measure:
    """Return the median of ||G - G'||, batch norm over plain, over layers and early probes."""
    return at_same_probes("shift_l2", ratio, f"bn-{rate}", f"std-{rate}", DEEP, "ratio", "early")


deep_fall_std_slow, deep_fall_bn_slow = loss_fall(f"std-{SLOW}"), loss_fall(f"bn-{SLOW}")
deep_fall_std_fast, deep_fall_bn_fast = loss_fall(f"std-{FAST}"), loss_fall(f"bn-{FAST}")
deep_l1_below_bn = (deep(run=f"bn-{FAST}", metric="last_loss") / deep(run=f"l1-{FAST}", metric="last_loss")).log10()
deep_cosine_slow, deep_cosine_fast = (shift(f"std-{r}", np.median, "median", DEEP) for r in (SLOW, FAST))
deep_low_slow, deep_low_fast = (shift(f"bn-{r}", low, "lowest fifth", DEEP) for r in (SLOW, FAST))
deep_size_slow, deep_size_fast = deep_size(SLOW), deep_size(FAST)
deep_loss_slow, deep_loss_fast = (deep_log_ratio("loss_range", r) for r in (SLOW, FAST))
deep_change_slow, deep_change_fast = (deep_log_ratio("gradient_change", r) for r in (SLOW, FAST))
deep_smooth_slow, deep_smooth_fast = (deep_log_ratio("effective_smoothness", r) for r in (SLOW, FAST))

# N7, N10 and the two exact additions: each draw
identity = partial(each, "identities", "draw")
theorem_error = identity(check="theorem_error")
observation_gap = identity(check="observation_gap")
printed_bound_holds = identity(check="printed_bound_holds")
gradient_excess = identity(check="gradient_excess")
missing_part_error = identity(check="missing_part_error")
weight_bound_error = identity(check="weight_bound_error")
weight_bound_excess = identity(check="weight_bound_excess")
shift_without_lower_step = identity(check="shift_without_lower_step")

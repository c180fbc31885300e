"""What the claims measure, by seed: speed, accuracy, smoothness, covariate shift, drift. numpy and pyarrow only."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from restudy.studies.batch_norm.tidy import (
    BN,
    STD,
    Array,
    BySeed,
    Tables,
    by_seed,
    curve,
    final,
    first_third,
    layers_of,
    log10,
    over_time,
    seeds_of,
    smoothed,
    where,
)

Measure = Callable[[Tables], BySeed]
LEVEL_AT = 0.6
"""The level to reach is the plain net's smoothed train accuracy at this share of the run."""


def steps_ratio(arm: str) -> Measure:
    """Steps of the plain net over those of an arm to the plain net's level at 60% of the run.

    A run that never reaches it counts with its whole length, which speaks against the arm.
    """

    def measure(tables: Tables) -> BySeed:
        curves, found = tables["curves"], {}
        for seed in seeds_of(curves):
            steps, plain = curve(curves, STD, seed)
            other_steps, other = curve(curves, arm, seed)
            if not len(steps) or not len(other_steps):
                found[seed] = math.nan
                continue
            plain, other = smoothed(plain), smoothed(other)
            level = plain[np.searchsorted(steps, LEVEL_AT * steps[-1])]
            found[seed] = _reached(steps, plain, level) / _reached(other_steps, other, level)
        return found

    return measure


def _reached(steps: Array, accuracy: Array, level: float) -> float:
    """The step at which a level is first reached, on the line between two windows; the last step where it never is."""
    above = np.flatnonzero(accuracy >= level)
    if not len(above):
        return float(steps[-1])
    place = int(above[0])
    if place == 0:
        return float(steps[0])
    low, high = accuracy[place - 1], accuracy[place]
    return float(steps[place - 1] + (steps[place] - steps[place - 1]) * (level - low) / (high - low))


def share_of_gap(arm: str, share: float) -> Measure:
    """Train accuracy of an arm over the plain net, minus `share` of what batch norm is over it."""

    def measure(tables: Tables) -> BySeed:
        plain, full, some = final(tables, STD), final(tables, BN), final(tables, arm)
        return {s: (some[s] - plain[s]) - share * (full[s] - plain[s]) for s in plain}

    return measure


def best_accuracy(arm: str) -> Measure:
    """Train accuracy of an arm at the learning rate that is best for it, by mean over seeds."""

    def measure(tables: Tables) -> BySeed:
        rows = where(tables["training"], arm=arm, metric="train_accuracy")
        each = [by_seed(rows, run=run) for run in sorted(set(rows["run"].to_pylist()))]
        return max(each, key=lambda values: float(np.nanmean(list(values.values()))), default={})

    return measure


def log_ratio(metric: str, *, one: str = STD, other: str = BN, prefix: str = "", late: bool = False) -> Measure:
    """Median over the probes of the first third (or, `late`, of the rest) of log10(one / other), at the same steps."""

    def measure(tables: Tables) -> BySeed:
        table, end = tables[f"{prefix}probes"], first_third(tables[f"{prefix}curves"], one)
        found = {}
        for seed in seeds_of(table):
            a, b = (over_time(table, run, seed, metric) for run in (one, other))
            chosen = [step for step in a if step in b and (step > end) == late]
            values = [log10(a[step] / b[step]) if b[step] else math.nan for step in chosen]
            found[seed] = float(np.median(values)) if values else math.nan
        return found

    return measure


def curvature_contrast(margin: float) -> Measure:
    """(c_std - margin * c_bn) / (|c_std| + margin * |c_bn|) for the median curvatures c of the first third.

    Above 0 where the plain net's curvature along the gradient is more than `margin` times batch norm's; stays defined
    where one of them is not positive. In [-1, 1].
    """

    def measure(tables: Tables) -> BySeed:
        table, end = tables["probes"], first_third(tables["curves"], STD)
        found = {}
        for seed in seeds_of(table):
            plain, other = (
                np.median([v for s, v in over_time(table, run, seed, "curvature").items() if s <= end] or [math.nan])
                for run in (STD, BN)
            )
            size = abs(plain) + margin * abs(other)
            found[seed] = float((plain - margin * other) / size) if size > 0 else math.nan
        return found

    return measure


def shift_difference(*, one: str = STD, other: str = BN, prefix: str = "") -> Measure:
    """Median over layers and probes of cos(G, G') of `one` minus that of `other`, at the same layer and step."""

    def measure(tables: Tables) -> BySeed:
        table, found = tables[f"{prefix}probes"], {}
        for seed in seeds_of(table):
            values = []
            for layer in layers_of(table, "shift_cosine"):
                a, b = (over_time(table, run, seed, "shift_cosine", layer) for run in (one, other))
                values += [a[step] - b[step] for step in a if step in b]
            found[seed] = float(np.median(values)) if values else math.nan
        return found

    return measure


def shift_cells(run: str, reduce: Callable[[np.ndarray], float], *, prefix: str = "", until: int = 600) -> Measure:
    """A summary of cos(G, G') over all layers and the probes up to a step."""

    def measure(tables: Tables) -> BySeed:
        table, found = tables[f"{prefix}probes"], {}
        for seed in seeds_of(table):
            values = [
                value
                for layer in layers_of(table, "shift_cosine")
                for step, value in over_time(table, run, seed, "shift_cosine", layer).items()
                if step <= until
            ]
            found[seed] = float(reduce(np.array(values))) if values else math.nan
        return found

    return measure


def shift_size_ratio(one: str, other: str, *, prefix: str = "", until: int = 600) -> Measure:
    """Median over layers and probes up to a step of ||G - G'|| of `one` over that of `other`."""

    def measure(tables: Tables) -> BySeed:
        table, found = tables[f"{prefix}probes"], {}
        for seed in seeds_of(table):
            values = []
            for layer in layers_of(table, "shift_l2"):
                a, b = (over_time(table, run, seed, "shift_l2", layer) for run in (one, other))
                values += [a[s] / b[s] if b[s] else math.nan for s in a if s in b and s <= until]
            found[seed] = float(np.median(values)) if values else math.nan
        return found

    return measure


def drift_ratio(metric: str, one: str, other: str, place: str = "input") -> Measure:
    """Median over the layers of a drift of `one` over that of `other`, each averaged over time."""

    def measure(tables: Tables) -> BySeed:
        table = where(tables["drift"], metric=metric, place=place)
        found: dict[int, list[float]] = {seed: [] for seed in seeds_of(tables["drift"])}
        for layer in layers_of(table, metric):
            a, b = (by_seed(table, run=run, layer=layer) for run in (one, other))
            for seed in found:
                value = b.get(seed, math.nan)
                found[seed].append(a[seed] / value if value > 0 else math.nan)
        return {seed: float(np.median(values)) if values else math.nan for seed, values in found.items()}

    return measure


def output_gradient_at_equal_loss(tables: Tables) -> BySeed:
    """Median over layers and the first third's probes of log10 of the plain net's ||dL/dy|| over batch norm's.

    y is the output of a layer's convolution. Batch norm's value is read at the plain net's train loss, from the
    line through its own probes by loss; probes whose loss it never has are left out.
    """
    table, end = tables["probes"], first_third(tables["curves"], STD)
    found = {}
    for seed in seeds_of(table):
        loss, other_loss = (over_time(table, run, seed, "loss") for run in (STD, BN))
        values = []
        for layer in layers_of(table, "output_gradient_norm"):
            a, b = (over_time(table, run, seed, "output_gradient_norm", layer) for run in (STD, BN))
            order = sorted((s for s in b if b[s] > 0), key=lambda s: other_loss[s])
            if not order:
                continue
            x, y = [other_loss[s] for s in order], [math.log10(b[s]) for s in order]
            inside = [s for s in a if s <= end and x[0] <= loss[s] <= x[-1] and a[s] > 0]
            values += [math.log10(a[s]) - float(np.interp(loss[s], x, y)) for s in inside]
        found[seed] = float(np.median(values)) if values else math.nan
    return found


def loss_fall(run: str) -> Measure:
    """The deep linear network's loss at the start over that at the end."""

    def measure(tables: Tables) -> BySeed:
        first, last = (by_seed(tables["deep_training"], run=run, metric=m) for m in ("first_loss", "last_loss"))
        return {s: first[s] / last[s] if last[s] > 0 else math.nan for s in first}

    return measure

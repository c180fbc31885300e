"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed: its own classifier, in-fillers and scenes; scenes are averaged within it. Positive is the
paper's direction; ratios are above 1 in it. Maps are compared where they reach the same score or the same area, or each
at the penalty that suits it on held-out scenes: never at one penalty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, average, each, groups, mean, measure, median, per_seed
from restudy.tables import Array, Tables, arrays, levels, where

HEURISTICS = ("mean", "blur", "noise")
TARGET_AREA = 0.06  # share of the canvas at which shapes are compared: about half of an object


def grids(
    tables: Tables, metric: str, method: str, infiller: str, *, restart: int = 0, split: str = "test"
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each seed with its penalties (L,), ascending, and a metric's values (L, N); NaN (1, 1) without rows."""
    chosen = {"metric": metric, "method": method, "infiller": infiller, "restart": restart, "split": split}
    rows = where(tables["maps"], **chosen).sort_by([(name, "ascending") for name in ("penalty", "image")])
    seeds, penalties, values = arrays(rows, "seed", "penalty", "value")
    for seed in levels(tables["maps"]):
        mine = seeds == seed
        known = np.unique(penalties[mine]) if mine.any() else np.array([math.nan])
        yield seed, known, values[mine].reshape(len(known), -1) if mine.any() else np.array([[math.nan]])


def means(tables: Tables, metric: str, method: str, infiller: str, restart: int = 0) -> dict[int, Array]:
    """Average a metric over the scenes for each penalty: seed -> (L,)."""
    found = grids(tables, metric, method, infiller, restart=restart)
    return {seed: values.mean(1) for seed, _, values in found}


def tuned(tables: Tables, metric: str, method: str, infiller: str, restart: int = 0) -> dict[int, Array]:
    """Take the test scenes at the penalty whose mean over the tuning scenes is least: seed -> (N,), (1,) NaN."""
    found = {}
    both = (grids(tables, metric, method, infiller, restart=restart, split=split) for split in ("tune", "test"))
    for (seed, _, held_out), (_, _, values) in zip(*both, strict=True):
        best = int(np.argmin(held_out.mean(1)))
        found[seed] = np.array([math.nan]) if np.isnan(values).any() else values[best]
    return found


def first_crossing(x: Array, y: Array, target: float) -> float:
    """Find where the line through (x, y), x ascending, first reaches a target from below; NaN where it never does."""
    if np.isnan(y).any() or not (y >= target).any():
        return math.nan
    at = int(np.argmax(y >= target))
    share = (target - y[at - 1]) / (y[at] - y[at - 1]) if at else 0.0
    return float(x[at - 1] + share * (x[at] - x[at - 1])) if at else float(x[0])


# Of the program
identity = partial(each, "identities", ("case", "metric"))
objective_error, concrete_error = identity(claim="objective"), identity(claim="concrete")
sign_error, batch_error = identity(claim="sign"), identity(claim="batch")

# Gates
hidden_error = partial(mean, "training", metric="hidden_error")
fill = partial(mean, "fills")
test_accuracy = mean("training", net="classifier", metric="test_accuracy")
vae_error_ratio = hidden_error(net="vae") / hidden_error(net="mean")
vae_error_elsewhere = hidden_error(net="vae_elsewhere") / hidden_error(net="vae")  # above 1 if the VAE looks around
judge_excess = fill(infiller="judge", metric="hidden_excess")
seam_gan_minus_vae = fill(infiller="gan", metric="seam") - fill(infiller="vae", metric="seam")


# F1, F6: FIDO against BBMP
def flip_ratio(
    over: tuple[str, str], under: tuple[str, str], judge: str = "judge", restart: int = 0, inverse: bool = False
) -> Measure:
    """Return the median over scenes of the ratio of flipping areas of two (method, infiller), each tuned."""

    def compute(tables: Tables) -> Values:
        metric = f"flipping_area_{judge}"
        top, base = tuned(tables, metric, *over, restart=restart), tuned(tables, metric, *under)
        ratios = {seed: float(np.median(top[seed] / base[seed])) for seed in top}
        return {seed: 1 / ratio for seed, ratio in ratios.items()} if inverse else ratios

    again = ", second run" if restart else ""
    formula = f"median ratio of flipping areas ({judge}): {' '.join(over)}{again} / {' '.join(under)}"
    return Measure(compute, f"1 / {formula}" if inverse else formula)


fido_vae = ("sdr", "vae")
flip_ratio_blur, flip_ratio_vae = flip_ratio(("bbmp", "blur"), ("sdr", "blur")), flip_ratio(("bbmp", "vae"), fido_vae)
flip_ratio_blur_ground = flip_ratio(("bbmp", "blur"), ("sdr", "blur"), "ground")
flip_ratio_vae_ground = flip_ratio(("bbmp", "vae"), fido_vae, "ground")
flip_ratio_restart = flip_ratio(fido_vae, fido_vae, restart=1)
flip_ratio_joint = flip_ratio(("joint", "mean"), fido_vae)
random_ratio = flip_ratio(("random", ""), fido_vae, inverse=True)


def at_area(metric: str, method: str, infiller: str, ends: tuple[float, float]) -> Measure:
    """Return a shape's number where the region has the target area; `ends` are its values for nothing and for all."""

    def compute(tables: Tables) -> Values:
        size, value = means(tables, "area", method, infiller), means(tables, metric, method, infiller)
        found: Values = {}
        for seed in size:
            order = np.argsort(size[seed], kind="stable")
            x, y = np.r_[0.0, size[seed][order], 1.0], np.r_[ends[0], value[seed][order], ends[1]]
            found[seed] = float(np.interp(TARGET_AREA, x, y))
        return found

    return Measure(compute, f"{metric} at matched area ({method} {infiller})")


undecided = partial(at_area, "undecided", ends=(0.0, 0.0))
undecided_blur = undecided("bbmp", "blur") - undecided("sdr", "blur")
undecided_vae = undecided("bbmp", "vae") - undecided("sdr", "vae")


# F2, F13: area at equal log-odds
def area(infiller: str, judge: str = "judge", bare: bool = False, restart: int = 0) -> Measure:
    """Return the area of deletion regions, as a share of the canvas, at which the log-odds under a judge reach 0.

    At 0 the class is as likely as all others together: the border that a deletion region has to cross. With `bare` the
    goal is the mean log-odds of the scenes without their objects. Areas and log-odds are means over the scenes at each
    penalty, joined by straight lines that begin at nothing removed and end at everything; the first crossing counts.
    """
    names = ("area", f"log_odds_{judge}", "log_odds_before", "log_odds_bare")

    def compute(tables: Tables) -> Values:
        size, after, before, ground = (means(tables, name, "sdr", infiller, restart) for name in names)
        found: Values = {}
        for seed in size:
            order = np.argsort(size[seed], kind="stable")
            x = np.r_[0.0, size[seed][order], 1.0]
            y = np.r_[before[seed][0], after[seed][order], ground[seed][0]]
            found[seed] = first_crossing(x, -y, -float(ground[seed][0]) if bare else 0.0)
        return found

    goal = "those of the bare ground" if bare else "0"
    return Measure(compute, f"area at which {judge} log-odds fall to {goal} ({infiller}{', second run' * restart})")


def heuristics_over(generative: str, judge: str = "judge", bare: bool = False) -> Measure:
    """Return the median of mean, blur and noise of the area over that of a generative in-filler."""
    return median(*(area(name, judge, bare) / area(generative, judge, bare) for name in HEURISTICS))


area_ratio_vae, area_ratio_vae_ground = heuristics_over("vae"), heuristics_over("vae", "ground")
area_ratio_gan, area_ratio_vae_bare = heuristics_over("gan"), heuristics_over("vae", bare=True)
vae_over_gan_area, vae_over_gan_area_ground = area("vae") / area("gan"), area("vae", "ground") / area("gan", "ground")
area_ratio_restart = area("vae", restart=1) / area("vae")


# F3, F4
def removal_area(method: str, infiller: str) -> Measure:
    """Return the mean area under the removal curve at the tuned penalty, nats."""

    def compute(tables: Tables) -> Values:
        scenes = tuned(tables, "removal_auc_judge", method, infiller)
        return {seed: float(values.mean()) for seed, values in scenes.items()}

    return Measure(compute, f"area under the removal curve ({method} {infiller})")


def iou(infiller: str) -> Measure:
    """Return the mean IoU of FIDO's regions with the object's box, at penalty and threshold best on tuning scenes."""

    def compute(tables: Tables) -> Values:
        rows = where(tables["boxes"], method="sdr", infiller=infiller, restart=0)
        found: Values = dict.fromkeys(levels(tables["boxes"]), math.nan)
        for seed in levels(rows):
            tune, test = (_mean_iou(where(rows, seed=seed, split=split)) for split in ("tune", "test"))
            found[seed] = test[max(tune, key=lambda key: (tune[key], key))]
        return found

    return Measure(compute, f"IoU with the object's box ({infiller})")


def _mean_iou(rows: pa.Table) -> dict[Any, float]:
    """Average over the scenes: (penalty, threshold) -> IoU."""
    found = rows.group_by(["penalty", "threshold"]).aggregate([("iou", "mean")])
    return {(row["penalty"], row["threshold"]): row["iou_mean"] for row in found.to_pylist()}


auc_bbmp = removal_area("bbmp", "vae") - removal_area(*fido_vae)
auc_gradient = removal_area("gradient", "") - removal_area(*fido_vae)
auc_random = removal_area("random", "") - removal_area(*fido_vae)
iou_vae = iou("vae") - average(*map(iou, HEURISTICS))
iou_gan = iou("gan") - average(*map(iou, HEURISTICS))


# F5, F7, F8, F9: fills
distance = partial(fill, metric="distance")
odd_change = partial(per_seed, "fills", lambda rows: np.median(rows["value"].to_numpy()), "median", metric="odd_change")


def ordered(number: partial[Measure], generative: str) -> Measure:
    """Put noise, blur and a generative in-filler side by side."""
    names = {"noise": "noise", "blur": "blur", "generative": generative}
    return groups({group: number(infiller=infiller) for group, infiller in names.items()})


distances_vae, distances_gan = ordered(distance, "vae"), ordered(distance, "gan")
oddness_vae, oddness_gan = ordered(odd_change, "vae"), ordered(odd_change, "gan")
strange = average(*(odd_change(infiller=name) for name in ("zeros", "mean", "noise")))
odd_ratio_vae, odd_ratio_gan = strange / odd_change(infiller="vae"), strange / odd_change(infiller="gan")
seam = partial(fill, metric="seam")
seam_mean_vae, seam_blur_vae, seam_noise_vae = (seam(infiller=n) - seam(infiller="vae") for n in HEURISTICS)
seam_mean_gan, seam_blur_gan, seam_noise_gan = (seam(infiller=n) - seam(infiller="gan") for n in HEURISTICS)
hidden_excess_vae = fill(metric="hidden_excess", infiller="vae")
hidden_excess_gan = fill(metric="hidden_excess", infiller="gan")


@measure
def leak(tables: Tables) -> Values:
    """Per seed and in-filler: largest change of a fill when the hidden pixels are exchanged; VAE, GAN, regression."""
    rows = where(tables["fills"], metric="leak")
    return {
        f"{seed}, {name}": max(where(rows, seed=seed, infiller=name)["value"].to_pylist())
        for seed in levels(rows)
        for name in ("vae", "gan", "judge")
    }


# F10, F11
def share(metric: str, method: str, infiller: str, place: int) -> Measure:
    """Return the mean over the test scenes at one of the penalties, counted from the smallest."""

    def compute(tables: Tables) -> Values:
        found = means(tables, metric, method, infiller)
        return {seed: float(values[min(place, len(values) - 1)]) for seed, values in found.items()}

    return Measure(compute, f"share {metric} ({method} {infiller}), penalty {place + 1}")


share_flipped = average(*(share("flips_own", "sdr", name, 1) for name in (*HEURISTICS, "vae", "gan")))
share_kept, nothing_kept = share("kept_hit", "ssr", "vae", 0), share("nothing_excess", "ssr", "vae", 0)

# F12
parts = partial(at_area, "parts", "sdr", ends=(0.0, 1.0))
perimeter = partial(at_area, "perimeter2_over_area", "sdr", ends=(0.0, 16.0))
parts_gap = median(*(parts(infiller=name) - parts(infiller="vae") for name in HEURISTICS))
perimeter_ratio = median(*(perimeter(infiller=name) / perimeter(infiller="vae") for name in HEURISTICS))

# F14 and repeatability: rank correlation of maps, mean over penalties
agreement = partial(mean, "agreement")
same_run = agreement(pair="two runs, vae")
same_minus_other = average(same_run, agreement(pair="two runs, mean")) - agreement(pair="two in-fillers")

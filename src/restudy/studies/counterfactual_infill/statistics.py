"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed: its own classifier, in-fillers and scenes; scenes are averaged within it. Positive is the
paper's direction; ratios are above 1 in it.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, average, each, groups, mean, measure, median, per_seed
from restudy.studies.counterfactual_infill import paths
from restudy.tables import Tables, where

HEURISTICS = ("mean", "blur", "noise")

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
        top, base = paths.tuned(tables, metric, *over, restart=restart), paths.tuned(tables, metric, *under)
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
    """Return a shape's number where the region has the target area (see `paths.at_area`)."""
    compute = partial(paths.at_area, metric=metric, method=method, infiller=infiller, ends=ends)
    return Measure(compute, f"{metric} at matched area ({method} {infiller})")


undecided = partial(at_area, "undecided", ends=(0.0, 0.0))
undecided_blur = undecided("bbmp", "blur") - undecided("sdr", "blur")
undecided_vae = undecided("bbmp", "vae") - undecided("sdr", "vae")


# F2, F13: area at equal log-odds
def area(infiller: str, judge: str = "judge", bare: bool = False, restart: int = 0) -> Measure:
    """Return the area at which the log-odds under a judge have come down to 0 (see `paths.area_at_score`)."""
    compute = partial(paths.area_at_score, infiller=infiller, judge=judge, bare=bare, restart=restart)
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
        scenes = paths.tuned(tables, "removal_auc_judge", method, infiller)
        return {seed: float(values.mean()) for seed, values in scenes.items()}

    return Measure(compute, f"area under the removal curve ({method} {infiller})")


def iou(infiller: str) -> Measure:
    """Return the IoU of FIDO's region with the object's box at the tuned penalty."""
    return Measure(partial(paths.tuned_iou, method="sdr", infiller=infiller), f"IoU with the object's box ({infiller})")


auc_bbmp = removal_area("bbmp", "vae") - removal_area(*fido_vae)
auc_gradient = removal_area("gradient", "") - removal_area(*fido_vae)
auc_random = removal_area("random", "") - removal_area(*fido_vae)
iou_vae = iou("vae") - average(*map(iou, HEURISTICS))
iou_gan = iou("gan") - average(*map(iou, HEURISTICS))


# F5, F7, F8, F9: fills
def middle(rows: pa.Table) -> float:
    """Median over the scenes."""
    return float(np.median(rows["value"].to_numpy()))


distance = partial(fill, metric="distance")
odd_change = partial(per_seed, "fills", middle, "median", metric="odd_change")


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
    rows = where(tables["fills"], metric="leak", infiller=("vae", "gan", "judge"))
    found: Values = {}
    columns = (rows[name].to_pylist() for name in ("seed", "infiller", "value"))
    for seed, infiller, value in zip(*columns, strict=True):
        found[f"{seed}, {infiller}"] = max(value, found.get(f"{seed}, {infiller}", 0.0))
    return found


# F10, F11
def share(metric: str, method: str, infiller: str, place: int) -> Measure:
    """Return the mean over the test scenes at one of the penalties, counted from the smallest."""

    def compute(tables: Tables) -> Values:
        means = paths.means(tables, metric, method, infiller)
        return {seed: float(values[min(place, len(values) - 1)]) for seed, values in means.items()}

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

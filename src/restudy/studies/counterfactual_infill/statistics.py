"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

The replicate is the seed: its own classifier, in-fillers and scenes; scenes are averaged within it. Positive is the
paper's direction; ratios are above 1 in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa

from restudy.studies.counterfactual_infill.paths import area_at_score, at_area, means, tuned, tuned_iou
from restudy.studies.counterfactual_infill.tidy import BySeed, Tables, by_seed, replicates, where

Statistic = Callable[[Tables], pa.Table]
HEURISTICS = ("mean", "blur", "noise")


def _said(function: Callable[[Tables], BySeed], says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(function(tables))

    statistic.__doc__ = says
    return statistic


def _ratio(one: BySeed, other: BySeed) -> BySeed:
    return {seed: one[seed] / other[seed] for seed in one}


def _minus(one: BySeed, other: BySeed) -> BySeed:
    return {seed: one[seed] - other[seed] for seed in one}


def _middle(found: Iterable[BySeed]) -> BySeed:
    """The median of several arms, seed by seed: of three, at least two are on its side of any bound."""
    arms = list(found)
    return {seed: float(np.median([arm[seed] for arm in arms])) for seed in arms[0]}


def _average(found: Iterable[BySeed]) -> BySeed:
    arms = list(found)
    return {seed: float(np.mean([arm[seed] for arm in arms])) for seed in arms[0]}


def _identity(claim: str, says: str) -> Statistic:
    """Deviations from an identity: one replicate per case and metric, 0 is right."""

    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], claim=claim)
        names = [f"{case}, {m}" for case, m in zip(rows["case"].to_pylist(), rows["metric"].to_pylist(), strict=True)]
        return replicates(dict(zip(names, rows["value"].to_pylist(), strict=True)))

    statistic.__doc__ = says
    return statistic


# Of the program
objective_error = _identity("objective", "Per random problem: penalised objective minus its enumeration.")
concrete_error = _identity(
    "concrete", "Per theta: share of Concrete samples above 1/2 minus theta, beyond the spacing."
)
sign_error = _identity("sign", "Per objective: what the saliency of the one pixel that matters lacks.")
batch_error = _identity("batch", "Per image: 1 - IoU of the regions of a batch and of a loop.")


# Gates
def _trained(net: str, metric: str) -> Callable[[Tables], BySeed]:
    return lambda tables: by_seed(tables["training"], net=net, metric=metric)


test_accuracy = _said(_trained("classifier", "test_accuracy"), "Share of right classes on 1,000 test scenes.")
vae_error_ratio = _said(
    lambda t: _ratio(_trained("vae", "hidden_error")(t), _trained("mean", "hidden_error")(t)),
    "Mean absolute error on hidden pixels: VAE over the mean grey.",
)
vae_error_elsewhere = _said(
    lambda t: _ratio(_trained("vae_elsewhere", "hidden_error")(t), _trained("vae", "hidden_error")(t)),
    "The same with the surroundings of another scene, over that with its own: above 1 if the VAE looks at them.",
)
judge_excess = _said(
    lambda t: by_seed(t["fills"], infiller="judge", metric="hidden_excess"),
    "Accuracy above chance when the judge has filled the object's square.",
)
seam_gan_minus_vae = _said(
    lambda t: _minus(*(by_seed(t["fills"], infiller=name, metric="seam") for name in ("gan", "vae"))),
    "Seam of the GAN minus that of the VAE, |log ratio|.",
)


# F1: flipping area at the tuned penalty
def _flip_ratio(over: tuple[str, str, int], under: tuple[str, str, int], judge: str) -> Callable[[Tables], BySeed]:
    """Median over scenes of the ratio of flipping areas, each arm at its own tuned penalty."""

    def found(tables: Tables) -> BySeed:
        arms = [
            tuned(tables, f"flipping_area_{judge}", method, infiller, restart=restart)
            for method, infiller, restart in (over, under)
        ]
        return {seed: float(np.median(arms[0][seed] / arms[1][seed])) for seed in arms[0]}

    return found


def _f1(infiller: str, judge: str = "judge") -> Statistic:
    return _said(
        _flip_ratio(("bbmp", infiller, 0), ("sdr", infiller, 0), judge),
        f"Flipping area of BBMP over that of FIDO, both with {infiller}; judge: {judge}. Median over scenes.",
    )


flip_ratio_blur, flip_ratio_vae = _f1("blur"), _f1("vae")
flip_ratio_blur_ground, flip_ratio_vae_ground = _f1("blur", "ground"), _f1("vae", "ground")
flip_ratio_restart = _said(
    _flip_ratio(("sdr", "vae", 1), ("sdr", "vae", 0), "judge"), "Control: a second run of FIDO over the first, VAE."
)
flip_ratio_joint = _said(
    _flip_ratio(("joint", "mean", 0), ("sdr", "vae", 0), "judge"),
    "Flipping area of the joint masker with the mean over that of FIDO with the VAE.",
)


# F2, F13: area at equal log-odds
def _area_ratio(over: str, under: str, judge: str, bare: bool = False) -> Callable[[Tables], BySeed]:
    return lambda t: _ratio(*(area_at_score(t, name, judge, bare=bare) for name in (over, under)))


def _f2(generative: str, judge: str, bare: bool = False) -> Statistic:
    return _said(
        lambda t: _middle(_area_ratio(name, generative, judge, bare)(t) for name in HEURISTICS),
        f"Area at equal log-odds: median of mean, blur and noise over {generative}; judge: {judge}.",
    )


area_ratio_vae, area_ratio_vae_ground = _f2("vae", "judge"), _f2("vae", "ground")
area_ratio_gan = _f2("gan", "judge")
area_ratio_vae_bare = _f2("vae", "judge", bare=True)
vae_over_gan_area = _said(_area_ratio("vae", "gan", "judge"), "Area at equal log-odds: VAE over GAN; judge.")
vae_over_gan_area_ground = _said(_area_ratio("vae", "gan", "ground"), "The same; judge: the true ground.")
area_ratio_restart = _said(
    lambda t: _ratio(area_at_score(t, "vae", "judge", restart=1), area_at_score(t, "vae", "judge")),
    "Control: a second run with the VAE over the first.",
)


# F3
def _auc_gap(method: str, infiller: str) -> Statistic:
    def found(tables: Tables) -> BySeed:
        other, fido = (tuned(tables, "removal_auc_judge", *arm) for arm in ((method, infiller), ("sdr", "vae")))
        return {seed: float(other[seed].mean() - fido[seed].mean()) for seed in other}

    return _said(found, f"Area under the removal curve, nats: {method} minus FIDO with the VAE, tuned penalties.")


auc_bbmp, auc_gradient, auc_random = _auc_gap("bbmp", "vae"), _auc_gap("gradient", ""), _auc_gap("random", "")


# F4
def _iou_gap(generative: str) -> Statistic:
    def found(tables: Tables) -> BySeed:
        return _minus(
            tuned_iou(tables, "sdr", generative), _average(tuned_iou(tables, "sdr", name) for name in HEURISTICS)
        )

    return _said(found, f"IoU with the object's box: {generative} minus the mean of mean, blur and noise.")


iou_vae, iou_gan = _iou_gap("vae"), _iou_gap("gan")


# F5, F7, F8, F9: fills
def _fill(metric: str, infiller: str, tables: Tables) -> BySeed:
    return by_seed(tables["fills"], metric=metric, infiller=infiller)


def _fill_median(metric: str, infiller: str, tables: Tables) -> BySeed:
    rows = where(tables["fills"], metric=metric, infiller=infiller)
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    return {seed: float(np.median(values[at == seed])) for seed in sorted(set(at.tolist()))}


def _ordered(find: Callable[[str, str, Tables], BySeed], metric: str, generative: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        rows = [
            {"replicate": seed, "group": "generative" if name == generative else name, "value": value}
            for name in ("noise", "blur", generative)
            for seed, value in find(metric, name, tables).items()
        ]
        return pa.Table.from_pylist(rows)

    statistic.__doc__ = says
    return statistic


distances_vae = _ordered(_fill, "distance", "vae", "Mean distance to real scenes in features: noise, blur, VAE.")
distances_gan = _ordered(_fill, "distance", "gan", "Mean distance to real scenes in features: noise, blur, GAN.")
oddness_vae = _ordered(_fill_median, "odd_change", "vae", "Median change of the log-odds: noise, blur, VAE.")
oddness_gan = _ordered(_fill_median, "odd_change", "gan", "Median change of the log-odds: noise, blur, GAN.")


def _odd_ratio(generative: str) -> Statistic:
    def found(tables: Tables) -> BySeed:
        strange = _average(_fill_median("odd_change", name, tables) for name in ("zeros", "mean", "noise"))
        return _ratio(strange, _fill_median("odd_change", generative, tables))

    return _said(found, f"Median change of the log-odds, mean of zeros, grey and noise, over that of {generative}.")


odd_ratio_vae, odd_ratio_gan = _odd_ratio("vae"), _odd_ratio("gan")


def _seam_gap(heuristic: str, generative: str) -> Statistic:
    return _said(
        lambda t: _minus(_fill("seam", heuristic, t), _fill("seam", generative, t)),
        f"Seam, |log ratio|: {heuristic} minus {generative}.",
    )


seam_mean_vae, seam_blur_vae, seam_noise_vae = (_seam_gap(name, "vae") for name in HEURISTICS)
seam_mean_gan, seam_blur_gan, seam_noise_gan = (_seam_gap(name, "gan") for name in HEURISTICS)


def leak(tables: Tables) -> pa.Table:
    """Per seed and in-filler: largest change of a fill when the hidden pixels are exchanged; VAE, GAN, regression."""
    rows = where(tables["fills"], metric="leak", infiller=("vae", "gan", "judge"))
    found: dict[str, float] = {}
    columns = (rows[name].to_pylist() for name in ("seed", "infiller", "value"))
    for seed, infiller, value in zip(*columns, strict=True):
        found[f"{seed}, {infiller}"] = max(value, found.get(f"{seed}, {infiller}", 0.0))
    return replicates(found)


hidden_excess_vae = _said(lambda t: _fill("hidden_excess", "vae", t), "Accuracy above chance, object hidden: VAE.")
hidden_excess_gan = _said(lambda t: _fill("hidden_excess", "gan", t), "Accuracy above chance, object hidden: GAN.")


# F6
def _undecided_gap(infiller: str) -> Statistic:
    return _said(
        lambda t: _minus(*(at_area(t, "undecided", m, infiller, (0.0, 0.0)) for m in ("bbmp", "sdr"))),
        f"Share of the mask in [.1, .9] at matched area: BBMP minus FIDO, both with {infiller}.",
    )


undecided_blur, undecided_vae = _undecided_gap("blur"), _undecided_gap("vae")


# F10, F11
def _share(metric: str, method: str, infiller: str, place: int) -> Callable[[Tables], BySeed]:
    """Mean over the test scenes at one of the penalties, counted from the smallest."""
    return lambda t: {s: float(v[min(place, len(v) - 1)]) for s, v in means(t, metric, method, infiller).items()}


share_flipped = _said(
    lambda t: _average(_share("flips_own", "sdr", name, 1)(t) for name in (*HEURISTICS, "vae", "gan")),
    "Share of scenes whose class changes when the region is filled, mean over in-fillers, second smallest penalty.",
)
random_ratio = _said(
    lambda t: {s: 1 / v for s, v in _flip_ratio(("random", "", 0), ("sdr", "vae", 0), "judge")(t).items()},
    "Flipping area of FIDO with the VAE over that of a random order. Median over scenes.",
)
share_kept = _said(
    _share("kept_hit", "ssr", "vae", 0),
    "Share of scenes given their class when the region alone is kept (SSR, VAE), smallest penalty.",
)
nothing_kept = _said(
    _share("nothing_excess", "ssr", "vae", 0), "Probability of the class above chance with nothing kept."
)


# F12
def _shape(metric: str, ends: tuple[float, float], combine: Callable[[BySeed, BySeed], BySeed], says: str) -> Statistic:
    def found(tables: Tables) -> BySeed:
        generative = at_area(tables, metric, "sdr", "vae", ends)
        return _middle(combine(at_area(tables, metric, "sdr", name, ends), generative) for name in HEURISTICS)

    return _said(found, says)


parts_gap = _shape("parts", (0.0, 1.0), _minus, "Parts of the region at matched area: median heuristic minus VAE.")
perimeter_ratio = _shape(
    "perimeter2_over_area", (0.0, 16.0), _ratio, "Perimeter^2 / area at matched area: median heuristic over VAE."
)


# F14 and repeatability
def _agreed(pair: str) -> Callable[[Tables], BySeed]:
    return lambda tables: by_seed(tables["agreement"], pair=pair)


same_minus_other = _said(
    lambda t: _minus(_average(_agreed(f"two runs, {n}")(t) for n in ("vae", "mean")), _agreed("two in-fillers")(t)),
    "Rank correlation of maps: two runs with one in-filler minus two in-fillers (VAE, mean); mean over penalties.",
)
same_run = _said(
    _agreed("two runs, vae"), "Rank correlation of the maps of two runs with the VAE, mean over penalties."
)

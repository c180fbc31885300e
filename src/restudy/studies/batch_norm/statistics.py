"""One number per replicate from the results tables, for every claim and gate. numpy and pyarrow only.

The replicate is the seed (the draw for exact statements); positive is the paper's direction. Unless a name says
otherwise the nets are the convolutional ones at learning rate 0.1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.studies.batch_norm.measures import (
    best_accuracy,
    curvature_contrast,
    drift_ratio,
    log_ratio,
    loss_fall,
    output_gradient_at_equal_loss,
    share_of_gap,
    shift_cells,
    shift_difference,
    shift_size_ratio,
    steps_ratio,
)
from restudy.studies.batch_norm.tidy import (
    BN,
    NOISY,
    RATE,
    STD,
    STD_NOISE,
    BySeed,
    Statistic,
    Tables,
    by_seed,
    final,
    log10,
    minus,
    statistic,
    where,
)

SLOW, FAST = "1e-7", "1e-6"
DEEP = "deep_"


def _half_minus_noise(tables: Tables) -> BySeed:
    plain, noise = final(tables, STD), final(tables, STD_NOISE)
    return {seed: 0.5 * plain[seed] - noise[seed] for seed in plain}


def _stability(place: str) -> Statistic:
    says = (
        f"Wasserstein-1 distance between consecutive checkpoints, plain over batch norm, at the {place}; median layer."
    )
    return statistic(drift_ratio("wasserstein", STD, BN, place), says)


def _final_minus_bn(arm: str) -> Statistic:
    says = f"Final train accuracy: {arm} minus batch norm."
    return statistic(lambda tables: minus(final(tables, f"{arm}-{RATE}"), final(tables, BN)), says)


def _l1_below_bn(tables: Tables) -> BySeed:
    losses = [by_seed(tables["deep_training"], run=f"{arm}-{FAST}", metric="last_loss") for arm in ("bn", "l1")]
    return {seed: log10(losses[0][seed] / losses[1][seed]) for seed in losses[0]}


def _exact(check: str, says: str) -> Statistic:
    """A check of the table `identities`: the draws are the replicates."""

    def found(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], check=check)
        return pa.table({"replicate": rows["draw"], "value": rows["value"]})

    found.__doc__ = says
    return found


# Gates.
std_best_accuracy = statistic(best_accuracy("std"), "Train accuracy of the plain net at its own best learning rate.")
bn_best_accuracy = statistic(best_accuracy("bn"), "Train accuracy of the batch-norm net at its own best learning rate.")
std_diverged = statistic(lambda tables: final(tables, STD, "diverged"), "1 where the plain net diverged.")
bn_minus_std = statistic(lambda tables: minus(final(tables, BN), final(tables, STD)), "Train accuracy, BN minus plain.")
noisy_mean_drift = statistic(
    drift_ratio("mean_change", NOISY, STD), "Change of the units' means in a step, noisy over plain; median layer."
)
noisy_variance_drift = statistic(
    drift_ratio("variance_change", NOISY, STD), "Change of the units' variances in a step, noisy over plain."
)
std_shift_cosine = statistic(
    shift_cells(STD, lambda cells: float(np.median(cells)), until=10**9), "Median cosine of the plain net's gradients."
)
deep_fall_std_slow = statistic(loss_fall(f"std-{SLOW}"), "Loss at the start over the end, deep linear, plain, 1e-7.")
deep_fall_bn_slow = statistic(loss_fall(f"bn-{SLOW}"), "The same with batch norm.")
deep_fall_std_fast = statistic(loss_fall(f"std-{FAST}"), "Loss at the start over the end, deep linear, plain, 1e-6.")
deep_fall_bn_fast = statistic(loss_fall(f"bn-{FAST}"), "The same with batch norm.")

# N1, N2, N3, N9
bn_steps_ratio = statistic(steps_ratio(BN), "Steps to the plain net's level at 60% of its run: plain over batch norm.")
noisy_steps_ratio = statistic(steps_ratio(NOISY), "The same: plain over noisy batch norm.")
noisy_keeps_three_quarters = statistic(
    share_of_gap(NOISY, 0.75), "A quarter of (BN - plain) minus (BN - noisy), train accuracy."
)
noisy_keeps_half = statistic(share_of_gap(NOISY, 0.5), "(noisy - plain) minus half of (BN - plain), train accuracy.")
half_std_minus_noise = statistic(_half_minus_noise, "Half the plain net's train accuracy minus that with noise.")

# N4
shift_cosine_gap = statistic(shift_difference(), "Median over layers and probes of cos_std - cos_BN.")

# N5 and its relative version
loss_range_gap = statistic(log_ratio("loss_range"), "log10 of the loss range along the gradient, plain over BN.")
gradient_change_gap = statistic(log_ratio("gradient_change"), "log10 of the largest gradient change, plain over BN.")
smoothness_gap = statistic(log_ratio("effective_smoothness"), "log10 of beta_eff, plain over BN.")
relative_loss_range_gap = statistic(log_ratio("loss_range_relative"), "The loss range over the loss.")
relative_gradient_change_gap = statistic(log_ratio("gradient_change_relative"), "The change over the gradient's norm.")

late_loss_range_gap = statistic(log_ratio("loss_range", late=True), "The loss range after the first third.")
late_gradient_change_gap = statistic(log_ratio("gradient_change", late=True), "The gradient's change after it.")
late_smoothness_gap = statistic(log_ratio("effective_smoothness", late=True), "beta_eff after the first third.")

# N6
l1_minus_bn, l2_minus_bn, linf_minus_bn = (_final_minus_bn(arm) for arm in ("l1", "l2", "linf"))
deep_l1_below_bn = statistic(_l1_below_bn, "log10 of the deep linear network's last loss at 1e-6, BN over l_1.")

# N7, N10 and the two exact additions
theorem_error = _exact("theorem_error", "Relative deviation from Theorem 4.1 with 1/m.")
observation_gap = _exact("observation_gap", "Relative deviation of the activations of Observation 4.3.")
printed_bound_holds = _exact("printed_bound_holds", "1 where the bound as printed, with 1/sqrt(m), holds.")
gradient_excess = _exact("gradient_excess", "By how much the gradient behind batch norm exceeds the one at its output.")
missing_part_error = _exact("missing_part_error", "Deviation of the missing part from the two batch averages.")
weight_bound_error = _exact("weight_bound_error", "Deviation of the largest weight gradient from its closed form.")
weight_bound_excess = _exact("weight_bound_excess", "By how much batch norm's largest weight gradient exceeds.")
shift_without_lower_step = _exact("shift_without_lower_step", "||G - G'|| where no lower layer moved.")

# N8
stability_ratio = _stability("input")
stability_ratio_before = _stability("before")

# N11, N12
curvature_gap = statistic(curvature_contrast(1.5), "Contrast of g'Hg/||g||^2, plain against 1.5 times BN.")
output_gradient_gap = statistic(output_gradient_at_equal_loss, output_gradient_at_equal_loss.__doc__ or "")


def _low(cells: np.ndarray) -> float:
    """A fifth of the cells lie at or below this."""
    return float(np.quantile(cells, 0.2))


def _deep(rate: str) -> dict[str, Statistic]:
    """Covariate shift and smoothness of the deep linear network at one learning rate."""
    std, bn = f"std-{rate}", f"bn-{rate}"
    median = shift_cells(std, lambda cells: float(np.median(cells)), prefix=DEEP)
    gaps = {m: log_ratio(m, one=std, other=bn, prefix=DEEP) for m in ("loss_range", "gradient_change")}
    smooth = log_ratio("effective_smoothness", one=std, other=bn, prefix=DEEP)
    return {
        "cosine": statistic(median, f"Median cosine of the plain network's gradients, {rate}."),
        "low": statistic(shift_cells(bn, _low, prefix=DEEP), f"A fifth of BN's cosines are below this, {rate}."),
        "size": statistic(shift_size_ratio(bn, std, prefix=DEEP), f"Median of ||G - G'||, BN over plain, {rate}."),
        "loss": statistic(gaps["loss_range"], f"log10 of the loss range, plain over BN, {rate}."),
        "change": statistic(gaps["gradient_change"], f"log10 of the gradient change, plain over BN, {rate}."),
        "smooth": statistic(smooth, f"log10 of beta_eff, plain over BN, {rate}."),
    }


deep_cosine_slow, deep_low_slow, deep_size_slow, deep_loss_slow, deep_change_slow, deep_smooth_slow = _deep(
    SLOW
).values()
deep_cosine_fast, deep_low_fast, deep_size_fast, deep_loss_fast, deep_change_fast, deep_smooth_fast = _deep(
    FAST
).values()

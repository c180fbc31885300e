"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed, or the case of an identity; positive is the paper's direction. NLL is in nats. Names of
arms hold `k*` for the largest k of the run and `n*` for its fewest training images.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pyarrow as pa

from restudy.contrasts import Measure, Values, each, measure, per_seed
from restudy.tables import Tables, by_seed, grouped, levels, ordered, where

from .arms import THEN, Arm, largest_k, plain_arms

ACTIVE = 0.01
VAE, IWAE, VAE_K = "vae_k1", "iwae_k*", "vae_k*"

# Identities: W1, W8, W9
identity = partial(each, "identities")
toy_above = identity(claim="W1", metric="above log p")
toy_not_shrinking = identity(claim="W1", metric="gap not smaller")
one_sample_value = identity(claim="W8", metric="value")
one_sample_gradient = identity(claim="W8", metric="gradient")
analytic_divergence = identity(claim="W8", metric="analytic divergence")
weighted_sum = identity(claim="W9", metric="weighted sum")
library_gradient = identity(claim="W9", metric="library")
finite_differences = identity(claim="W9", metric="finite differences")
encoder_shortfall = identity(claim="W9", metric="no encoder gradient")
attached_shortfall = identity(claim="W9", metric="attached weights")


def resolved(tables: Tables, arm: str) -> str:
    """Fill in the largest k and the fewest images of a run."""
    names = set(levels(tables["likelihood"], "arm"))
    sizes = {Arm.parse(name).images for name in names if THEN not in name} - {None}
    fewest = min((n for n in sizes if n is not None), default=0)
    return arm.replace("k*", f"k{largest_k(names)}").replace("n*", f"n{fewest}")


def nll(arm: str, part: str = "test") -> Measure:
    """Return an arm's negative log-likelihood, nats."""

    def compute(tables: Tables) -> Values:
        return dict(by_seed(tables["likelihood"], arm=resolved(tables, arm), part=part, metric="nll"))

    return Measure(compute, f"nll of {arm}{'' if part == 'test' else ' on ' + part}")


def active(arm: str) -> Measure:
    """Return the number of an arm's units of the first layer whose mean's variance exceeds .01."""

    def compute(tables: Tables) -> Values:
        rows = where(tables["units"], arm=resolved(tables, arm), layer=1, metric="variance")
        found: Values = dict.fromkeys(levels(tables["units"]), math.nan)
        for seed in levels(rows):
            found[seed] = float((where(rows, seed=seed)["value"].to_numpy() > ACTIVE).sum())
        return found

    return Measure(compute, f"active units of {arm}")


# W1, W2
@measure
def bound_steps(tables: Tables) -> pa.Table:
    """L_k' - L_k for adjacent k, mean over test images of the VAE and of the IWAE; every k has draws of its own."""
    table = where(tables["bounds"], metric="bound")
    ks = levels(table, "k")
    bounds = {k: by_seed(table, k=k) for k in ks}
    pairs = list(zip(ks[:-1], ks[1:], strict=True))
    return grouped(
        {f"{low} to {high}": {s: bounds[high][s] - v for s, v in bounds[low].items()} for low, high in pairs}
    )


@measure
def nll_by_k(tables: Tables) -> pa.Table:
    """Fall of the NLL from the VAE to the IWAE with the next larger k, and so on; a group is one such step."""
    arms = plain_arms(set(levels(tables["likelihood"], "arm")), "iwae")
    names = [VAE, *(arm.name for arm in arms if arm.k > 1)]
    steps = zip(names[:-1], names[1:], strict=True)
    return grouped({f"{a} to {b}": (nll(a) - nll(b)).values(tables) for a, b in steps})


nll_total_drop = nll(VAE) - nll(IWAE)
half_drop_minus_vae = 0.5 * nll_total_drop - abs(nll(VAE) - nll(VAE_K))

# W3
units_iwae_minus_vae = active(IWAE) - active(VAE)
units_vae_k_minus_vae = active(VAE_K) - active(VAE)


def late_change(arm: str) -> Measure:
    """Return by how many units an arm's count changes over the last quarter of training."""

    def compute(tables: Tables) -> Values:
        found = {}
        for seed in levels(tables["training"]):
            chosen = {"arm": resolved(tables, arm), "metric": "active_units_1", "seed": seed}
            steps, units = ordered(tables["training"], "step", **chosen)
            early = np.flatnonzero(steps <= 0.75 * steps[-1])[-1] if len(steps) else 0
            found[seed] = float(abs(units[-1] - units[early])) if len(steps) else math.nan
        return found

    return Measure(compute, f"change of active units of {arm} over the last quarter")


late_change_vae, late_change_iwae = late_change(VAE), late_change(IWAE)


@measure
def units_of_iwae(tables: Tables) -> Values:
    """Units of the first layer of the IWAE with the largest k."""
    rows = where(tables["units"], arm=resolved(tables, IWAE), layer=1, metric="variance")
    return dict.fromkeys(levels(tables["units"]), float(len(levels(rows, "unit_index"))))


inactive_iwae = units_of_iwae - active(IWAE)  # none would be a ceiling

# W4: swaps
STAYED, TO_IWAE = f"{VAE}{THEN}{VAE}", f"{VAE}{THEN}{IWAE}"
TO_VAE, STAYED_IWAE = f"{IWAE}{THEN}{VAE}", f"{IWAE}{THEN}{IWAE}"
swap_to_iwae = nll(STAYED) - nll(TO_IWAE)
swap_to_vae = nll(TO_VAE) - nll(STAYED_IWAE)
swap_units_up = active(TO_IWAE) - active(STAYED)
swap_units_down = active(STAYED_IWAE) - active(TO_VAE)
swap_improves_as_printed = nll(VAE) - nll(TO_IWAE)  # the paper's comparison, without the control
swap_worsens_as_printed = nll(TO_VAE) - nll(IWAE)

# W5: two stochastic layers
two_layers_vae = nll(VAE) - nll(f"{VAE}_two_layers")
two_layers_iwae = nll(IWAE) - nll(f"{IWAE}_two_layers")


# W7, W11, E3: fixed pixels
def gap(arm: str) -> Measure:
    """Return test minus training NLL, on the same binary pixels."""
    return nll(arm) - nll(arm, "train")


FIXED, FEW, FEW_FIXED = f"{VAE}_fixed", f"{VAE}_n*", f"{VAE}_fixed_n*"
gap_fixed_minus_resampled = gap(FIXED) - gap(VAE)
gap_fixed_minus_resampled_iwae = gap(f"{IWAE}_fixed") - gap(IWAE)
nll_fixed_minus_resampled = nll(FIXED) - nll(VAE)
gap_grows_with_fewer_images = gap(FEW_FIXED) - gap(FEW) - gap_fixed_minus_resampled
nll_fixed_minus_resampled_few = nll(FEW_FIXED) - nll(FEW)


# W6 and its toy: signal-to-noise of gradients against k
def log_slope(rows: pa.Table) -> float:
    """Slope of log signal-to-noise against log k; NaN where noise hides a gradient."""
    x, y = np.log(rows["k"].to_numpy()), np.log(rows["value"].to_numpy())
    return float(np.polyfit(x, y, 1)[0]) if len(x) > 1 and np.isfinite(y).all() else math.nan


def distance(rows: pa.Table) -> float:
    """Distance of the mean gradient from IWAE's in standard errors, largest over k."""
    lengths, errors = (ordered(rows, "k", metric=m)[1] for m in ("distance", "distance_error"))
    return float((lengths / errors).max()) if len(lengths) else math.nan


trained_slope = partial(
    per_seed, "signal", log_slope, "slope of log signal-to-noise in log k", arm=VAE, metric="signal_to_noise"
)
toy_slope = partial(
    per_seed, "toy_gradients", log_slope, "slope of log signal-to-noise in log k", metric="signal_to_noise"
)
toy_distance = partial(per_seed, "toy_gradients", distance, "largest distance from IWAE's gradient")
encoder_slope = trained_slope(objective="iwae", parameters="encoder")
decoder_slope = trained_slope(objective="iwae", parameters="decoder")
dreg_slope = trained_slope(objective="dreg", parameters="encoder")
dreg_distance = per_seed(
    "signal", distance, "largest distance from IWAE's gradient", objective="dreg", parameters="encoder", arm=VAE
)
toy_iwae_slope, toy_dreg_slope = toy_slope(objective="iwae"), toy_slope(objective="dreg")
toy_dreg_distance, toy_stl_distance = toy_distance(objective="dreg"), toy_distance(objective="stl")


def largest_bias(rows: pa.Table) -> float:
    """Largest over the arms."""
    return max((v for v in rows["value"].to_pylist() if not math.isnan(v)), default=math.nan)


likelihood_error = per_seed(
    "likelihood", largest_bias, "largest estimated bias of L_K over the arms", part="test", metric="bias"
)

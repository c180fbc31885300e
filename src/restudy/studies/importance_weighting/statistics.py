"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

The replicate is the seed unless a docstring says otherwise; positive is the paper's direction. NLL is minus L_K of test
images in nats, K the same for all arms; the "largest k" is the largest one that the preset trains an IWAE with.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.importance_weighting.arms import THEN, Arm, largest_k, plain_arms
from restudy.studies.importance_weighting.tidy import (
    NAN,
    BySeed,
    Tables,
    arms_of,
    by_seed,
    grouped,
    minus,
    replicates,
    where,
)

Statistic = Callable[[Tables], pa.Table]
ACTIVE = 0.01
VAE, FIXED = "vae_k1", "vae_k1_fixed"


def _identity(claim: str, metric: str, says: str) -> Statistic:
    """Deviations from an identity: one replicate per case, 0 is right."""

    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], claim=claim, metric=metric)
        return replicates(dict(zip(rows["case"].to_pylist(), rows["value"].to_pylist(), strict=True)))

    statistic.__doc__ = says
    return statistic


toy_above = _identity("W1", "above log p", "Per k: nats by which mean L_k - 3 s.e. lies above the known log p(x).")
toy_not_shrinking = _identity("W1", "gap not smaller", "Per k: nats by which the gap fails to shrink by 3 s.e.")
one_sample_value = _identity("W8", "value", "Per network: relative deviation of L_1 from the one-sample ELBO.")
one_sample_gradient = _identity("W8", "gradient", "Per network: the same for all parameter gradients.")
analytic_divergence = _identity("W8", "analytic divergence", "Deviation of the means in units of 3 standard errors.")
weighted_sum = _identity("W9", "weighted sum", "Per network: sum of weighted gradients against autograd of L_k.")
library_gradient = _identity("W9", "library", "Per network: what training uses against autograd of L_k.")
finite_differences = _identity("W9", "finite differences", "Per network: central differences against autograd.")
encoder_shortfall = _identity("W9", "no encoder gradient", "Per network: what the encoder's share lacks of 1%.")
attached_shortfall = _identity("W9", "attached weights", "Per network: what the wrong form's deviation lacks of 1%.")


def _nll(tables: Tables, arm: str, part: str = "test") -> BySeed:
    return by_seed(tables["likelihood"], arm=arm, part=part, metric="nll")


def _largest(tables: Tables) -> int:
    return largest_k(arms_of(tables["likelihood"]))


def _names(tables: Tables) -> tuple[str, str]:
    """IWAE and VAE with the largest k."""
    k = _largest(tables)
    return f"iwae_k{k}", f"vae_k{k}"


# W1
def bound_steps(tables: Tables) -> pa.Table:
    """L_k' - L_k for adjacent k, mean over test images of the VAE and of the IWAE; every k has draws of its own."""
    table = where(tables["bounds"], metric="bound")
    ks = sorted(set(table["k"].to_pylist()))
    steps = {}
    for low, high in zip(ks[:-1], ks[1:], strict=True):
        steps[f"{low} to {high}"] = minus(by_seed(table, k=high), by_seed(table, k=low))
    return grouped(steps)


# W2
def nll_by_k(tables: Tables) -> pa.Table:
    """Fall of the NLL from the VAE to the IWAE with the next larger k, and so on; a group is one such step."""
    plain = plain_arms(arms_of(tables["likelihood"]), "iwae")
    names = [VAE, *(arm.name for arm in plain if arm.k > 1)]
    pairs = zip(names[:-1], names[1:], strict=True)
    return grouped({f"{a} to {b}": minus(_nll(tables, a), _nll(tables, b)) for a, b in pairs})


def nll_total_drop(tables: Tables) -> pa.Table:
    """NLL of the VAE minus that of the IWAE with the largest k."""
    return replicates(minus(_nll(tables, VAE), _nll(tables, _names(tables)[0])))


def half_drop_minus_vae(tables: Tables) -> pa.Table:
    """Half of that drop minus what k samples bring to the VAE (positive or negative, by size)."""
    vae = _nll(tables, VAE)
    iwae, averaged = (minus(vae, _nll(tables, name)) for name in _names(tables))
    return replicates({seed: 0.5 * iwae[seed] - abs(averaged[seed]) for seed in vae})


# W3
def _active(tables: Tables, arm: str, layer: int = 1) -> BySeed:
    rows = where(tables["units"], arm=arm, layer=layer, metric="variance")
    at, values = rows["seed"].to_numpy(), rows["value"].to_numpy()
    seeds = sorted(set(tables["units"]["seed"].to_pylist()))
    return {seed: float((values[at == seed] > ACTIVE).sum()) if (at == seed).any() else NAN for seed in seeds}


def units_iwae_minus_vae(tables: Tables) -> pa.Table:
    """Active units of the IWAE with the largest k minus those of the VAE."""
    return replicates(minus(_active(tables, _names(tables)[0]), _active(tables, VAE)))


def units_vae_k_minus_vae(tables: Tables) -> pa.Table:
    """Active units of the VAE with as many samples minus those of the VAE with one."""
    return replicates(minus(_active(tables, _names(tables)[1]), _active(tables, VAE)))


def _late_change(tables: Tables, arm: str) -> pa.Table:
    table = tables["training"]
    rows = where(table, arm=arm, metric="active_units_1")
    seeds = sorted(set(table["seed"].to_pylist()))
    found = {}
    for seed in seeds:
        curve = where(rows, seed=seed).sort_by("step")
        steps, values = curve["step"].to_numpy(), curve["value"].to_numpy()
        if not len(steps):
            found[seed] = NAN
            continue
        early = int(np.flatnonzero(steps <= 0.75 * steps[-1])[-1])
        found[seed] = float(abs(values[-1] - values[early]))
    return replicates(found)


def late_change_vae(tables: Tables) -> pa.Table:
    """Gate: by how many units the VAE's count changes over the last quarter of training."""
    return _late_change(tables, VAE)


def late_change_iwae(tables: Tables) -> pa.Table:
    """Gate: the same for the IWAE with the largest k."""
    return _late_change(tables, _names(tables)[0])


def inactive_iwae(tables: Tables) -> pa.Table:
    """Gate: units that the IWAE with the largest k does not use; none would be a ceiling."""
    iwae = _names(tables)[0]
    rows = where(tables["units"], arm=iwae, layer=1, metric="variance")
    total = len(set(rows["unit_index"].to_pylist()))
    return replicates({seed: total - found for seed, found in _active(tables, iwae).items()})


# W4
def _swap(tables: Tables, before: str, after: str) -> str:
    k = _largest(tables)
    names = {"vae": VAE, "iwae": f"iwae_k{k}"}
    return f"{names[before]}_then_{names[after]}"


def swap_to_iwae(tables: Tables) -> pa.Table:
    """NLL of a VAE that went on as VAE minus that of one that went on as IWAE, equal steps."""
    return replicates(minus(_nll(tables, _swap(tables, "vae", "vae")), _nll(tables, _swap(tables, "vae", "iwae"))))


def swap_to_vae(tables: Tables) -> pa.Table:
    """NLL of an IWAE that went on as VAE minus that of one that went on as IWAE, equal steps."""
    return replicates(minus(_nll(tables, _swap(tables, "iwae", "vae")), _nll(tables, _swap(tables, "iwae", "iwae"))))


def swap_units_up(tables: Tables) -> pa.Table:
    """Active units: went on as IWAE minus went on as VAE, both from the trained VAE."""
    return replicates(
        minus(_active(tables, _swap(tables, "vae", "iwae")), _active(tables, _swap(tables, "vae", "vae")))
    )


def swap_units_down(tables: Tables) -> pa.Table:
    """Active units: went on as IWAE minus went on as VAE, both from the trained IWAE."""
    return replicates(
        minus(_active(tables, _swap(tables, "iwae", "iwae")), _active(tables, _swap(tables, "iwae", "vae")))
    )


def swap_improves_as_printed(tables: Tables) -> pa.Table:
    """NLL of the VAE minus that after it went on as IWAE: the paper's comparison, without the control."""
    return replicates(minus(_nll(tables, VAE), _nll(tables, _swap(tables, "vae", "iwae"))))


def swap_worsens_as_printed(tables: Tables) -> pa.Table:
    """NLL of the IWAE after it went on as VAE minus before: the paper's comparison, without the control."""
    return replicates(minus(_nll(tables, _swap(tables, "iwae", "vae")), _nll(tables, _names(tables)[0])))


# W5
def two_layers_vae(tables: Tables) -> pa.Table:
    """NLL of the VAE with one stochastic layer minus that with two."""
    return replicates(minus(_nll(tables, VAE), _nll(tables, f"{VAE}_two_layers")))


def two_layers_iwae(tables: Tables) -> pa.Table:
    """The same for the IWAE with the largest k."""
    iwae = _names(tables)[0]
    return replicates(minus(_nll(tables, iwae), _nll(tables, f"{iwae}_two_layers")))


# W7, W11
def _gap(tables: Tables, arm: str) -> BySeed:
    return minus(_nll(tables, arm), _nll(tables, arm, "train"))


def gap_fixed_minus_resampled(tables: Tables) -> pa.Table:
    """Test minus training NLL, on the same binary pixels: fixed pixels minus resampled ones, VAE with k = 1."""
    return replicates(minus(_gap(tables, FIXED), _gap(tables, VAE)))


def gap_fixed_minus_resampled_iwae(tables: Tables) -> pa.Table:
    """The same for the IWAE with the largest k."""
    iwae = _names(tables)[0]
    return replicates(minus(_gap(tables, f"{iwae}_fixed"), _gap(tables, iwae)))


def nll_fixed_minus_resampled(tables: Tables) -> pa.Table:
    """Test NLL, fixed minus resampled, VAE with k = 1 and all images."""
    return replicates(minus(_nll(tables, FIXED), _nll(tables, VAE)))


def _few(tables: Tables) -> int:
    found = {Arm.parse(a).images for a in arms_of(tables["likelihood"]) if THEN not in a}
    return min((n for n in found if n is not None), default=0)


def gap_grows_with_fewer_images(tables: Tables) -> pa.Table:
    """The difference of the gaps with few images minus that with all of them, VAE with k = 1."""
    n = _few(tables)
    few = minus(_gap(tables, f"{FIXED}_n{n}"), _gap(tables, f"{VAE}_n{n}"))
    return replicates(minus(few, minus(_gap(tables, FIXED), _gap(tables, VAE))))


def nll_fixed_minus_resampled_few(tables: Tables) -> pa.Table:
    """Test NLL with few images, fixed minus resampled, VAE with k = 1."""
    n = _few(tables)
    return replicates(minus(_nll(tables, f"{FIXED}_n{n}"), _nll(tables, f"{VAE}_n{n}")))


# W6 and its toy
def _slope(table: pa.Table) -> BySeed:
    """Slope of log signal-to-noise against log k by seed; NaN where noise hides a gradient."""
    found = {}
    for seed in sorted(set(table["seed"].to_pylist())):
        rows = where(table, seed=seed)
        x, y = np.log(rows["k"].to_numpy()), np.log(rows["value"].to_numpy())
        found[seed] = float(np.polyfit(x, y, 1)[0]) if len(x) > 1 and np.isfinite(y).all() else NAN
    return found


def _signal_slope(tables: Tables, objective: str, parameters: str) -> BySeed:
    rows = where(tables["signal"], objective=objective, parameters=parameters, metric="signal_to_noise")
    return _slope(where(rows, arm=VAE))


def encoder_slope(tables: Tables) -> pa.Table:
    """IWAE's slope of the encoder's log signal-to-noise, all its parameters together, on the trained VAE."""
    return replicates(_signal_slope(tables, "iwae", "encoder"))


def decoder_slope(tables: Tables) -> pa.Table:
    """The same for the decoder."""
    return replicates(_signal_slope(tables, "iwae", "decoder"))


def dreg_slope(tables: Tables) -> pa.Table:
    """DReG's slope of the encoder's log signal-to-noise on the trained VAE."""
    return replicates(_signal_slope(tables, "dreg", "encoder"))


def _distance(table: pa.Table) -> BySeed:
    """Distance of the mean gradients in units of its standard error, largest over k, by seed."""
    found: BySeed = {}
    for seed in sorted(set(table["seed"].to_pylist())):
        rows = where(table, seed=seed)
        length, error = (where(rows, metric=m).sort_by("k")["value"].to_numpy() for m in ("distance", "distance_error"))
        found[seed] = float((length / error).max()) if len(length) else NAN
    return found


def dreg_distance(tables: Tables) -> pa.Table:
    """Distance of DReG's mean encoder gradient from IWAE's in standard errors, largest over k."""
    rows = where(tables["signal"], objective="dreg", parameters="encoder", arm=VAE)
    return replicates(_distance(rows))


def toy_iwae_slope(tables: Tables) -> pa.Table:
    """Slope of the encoder's log signal-to-noise against log k on the toy, IWAE."""
    return replicates(_slope(where(tables["toy_gradients"], objective="iwae", metric="signal_to_noise")))


def toy_dreg_slope(tables: Tables) -> pa.Table:
    """The same for DReG."""
    return replicates(_slope(where(tables["toy_gradients"], objective="dreg", metric="signal_to_noise")))


def toy_dreg_distance(tables: Tables) -> pa.Table:
    """Distance of DReG's mean gradient from IWAE's on the toy in standard errors, largest over k."""
    return replicates(_distance(where(tables["toy_gradients"], objective="dreg")))


def toy_stl_distance(tables: Tables) -> pa.Table:
    """Distance of STL's mean gradient from IWAE's on the toy in standard errors, largest over k."""
    return replicates(_distance(where(tables["toy_gradients"], objective="stl")))


# The error of the estimate itself
def likelihood_error(tables: Tables) -> pa.Table:
    """Gate: largest over the arms of the estimated bias of L_K, nats."""
    rows = where(tables["likelihood"], part="test", metric="bias")
    found: BySeed = {}
    for seed in sorted(set(rows["seed"].to_pylist())):
        values = where(rows, seed=seed)["value"].to_pylist()
        found[seed] = max((v for v in values if not math.isnan(v)), default=NAN)
    return replicates(found)

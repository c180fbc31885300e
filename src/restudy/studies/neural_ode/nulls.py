"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

from collections.abc import Callable

from restudy.nulls import Null, changed, in_turn, next_seed, spoiled


def constant(value: float) -> Callable[[float], float]:
    """Return a function that gives the same number for every row."""
    return lambda _: value


def nearly(value: float) -> Callable[[float], float]:
    """Return a function that leaves a hundredth of each row's own number around a value."""
    return lambda own: value + 0.01 * own


def identities_off(claim: str) -> Null:
    """Add 1 to every deviation of an exact claim."""
    return spoiled("identities", 1.0, claim=claim)


TOLERANCE_WITHOUT_EFFECT = in_turn(
    changed("tolerances", constant(1e-3), metric="state_error"),
    changed("tolerances", constant(26.0), metric="evaluations"),
)
PLANAR_LIKE_CONTINUOUS = next_seed("arm", "nf", "cnf", "densities")

planted_nulls = {
    "O1": changed("gradients", lambda error: error + 1e-3, column="error"),
    "O2": changed("memory", constant(1000), column="bytes", method="backprop"),
    "O3": TOLERANCE_WITHOUT_EFFECT,
    "E3": TOLERANCE_WITHOUT_EFFECT,
    # five points of test error worse: non-inferiority does not hold
    "O4": in_turn(
        next_seed("arm", "odenet", "resnet6", "training", metric="test_error"),
        changed("training", lambda error: error + 0.05, arm="odenet", metric="test_error"),
    ),
    "T4": next_seed("arm", "odenet", "tied6", "training", metric="test_error"),
    "O5": in_turn(
        changed("training", constant(26.0), arm="odenet", metric="forward_mean"),
        changed("training", nearly(26.0), arm="odenet", metric="backward_mean"),
    ),
    "O6": in_turn(
        changed("training", constant(26.0), arm="odenet", metric="forward_early"),
        changed("training", nearly(26.0), arm="odenet", metric="forward_late"),
    ),
    "O7": in_turn(PLANAR_LIKE_CONTINUOUS, next_seed("arm", "nf_long", "cnf", "densities")),
    "W7": PLANAR_LIKE_CONTINUOUS,
    "I7": identities_off("O7"),
    "X7": spoiled("densities", 1.0, arm="cnf", metric="jacobian_gap"),
    "O8": next_seed("arm", "rnn", "latent_ode", "forecasts"),
    "G8": in_turn(*(next_seed("arm", name, "latent_ode", "forecasts") for name in ("rnn_gaps", "gru_gaps"))),
    "I8": changed("forecasts", lambda error: 5 * error, arm="latent_ode", metric="between"),
    "O9": changed("intensities", lambda value: 0.3 * value, metric="correlation"),
    "I9": identities_off("O9"),
    "O10": in_turn(*(next_seed("arm", f"plain{n}", f"resnet{n}", "training", metric="train_loss") for n in (6, 12))),
    "O11": identities_off("O11"),
    "O12": spoiled("exchanges", 1.0, solver="bosh3", metric="logit_distance"),
    "V1": changed("exchanges", constant(0.1), arm="odenet", solver="rk4-16", metric="accuracy"),
    "O13": in_turn(*(next_seed("arm", "odenet", "resnet6", table) for table in ("train_timings", "curves"))),
    "O14": in_turn(next_seed("method", "determinant", "trace", "trace_timings"), identities_off("O14")),
    "I14": identities_off("O14"),
    "T3": changed("solver_timings", lambda seconds: 1 / seconds, column="seconds"),
    "D1": identities_off("D1"),
    "G1": changed("gradients", constant(1e-9), column="error", method="euler"),
}

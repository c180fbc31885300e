"""One number per replicate from the results tables, for every claim, control and gate.

The replicate is the seed, or the case of an identity; positive is the paper's direction. Validation metrics are those
after the last epoch, from the warm start where there is one.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from restudy.contrasts import Measure, Values, each, largest, last, mean, measure
from restudy.tables import Array, Tables, arrays, levels, ordered, where

RB, PLUS, GUMBEL = "rb5_plus", "reinforce_plus", "gumbel"

# R1, R2, R7 to R9: deviations from identities
identity = partial(each, "identities")
mean_error = identity(claim="R1", metric="mean")  # in units of 4 standard errors
bound_excess = identity(claim="R2", metric="bound")
variance_error = identity(claim="R2", metric="empirical")  # in units of 5 standard errors
product_rule_error = identity(claim="R7", metric="product rule")
score_function_error = identity(claim="R7", metric="score function")
weight_bias = identity(claim="R8", metric="bias")
wrong_weight_shortfall = identity(claim="R8", metric="shortfall")
law_error = identity(claim="R9", metric="law")
conditional_error = identity(claim="R9", metric="conditional")
total_variance_error = identity(claim="R9", metric="variance")
chi_square_shortfall = identity(claim="R9", metric="chi_square")


@measure
def concentration_shortfall(tables: Tables) -> Values:
    """R3, per eta: max(0, Var_1 / Var_0 - .01) at eta = -4, max(0, .2 - Var_1 / Var_0) at eta = 0."""
    rows = where(tables["variances"], estimator="reinforce", metric="exact")

    def ratio(eta: float) -> float:
        zero, one = (where(rows, eta=eta, k=k)["value"].to_pylist()[0] for k in (0, 1))
        return float(one / zero)

    return {"eta=-4": max(0.0, ratio(-4.0) - 0.01), "eta=0": max(0.0, 0.2 - ratio(0.0))}


# R4, E1: the toy
reached = partial(mean, "toy", metric="reached")
mean_loss = partial(mean, "toy", metric="mean_loss")
reached_exact = reached(arm="full")
reached_rb_minus_plain = reached(arm="rb1") - reached(arm="reinforce")
reached_rb_minus_two = reached(arm="rb1") - reached(arm="reinforce2")
reached_two_minus_plain = reached(arm="reinforce2") - reached(arm="reinforce")
loss_plain_minus_rb = mean_loss(arm="reinforce") - mean_loss(arm="rb1")
loss_plain_minus_two = mean_loss(arm="reinforce") - mean_loss(arm="reinforce2")
loss_plus_minus_rb_plus = mean_loss(arm="reinforce_plus") - mean_loss(arm="rb1_plus")


# R5, X1: the number of summed categories
def variances_by_case(tables: Tables) -> tuple[Array, Array, Array, Array]:
    """Return the seed of each case and budget N, and the exact variance at k_hat, at k = 0 and at the best k."""
    seed, case, n, k, k_hat, variance = arrays(
        tables["optimal"], "seed", "case", "evaluations", "k", "k_hat", "variance"
    )
    names, at = np.unique((seed * (case.max() + 1) + case) * 100 + n, return_inverse=True)
    best = np.full(len(names), np.inf)
    np.minimum.at(best, at, variance)
    hat, plain, owner = np.empty(len(names)), np.empty(len(names)), np.empty(len(names), dtype=int)
    hat[at[k == k_hat]], plain[at[k == 0]], owner[at] = variance[k == k_hat], variance[k == 0], seed
    return owner, hat, plain, best


@measure
def k_hat_excess(tables: Tables) -> Values:
    """Largest relative excess of the variance at k_hat over that of N plain draws."""
    seed, hat, plain, _ = variances_by_case(tables)
    excess = np.maximum(0.0, hat / plain - 1)
    return {int(s): float(excess[seed == s].max()) for s in np.unique(seed)}


@measure
def k_hat_near_best(tables: Tables) -> Values:
    """Share of cases whose variance at k_hat is at most twice that of the best k."""
    seed, hat, _, best = variances_by_case(tables)
    return {int(s): float((hat <= 2 * best)[seed == s].mean()) for s in np.unique(seed)}


# R6, E2, E5: the semi-supervised VAE
semi = partial(last, "semi_validation")


def gap(arm: str, start: str = "warm") -> Measure:
    """Return an arm's negative ELBO (nats) above that of full summation."""
    return semi(metric="nelbo", arm=arm, start=start) - semi(metric="nelbo", arm="full", start=start)


accuracy = partial(semi, metric="accuracy", start="warm")
gap_reinforce = gap("reinforce2")
half_gap_minus_rb = 0.5 * gap("reinforce2") - gap("rb1")
accuracy_rb_minus_plain = accuracy(arm="rb1") - accuracy(arm="reinforce2")
gap_plus_minus_rb = gap("reinforce_plus") - gap("rb1")
half_gap_minus_rb_cold = 0.5 * gap("reinforce2", "cold") - gap("rb1", "cold")

# R10, R11, E3, E4: the moving digit
moving = partial(last, "moving_validation", start="cold")
nelbo, located = partial(moving, metric="nelbo"), partial(moving, metric="located")
nelbo_plus_minus_rb = nelbo(arm=PLUS) - nelbo(arm=RB)
nelbo_gumbel_minus_rb = nelbo(arm=GUMBEL) - nelbo(arm=RB)
located_rb_minus_plus = located(arm=RB) - located(arm=PLUS)
located_best = largest(located(arm=RB), located(arm=PLUS), located(arm=GUMBEL))
constant_guess = moving(metric="constant_guess", arm=RB)
half_rb_minus_gumbel_located = 0.5 * (located(arm=RB) - constant_guess) - (located(arm=GUMBEL) - constant_guess)


def lost(table: str, rb: str, reference: str, start: str) -> Measure:
    """Return the share of the reachable fall of the negative ELBO that Gumbel-softmax loses against RB."""
    end = partial(last, table, metric="nelbo", start=start)
    first = mean(table, metric="nelbo", arm=rb, start=start, epoch=0)
    return (end(arm=GUMBEL) - end(arm=rb)) / (first - end(arm=reference))


lost_moving_minus_semi = lost("moving_validation", RB, "known_place", "cold") - lost(
    "semi_validation", "rb1", "full", "warm"
)


def at_equal(tables: Tables, budget: str) -> Values:
    """Return REINFORCE+ minus RB in negative ELBO at the smaller of their final budgets, interpolated, by seed."""
    table = where(tables["moving_validation"], metric="nelbo")
    found: Values = {}
    for seed in levels(table):
        curves = []
        for arm in (PLUS, RB):
            _, values = ordered(table, "epoch", seed=seed, arm=arm)
            spent = ordered(table, "epoch", "evaluations", seed=seed, arm=arm)[1]
            if budget == "cpu":
                spent = ordered(tables["moving_timings"], "epoch", seed=seed, arm=arm)[1]
            curves.append((spent, values))
        limit = min((spent[-1] for spent, _ in curves if len(spent)), default=math.nan)
        plus, rb = (float(np.interp(limit, spent, values)) for spent, values in curves)
        found[seed] = plus - rb
    return found


nelbo_equal_evaluations = Measure(
    partial(at_equal, budget="evaluations"), "nelbo of REINFORCE+ - RB at equally many evaluations of f"
)
nelbo_equal_cpu = Measure(
    partial(at_equal, budget="cpu"), "nelbo of REINFORCE+ - RB at equal CPU time (timing, this machine)"
)

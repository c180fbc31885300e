"""One number per replicate from the results tables, for every claim, control and gate. numpy and pyarrow only.

The replicate is the seed unless a docstring says otherwise; positive is the paper's direction. Validation metrics are
those after the last epoch, from the warm start where there is one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.rao_blackwell.tidy import BySeed, Tables, by_seed, final, replicates, where

Statistic = Callable[[Tables], pa.Table]
RB, PLUS, GUMBEL, KNOWN = "rb5_plus", "reinforce_plus", "gumbel", "known_place"
COLD = {"start": "cold"}


def _identity(claim: str, metric: str, says: str) -> Statistic:
    """Deviations from an identity: one replicate per case, 0 is right."""

    def statistic(tables: Tables) -> pa.Table:
        rows = where(tables["identities"], claim=claim, metric=metric)
        return replicates(dict(zip(rows["case"].to_pylist(), rows["value"].to_pylist(), strict=True)))

    statistic.__doc__ = says
    return statistic


def _minus(first: BySeed, second: BySeed) -> BySeed:
    return {seed: first[seed] - second.get(seed, float("nan")) for seed in first}


mean_error = _identity("R1", "mean", "Per case: deviation of the mean of all draws, in units of 4 standard errors.")
bound_excess = _identity("R2", "bound", "Per case: exact variance beyond Var_0 times the mass outside, by enumeration.")
variance_error = _identity("R2", "empirical", "Per case: empirical minus exact variance, in units of 5 of its errors.")
product_rule_error = _identity("R7", "product rule", "Per problem: relative deviation from autograd's gradient.")
score_function_error = _identity("R7", "score function", "Per problem: relative deviation from the exact gradient.")
weight_bias = _identity("R8", "bias", "Per eta and k: exact bias with the left-over mass as weight.")
wrong_weight_shortfall = _identity(
    "R8", "shortfall", "Per eta and k: what the bias with q(v) as weight lacks of 4 s.e."
)
law_error = _identity("R9", "law", "Per eta and k: largest difference of the probabilities of T and z.")
conditional_error = _identity("R9", "conditional", "Per eta and k: largest difference of E[g(T)|v] and the estimator.")
total_variance_error = _identity("R9", "variance", "Per eta and k: what the law of total variance leaves over.")
chi_square_shortfall = _identity("R9", "chi_square", "Per eta: what the p value of sampled T against q lacks of .001.")


def concentration_shortfall(tables: Tables) -> pa.Table:
    """R3, per eta: what Var_1 / Var_0 misses its bound by: below .01 at eta = -4, above .2 at eta = 0."""
    rows = where(tables["variances"], estimator="reinforce", metric="exact")

    def ratio(eta: float) -> float:
        zero, one = (where(rows, eta=eta, k=k)["value"].to_pylist()[0] for k in (0, 1))
        return float(one / zero)

    return replicates({"eta=-4": max(0.0, ratio(-4.0) - 0.01), "eta=0": max(0.0, 0.2 - ratio(0.0))})


# R4
def _toy(arm: str, metric: str, tables: Tables) -> BySeed:
    return by_seed(tables["toy"], arm=arm, metric=metric)


def _toy_gap(first: str, second: str, metric: str, sign: float, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        found = _minus(_toy(first, metric, tables), _toy(second, metric, tables))
        return replicates({seed: sign * value for seed, value in found.items()})

    statistic.__doc__ = says
    return statistic


reached_rb_minus_plain = _toy_gap("rb1", "reinforce", "reached", 1, "Share of runs below .70: RB k=1 minus plain.")
reached_rb_minus_two = _toy_gap(
    "rb1", "reinforce2", "reached", 1, "The same against two draws: as many evaluations of f as RB k=1."
)
reached_two_minus_plain = _toy_gap("reinforce2", "reinforce", "reached", 1, "Control: two draws minus one.")
loss_plain_minus_rb = _toy_gap("rb1", "reinforce", "mean_loss", -1, "Mean loss over the steps: plain minus RB k=1.")
loss_plain_minus_two = _toy_gap("reinforce2", "reinforce", "mean_loss", -1, "Control: plain minus two draws.")
loss_plus_minus_rb_plus = _toy_gap(
    "rb1_plus", "reinforce_plus", "mean_loss", -1, "Mean loss: second draw without RB minus with it (k=1)."
)


def reached_exact(tables: Tables) -> pa.Table:
    """Gate: share of runs with the exact gradient that end below .70."""
    return replicates(_toy("full", "reached", tables))


# R5
def _variances(tables: Tables) -> dict[int, list[tuple[float, float, float]]]:
    """Seed -> for each case and N the exact variance at k_hat, at k = 0 and at the best k."""
    table = tables["optimal"]
    columns = [table[n].to_numpy() for n in ("seed", "case", "evaluations", "k", "k_hat", "variance")]
    seed, case, n, k, k_hat, variance = columns
    key = (seed * (case.max() + 1) + case) * 100 + n
    names, at = np.unique(key, return_inverse=True)
    best = np.full(len(names), np.inf)
    np.minimum.at(best, at, variance)
    hat, plain, owner = np.empty(len(names)), np.empty(len(names)), np.empty(len(names), dtype=int)
    hat[at[k == k_hat]], plain[at[k == 0]], owner[at] = variance[k == k_hat], variance[k == 0], seed
    return {int(s): list(zip(hat[owner == s], plain[owner == s], best[owner == s], strict=True)) for s in set(seed)}


def k_hat_excess(tables: Tables) -> pa.Table:
    """Largest excess, relative, of the variance at k_hat over that of N plain draws."""
    found = {s: max(max(0.0, h / p - 1) for h, p, _ in rows) for s, rows in sorted(_variances(tables).items())}
    return replicates(found)


def k_hat_near_best(tables: Tables) -> pa.Table:
    """Share of cases whose variance at k_hat is at most twice that of the best k."""
    found = {s: float(np.mean([h <= 2 * b for h, _, b in rows])) for s, rows in sorted(_variances(tables).items())}
    return replicates(found)


# R6
def _semi(arm: str, metric: str, tables: Tables, **more: object) -> BySeed:
    return final(tables["semi_validation"], arm, metric, **more)


def _semi_gap(arm: str, tables: Tables, **more: object) -> BySeed:
    return _minus(_semi(arm, "nelbo", tables, **more), _semi("full", "nelbo", tables, **more))


def gap_reinforce(tables: Tables) -> pa.Table:
    """Gate: negative ELBO (nats) of plain REINFORCE with two draws above that of full summation."""
    return replicates(_semi_gap("reinforce2", tables))


def half_gap_minus_rb(tables: Tables) -> pa.Table:
    """Half of the gap of REINFORCE with two draws minus the gap of RB k=1, nats; two evaluations each."""
    plain, rb = _semi_gap("reinforce2", tables), _semi_gap("rb1", tables)
    return replicates({seed: 0.5 * plain[seed] - rb[seed] for seed in plain})


def accuracy_rb_minus_plain(tables: Tables) -> pa.Table:
    """Validation accuracy of the classifier: RB k=1 minus REINFORCE with two draws."""
    return replicates(_minus(_semi("rb1", "accuracy", tables), _semi("reinforce2", "accuracy", tables)))


def gap_plus_minus_rb(tables: Tables) -> pa.Table:
    """Gap of REINFORCE with a second draw minus the gap of RB k=1 around plain REINFORCE, nats."""
    return replicates(_minus(_semi_gap("reinforce_plus", tables), _semi_gap("rb1", tables)))


def half_gap_minus_rb_cold(tables: Tables) -> pa.Table:
    """As `half_gap_minus_rb`, without the warm start."""
    plain, rb = _semi_gap("reinforce2", tables, **COLD), _semi_gap("rb1", tables, **COLD)
    return replicates({seed: 0.5 * plain[seed] - rb[seed] for seed in plain})


# R10, R11
def _moving(arm: str, metric: str, tables: Tables) -> BySeed:
    return final(tables["moving_validation"], arm, metric, **COLD)


def _moving_gap(other: str, says: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        return replicates(_minus(_moving(other, "nelbo", tables), _moving(RB, "nelbo", tables)))

    statistic.__doc__ = says
    return statistic


nelbo_plus_minus_rb = _moving_gap(PLUS, "Negative ELBO, nats: REINFORCE with a second draw minus RB k=5.")
nelbo_gumbel_minus_rb = _moving_gap(GUMBEL, "Negative ELBO, nats: Gumbel-softmax minus RB k=5.")


def located_rb_minus_plus(tables: Tables) -> pa.Table:
    """Share of images located within 2 px: RB k=5 minus REINFORCE+; the constant guess's share cancels."""
    return replicates(_minus(_moving(RB, "located", tables), _moving(PLUS, "located", tables)))


def located_best(tables: Tables) -> pa.Table:
    """Gate: the largest share located among the three arms."""
    arms = [_moving(arm, "located", tables) for arm in (RB, PLUS, GUMBEL)]
    return replicates({seed: max(arm[seed] for arm in arms) for seed in arms[0]})


def half_rb_minus_gumbel_located(tables: Tables) -> pa.Table:
    """Half of RB's share located minus Gumbel-softmax's, both above the best constant guess."""
    guess = _moving(RB, "constant_guess", tables)
    rb, gumbel = _moving(RB, "located", tables), _moving(GUMBEL, "located", tables)
    return replicates({seed: 0.5 * (rb[seed] - guess[seed]) - (gumbel[seed] - guess[seed]) for seed in rb})


def lost_moving_minus_semi(tables: Tables) -> pa.Table:
    """Share of the reachable fall of the negative ELBO that Gumbel-softmax loses against RB: moving digit minus VAE."""
    moving = _lost(tables["moving_validation"], RB, KNOWN, "cold")
    semi = _lost(tables["semi_validation"], "rb1", "full", "warm")
    return replicates(_minus(moving, semi))


def _lost(table: pa.Table, rb: str, reference: str, start: str) -> BySeed:
    gumbel, mine, best = (final(table, arm, "nelbo", start=start) for arm in (GUMBEL, rb, reference))
    first = by_seed(where(table, arm=rb, metric="nelbo", start=start, epoch=0))
    return {seed: (gumbel[seed] - mine[seed]) / (first[seed] - best[seed]) for seed in mine}


def _at_equal(tables: Tables, budget: str) -> BySeed:
    """REINFORCE+ minus RB in negative ELBO, both at the smaller of their two final budgets, interpolated."""
    table = where(tables["moving_validation"], metric="nelbo")
    found: BySeed = {}
    for seed in sorted(set(table["seed"].to_pylist())):
        curves = []
        for arm in (PLUS, RB):
            rows = where(table, seed=seed, arm=arm).sort_by("epoch")
            spent = rows["evaluations"].to_numpy()
            if budget == "cpu":
                spent = where(tables["moving_timings"], seed=seed, arm=arm).sort_by("epoch")["value"].to_numpy()
            curves.append((spent, rows["value"].to_numpy()))
        limit = min(spent[-1] for spent, _ in curves)
        plus, rb = (float(np.interp(limit, spent, values)) for spent, values in curves)
        found[seed] = plus - rb
    return found


def nelbo_equal_evaluations(tables: Tables) -> pa.Table:
    """As `nelbo_plus_minus_rb`, when both have evaluated f equally often."""
    return replicates(_at_equal(tables, "evaluations"))


def nelbo_equal_cpu(tables: Tables) -> pa.Table:
    """As `nelbo_plus_minus_rb`, when both have used the same CPU time (timing, this machine)."""
    return replicates(_at_equal(tables, "cpu"))

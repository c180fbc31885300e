"""The toy of the paper. Stage `check`: by enumeration, and the library's draws against it (claims R1 to R3, R7 to R9).
Stage `toy`: descent from a wrong corner, and how many categories to sum (claims R4, R5).

The toy: three Bernoulli variables of one parameter eta, seen as one variable of 8 categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.estimators import (
    Marginal,
    RaoBlackwell,
    ScoreFunction,
    TableObjective,
    optimal_k,
    rao_blackwell_moments,
    top_k,
)
from restudy.methods.estimators.oracle import fourth_moment, second_sample_moments
from restudy.methods.models import derive_seed

from .experiment import builder

Array = NDArray[np.float64]
Row = dict[str, Any]

TARGET = np.array([0.6, 0.51, 0.48])
BITS = np.array([[(z >> 2) & 1, (z >> 1) & 1, z & 1] for z in range(8)], dtype=np.float64)
"""The three bits of each category, (8, 3); categories in lexicographic order, which breaks ties among equal q."""
F = ((BITS - TARGET) ** 2).sum(1)
"""f(z) = |b - p0|^2, (8,)."""
ETAS = (0.0, -4.0)
RIGHT_CORNER, WRONG_CORNER = float(F[7]), float(F[0])
"""Loss as eta goes to plus and to minus infinity: .6705 and .8505."""


def sigmoid(eta: Array | float) -> Array:
    """1 / (1 + exp(-eta))."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.asarray(eta, dtype=np.float64))))


def probabilities(eta: float) -> Array:
    """q(z) of the 8 categories, (8,)."""
    p = float(sigmoid(eta))
    ones = BITS.sum(1)
    return np.asarray(p**ones * (1 - p) ** (3 - ones))


def score(eta: float) -> Array:
    """d log q(z) / d eta, (8, 1)."""
    return np.asarray((BITS.sum(1) - 3 * float(sigmoid(eta)))[:, None])


def loss(eta: Array | float) -> Array:
    """E|b - p0|^2, any shape."""
    p = sigmoid(eta)[..., None]
    return np.asarray((p * (1 - TARGET) ** 2 + (1 - p) * TARGET**2).sum(-1))


def gradient(eta: float) -> float:
    """The exact d loss / d eta."""
    p = float(sigmoid(eta))
    return float(p * (1 - p) * (1 - 2 * TARGET).sum())


CATEGORIES, PARAMETERS = 8, 5
ABSOLUTE = 1e-12
"""Where a standard error is 0 (one category left), the deviation itself must be below this."""
SHOWN_DRAWS = 400
OTHER_SETS = ((1, 6), (0, 3, 5))


def check(context: Context, *, draws: int, problems: int) -> Outputs:
    """Enumerate and draw on the toy.

    Args:
        draws: values of the estimator drawn for each case.
        problems: random problems for the three forms of the gradient.

    Returns `identities` (claim, case, metric, value, unit), `variances` (exact and empirical, by eta, estimator and
    k) and `draws` (some values, for the figure).
    """
    rows: list[Row] = []
    variances: list[Row] = []
    shown: list[Row] = []
    for eta in ETAS:
        for k in range(8):
            chosen = top_k(probabilities(eta), k)
            values = library_draws(eta, chosen.tolist(), draws, seed=derive_seed(0, "check", str(eta), k))
            rows += against_enumeration(eta, chosen.tolist(), values, f"eta={eta:g}, k={k}")
            variances += exact_variances(eta, k, float(values.var(ddof=1)))
            picked = values[:SHOWN_DRAWS]
            shown += [{"eta": eta, "k": k, "draw": i, "value": float(v)} for i, v in enumerate(picked)]
        for other in OTHER_SETS:
            values = library_draws(eta, list(other), draws, seed=derive_seed(0, "check", str(eta), str(other)))
            rows += list(against_enumeration(eta, list(other), values, f"eta={eta:g}, C={other}"))[:1]
        rows += [*weights(eta, draws), *rebuilt(eta), *sampled_rebuilding(eta, draws)]
    rows += one_gradient(problems)
    return {"identities": rows, "variances": variances, "draws": shown}


def log_probabilities(eta: Tensor) -> Tensor:
    """log q of the 8 categories for each eta (B,): (B, 8)."""
    ones = torch.tensor(BITS.sum(1), dtype=eta.dtype)
    lit, dark = torch.nn.functional.logsigmoid(eta), torch.nn.functional.logsigmoid(-eta)
    return lit[:, None] * ones + dark[:, None] * (3 - ones)


def library_draws(eta: float, chosen: list[int], draws: int, seed: int) -> Array:
    """The library's estimate of d loss / d eta around REINFORCE, drawn many times as one batch, float64 (draws,)."""
    generator = torch.Generator().manual_seed(seed)
    leaf = torch.full((draws,), eta, dtype=torch.float64, requires_grad=True)
    objective = TableObjective(torch.tensor(F).expand(draws, -1))
    summed = torch.tensor(chosen, dtype=torch.int64)[:, None].expand(-1, draws)
    estimator = RaoBlackwell(ScoreFunction(), len(chosen))
    loss = estimator.around(log_probabilities(leaf), summed, objective, generator)
    (found,) = torch.autograd.grad(loss.sum(), leaf)
    return found.numpy()


def against_enumeration(eta: float, chosen: list[int], values: Array, case: str) -> Iterator[Row]:
    """R1: deviation of the mean in units of 4 standard errors; R2: of the variance in units of 5, and the bound."""
    q, g = probabilities(eta), F[:, None] * score(eta)
    exact, plain = rao_blackwell_moments(q, g, chosen), rao_blackwell_moments(q, g, [])
    n = len(values)
    allowed = max(4 * float(np.sqrt(exact.variance / n)), ABSOLUTE)
    yield _row("R1", case, "mean", abs(float(values.mean()) - gradient(eta)) / allowed)
    yield _row("R2", case, "bound", max(0.0, exact.variance - plain.variance * exact.outside))
    error = np.sqrt(max(fourth_moment(q, g, chosen) - exact.variance**2 * (n - 3) / (n - 1), 0.0) / n)
    yield _row("R2", case, "empirical", abs(float(values.var(ddof=1)) - exact.variance) / max(5 * error, ABSOLUTE))


def exact_variances(eta: float, k: int, empirical: float) -> Iterator[Row]:
    """Rows of `variances`: REINFORCE by enumeration and by draws, REINFORCE with a second draw (fresh and shared)."""
    q, slope = probabilities(eta), score(eta)
    chosen = top_k(q, k)
    plain = rao_blackwell_moments(q, F[:, None] * slope, chosen)
    found = {("reinforce", "exact"): plain.variance, ("reinforce", "empirical"): empirical}
    for name, fresh in (("reinforce_plus_fresh", True), ("reinforce_plus_shared", False)):
        found[name, "exact"] = second_sample_moments(q, F, slope, chosen, fresh=fresh).variance
    for (estimator, metric), value in found.items():
        yield {"eta": eta, "estimator": estimator, "k": k, "outside": plain.outside} | {
            "metric": metric, "value": value, "unit": "1"
        }  # fmt: skip


def one_gradient(problems: int) -> Iterator[Row]:
    """R7: autograd of the enumerated loss, the product-rule sum and the exact mean of g(z), on random problems.

    q is a softmax of random linear functions of 5 parameters, f a random smooth function of the same ones (float64).
    """
    for problem in range(problems):
        generator = torch.Generator().manual_seed(derive_seed(0, "one gradient", problem))
        maps = torch.randn(3, CATEGORIES, PARAMETERS, dtype=torch.float64, generator=generator)
        eta = torch.randn(PARAMETERS, dtype=torch.float64, generator=generator).requires_grad_()
        log_q = torch.log_softmax(maps[0] @ eta, 0)[None]
        f = (torch.sin(maps[1] @ eta) + (maps[2] @ eta) ** 2)[None]
        objective = TableObjective(f)
        enumerated = _gradient(Marginal(CATEGORIES).surrogate(log_q, objective).sum(), eta)
        q, values = log_q[0].exp(), f[0]
        product = sum(
            values[z].detach() * _gradient(q[z], eta) + q[z].detach() * _gradient(values[z], eta)
            for z in range(CATEGORIES)
        )
        every = torch.arange(CATEGORIES)[:, None]
        terms = ScoreFunction().terms(log_q, every, objective, torch.Generator())[:, 0]
        by_score = sum(q[z].detach() * _gradient(terms[z], eta) for z in range(CATEGORIES))
        size = float(enumerated.abs().max())
        for metric, other in (("product rule", product), ("score function", by_score)):
            value = float((torch.as_tensor(other) - enumerated).abs().max()) / size
            yield _row("R7", f"problem {problem}", metric, value)
    for eta_value in ETAS:
        g = F[:, None] * score(eta_value)
        mean = float(rao_blackwell_moments(probabilities(eta_value), g, []).mean[0])
        exact = gradient(eta_value)
        yield _row("R7", f"toy, eta={eta_value:g}", "score function", abs(mean - exact) / abs(exact))


def _gradient(value: Tensor, eta: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(value, eta, retain_graph=True)
    return found


def weights(eta: float, draws: int) -> Iterator[Row]:
    """R8: bias with the left-over mass as weight, and what q(v) in its place falls short of 4 standard errors."""
    q, g, exact = probabilities(eta), F[:, None] * score(eta), gradient(eta)
    for k in range(8):
        chosen = top_k(q, k)
        found = rao_blackwell_moments(q, g, chosen)
        yield _row("R8", f"eta={eta:g}, k={k}", "bias", abs(float(found.mean[0]) - exact))
        if k == 7:
            continue
        outside = np.setdiff1d(np.arange(8), chosen)
        rest = q[outside] / found.outside
        wrong = q[outside] * g[outside, 0]
        mean = float(q[chosen] @ g[chosen, 0] + rest @ wrong)
        error = float(np.sqrt(rest @ (wrong - rest @ wrong) ** 2 / draws))
        yield _row("R8", f"eta={eta:g}, k={k}", "shortfall", max(0.0, 4 - abs(mean - exact) / max(error, 1e-300)))


def rebuilt(eta: float) -> Iterator[Row]:
    """R9: T = u where b = 0 and v where b = 1, by enumeration: its law, E[g(T)|v], and the law of total variance."""
    q, g = probabilities(eta), (F[:, None] * score(eta))[:, 0]
    total = float(q @ (g - q @ g) ** 2)
    for k in range(1, 8):
        chosen = top_k(q, k)
        outside = np.setdiff1d(np.arange(8), chosen)
        mass = float(q[outside].sum())
        u, v = q[chosen] / q[chosen].sum(), q[outside] / mass
        law = np.zeros(8)
        law[chosen] += (1 - mass) * u
        law[outside] += mass * v
        given = (1 - mass) * (u @ g[chosen]) + mass * g[outside]
        estimator = float(q[chosen] @ g[chosen]) + mass * g[outside]
        second = (1 - mass) * (u @ g[chosen] ** 2) + mass * g[outside] ** 2
        explained = float(v @ (second - given**2))
        variance = rao_blackwell_moments(q, g[:, None], chosen).variance
        case = f"eta={eta:g}, k={k}"
        yield _row("R9", case, "law", float(np.abs(law - q).max()))
        yield _row("R9", case, "conditional", float(np.abs(given - estimator).max()))
        yield _row("R9", case, "variance", abs(total - variance - explained))


def sampled_rebuilding(eta: float, draws: int, k: int = 3) -> Iterator[Row]:
    """R9: what the chi-square test of sampled T against q falls short of p = .001; rare categories are pooled."""
    q = probabilities(eta)
    generator = np.random.default_rng(derive_seed(0, "rebuilt", str(eta)))
    chosen = top_k(q, k)
    outside = np.setdiff1d(np.arange(8), chosen)
    mass = float(q[outside].sum())
    u = generator.choice(chosen, draws, p=q[chosen] / q[chosen].sum())
    v = generator.choice(outside, draws, p=q[outside] / mass)
    t = np.where(generator.random(draws) < mass, v, u)
    counts, expected = np.bincount(t, minlength=8).astype(float), q * draws
    rare = expected < 5
    if rare.any():
        order = np.argsort(expected)
        rare = np.isin(np.arange(8), order[: max(2, int(rare.sum()) + 1)])
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    p = float(stats.chisquare(counts, expected * counts.sum() / expected.sum()).pvalue)
    yield _row("R9", f"eta={eta:g}, k={k}", "chi_square", max(0.0, 0.001 - p))


def _row(claim: str, case: str, metric: str, value: float) -> Row:
    return {"claim": claim, "case": case, "metric": metric, "value": value, "unit": "1"}


ARMS = ("full", "reinforce", "reinforce2", "rb1", "reinforce_plus", "rb1_plus")
GOAL = 0.70
EVALUATIONS = (2, 4, 8)
OUTCOMES = 20
ALPHAS = (0.05, 5.0)


def toy(
    context: Context,
    *,
    seeds: Sequence[int],
    runs: int,
    steps: int,
    learning_rate: float,
    start: float,
    cases: int,
    path_points: int,
) -> Outputs:
    """Descend with every arm, `runs` times for each seed, and find the best k of random distributions.

    Returns `toy` (final loss, mean loss over the steps, whether the goal was reached), `paths` (losses of seed 0) and
    `optimal` (exact variance of the logits' gradient for every k).
    """
    rows: list[Row] = []
    paths: list[Row] = []
    optimal: list[Row] = []
    points = np.unique(np.linspace(0, steps, path_points).astype(int))
    for seed in seeds:
        for arm in ARMS:
            losses = descend(arm, seed, runs, steps, learning_rate, start)
            for run in range(runs):
                found = {"final_loss": losses[-1, run], "mean_loss": losses[:, run].mean()}
                found["reached"] = float(losses[-1, run] < GOAL)
                rows += [
                    {"seed": seed, "arm": arm, "run": run, "metric": m, "value": float(v), "unit": "1"}
                    for m, v in found.items()
                ]
            if seed == 0:
                paths += [
                    {"seed": seed, "arm": arm, "run": run, "step": int(i), "loss": float(losses[i, run])}
                    for run in range(runs)
                    for i in points
                ]
        optimal += best_numbers(seed, cases)
    return {"toy": rows, "paths": paths, "optimal": optimal}


def descend(arm: str, seed: int, runs: int, steps: int, learning_rate: float, start: float) -> Array:
    """Exact loss before each step and after the last, float64 (steps + 1, runs), by plain gradient descent on eta."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "toy"))
    objective = TableObjective(torch.tensor(F).expand(runs, -1))
    estimator = builder(arm, 8, seed)(1.0)
    eta = torch.full((runs,), start, dtype=torch.float64, requires_grad=True)
    etas = [eta.detach().numpy().copy()]
    for _ in range(steps):
        (slope,) = torch.autograd.grad(estimator.surrogate(log_probabilities(eta), objective, generator).sum(), eta)
        eta = (eta.detach() - learning_rate * slope).requires_grad_()
        etas.append(eta.detach().numpy().copy())
    return loss(np.stack(etas))


def best_numbers(seed: int, cases: int) -> Iterator[Row]:
    """Random q (Dirichlet, 20 categories) and f (normal): total variance of the REINFORCE logit gradient for each k."""
    generator = np.random.default_rng(derive_seed(seed, "optimal k"))
    low, high = np.log(ALPHAS)
    for case in range(cases):
        alpha = float(np.exp(generator.uniform(low, high)))
        q = generator.dirichlet(np.full(OUTCOMES, alpha))
        q = np.maximum(q, 1e-300) / np.maximum(q, 1e-300).sum()
        g = generator.normal(size=OUTCOMES)[:, None] * (np.eye(OUTCOMES) - q)
        for n in EVALUATIONS:
            k_hat = optimal_k(q, n)
            for k in range(n):
                variance = rao_blackwell_moments(q, g, top_k(q, k), n - k).variance
                yield {"seed": seed, "case": case, "evaluations": n, "alpha": alpha, "k": k, "k_hat": k_hat} | {
                    "variance": variance
                }

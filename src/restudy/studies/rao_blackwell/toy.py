"""Stage `toy`: descent from a wrong corner on three Bernoulli variables, and how many categories to sum (R4, R5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from restudy.bench.context import Context, Outputs
from restudy.methods.estimators import TableObjective, optimal_k, rao_blackwell_moments, top_k
from restudy.methods.models import derive_seed

from .exact import Array, F, Row, log_probabilities, loss
from .experiment import builder

ARMS = ("full", "reinforce", "reinforce2", "rb1", "reinforce_plus", "rb1_plus")
GOAL = 0.70
EVALUATIONS = (2, 4, 8)
CATEGORIES = 20
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
        q = generator.dirichlet(np.full(CATEGORIES, alpha))
        q = np.maximum(q, 1e-300) / np.maximum(q, 1e-300).sum()
        g = generator.normal(size=CATEGORIES)[:, None] * (np.eye(CATEGORIES) - q)
        for n in EVALUATIONS:
            k_hat = optimal_k(q, n)
            for k in range(n):
                variance = rao_blackwell_moments(q, g, top_k(q, k), n - k).variance
                yield {"seed": seed, "case": case, "evaluations": n, "alpha": alpha, "k": k, "k_hat": k_hat} | {
                    "variance": variance
                }

"""What a unit of variance costs: Rao-Blackwellization against its baselines at equal numbers of evaluations of f."""

from __future__ import annotations

import time

import numpy as np
import torch

from restudy.methods.estimators import RaoBlackwell, ScoreFunction, TableObjective, rao_blackwell_moments, top_k

CATEGORIES, BATCH, REPEATS = 441, 64, 60
Estimator = RaoBlackwell | ScoreFunction


def exact_gain(concentration: float, evaluations: int, k: int, cases: int = 200) -> float:
    """Median over random q (Dirichlet, 20 categories) and f of the exact variance of N plain draws over that with k.

    Args:
        concentration: of the Dirichlet; small is concentrated.
        evaluations: N for both; k are summed and N - k drawn.
        k: how many are summed.
        cases: random problems.
    """
    generator = np.random.default_rng(0)
    found = []
    for _ in range(cases):
        q = generator.dirichlet(np.full(20, concentration))
        g = generator.normal(size=20)[:, None] * (np.eye(20) - q)
        plain = rao_blackwell_moments(q, g, [], evaluations).variance
        summed = rao_blackwell_moments(q, g, top_k(q, k), evaluations - k).variance
        found.append(plain / max(summed, 1e-300))
    return float(np.median(found))


def cost_and_variance(estimator: Estimator, log_q: torch.Tensor, objective: TableObjective) -> tuple[float, float]:
    """CPU milliseconds of a step (estimate and gradient, f a table look-up) and the variance of the gradient."""
    generator = torch.Generator().manual_seed(0)
    leaf = log_q.clone().requires_grad_()
    gradients = []
    start = time.process_time()
    for _ in range(REPEATS):
        loss = estimator.surrogate(torch.log_softmax(leaf, 1), objective, generator).sum()
        gradients.append(torch.autograd.grad(loss, leaf)[0])
    milliseconds = 1000 * (time.process_time() - start) / REPEATS
    return milliseconds, float(torch.stack(gradients).var(0).sum(1).mean())


def rows() -> list[dict[str, object]]:
    """Rows for `make bench`."""
    torch.manual_seed(0)
    log_q = torch.log_softmax(4 * torch.randn(BATCH, CATEGORIES), 1)
    objective = TableObjective(torch.randn(BATCH, CATEGORIES))
    pairs: list[tuple[str, Estimator, Estimator]] = [
        ("REINFORCE, 2 evaluations", ScoreFunction(draws=2), RaoBlackwell(ScoreFunction(), 1)),
        (
            "REINFORCE with a second draw, 7 evaluations",
            ScoreFunction("second_sample", draws=6),
            RaoBlackwell(ScoreFunction("second_sample"), 5),
        ),
    ]
    found: list[dict[str, object]] = []
    for name, plain, summed in pairs:
        assert plain.evaluations == summed.evaluations
        (cost, variance), (mine, lower) = (cost_and_variance(e, log_q, objective) for e in (plain, summed))
        note = f"{CATEGORIES} places, {mine:.2f} against {cost:.2f} ms CPU, variance {lower:.3g} against {variance:.3g}"
        what = f"{name}: cost times variance over that of its Rao-Blackwellization"
        found.append({"what": what, "ratio": cost * variance / (mine * lower), "aim": 1.0, "note": note})
    for label, concentration in (("concentrated", 0.1), ("flat", 5.0)):
        what = f"exact variance of 2 draws over RB k=1, {label} q"
        note = "median of 200 random problems, 20 categories, 2 evaluations each"
        found.append({"what": what, "ratio": exact_gain(concentration, 2, 1), "aim": None, "note": note})
    return found

"""Deviations from the paper's identities, by enumeration: three forms, the weight, the conditional expectation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from restudy.methods.estimators import Marginal, ScoreFunction, TableObjective, rao_blackwell_moments, top_k
from restudy.methods.models import derive_seed
from restudy.studies.rao_blackwell import bernoulli

Row = dict[str, Any]
CATEGORIES, PARAMETERS = 8, 5


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
        score = sum(q[z].detach() * _gradient(terms[z], eta) for z in range(CATEGORIES))
        size = float(enumerated.abs().max())
        for metric, other in (("product rule", product), ("score function", score)):
            value = float((torch.as_tensor(other) - enumerated).abs().max()) / size
            yield _row("R7", f"problem {problem}", metric, value)
    for eta_value in bernoulli.ETAS:
        g = bernoulli.F[:, None] * bernoulli.score(eta_value)
        mean = float(rao_blackwell_moments(bernoulli.probabilities(eta_value), g, []).mean[0])
        exact = bernoulli.gradient(eta_value)
        yield _row("R7", f"toy, eta={eta_value:g}", "score function", abs(mean - exact) / abs(exact))


def _gradient(value: Tensor, eta: Tensor) -> Tensor:
    (found,) = torch.autograd.grad(value, eta, retain_graph=True)
    return found


def weights(eta: float, draws: int) -> Iterator[Row]:
    """R8: bias with the left-over mass as weight, and what q(v) in its place falls short of 4 standard errors."""
    q, g, exact = bernoulli.probabilities(eta), bernoulli.F[:, None] * bernoulli.score(eta), bernoulli.gradient(eta)
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
    q, g = bernoulli.probabilities(eta), (bernoulli.F[:, None] * bernoulli.score(eta))[:, 0]
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
    q = bernoulli.probabilities(eta)
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

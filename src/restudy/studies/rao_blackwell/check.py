"""Stage `check`: what can be checked by enumeration, and the library's draws against it (claims R1 to R3, R7 to R9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.estimators import RaoBlackwell, ScoreFunction, TableObjective, rao_blackwell_moments, top_k
from restudy.methods.estimators.oracle import fourth_moment, second_sample_moments
from restudy.methods.models import derive_seed
from restudy.studies.rao_blackwell import bernoulli
from restudy.studies.rao_blackwell.identities import one_gradient, rebuilt, sampled_rebuilding, weights
from restudy.studies.rao_blackwell.tidy import DRAWS, IDENTITIES, VARIANCES

ABSOLUTE = 1e-12
"""Where a standard error is 0 (one category left), the deviation itself must be below this."""
SHOWN_DRAWS = 400
OTHER_SETS = ((1, 6), (0, 3, 5))


def check_estimators(context: Context, *, draws: int, problems: int) -> Outputs:
    """Enumerate and draw on the toy.

    Args:
        draws: values of the estimator drawn for each case.
        problems: random problems for the three forms of the gradient.

    Returns `identities` (claim, case, metric, value, unit), `variances` (exact and empirical, by eta, estimator and
    k) and `draws` (some values, for the figure).
    """
    rows: list[dict[str, Any]] = []
    variances: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    for eta in bernoulli.ETAS:
        for k in range(8):
            chosen = top_k(bernoulli.probabilities(eta), k)
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
    return {
        "identities": pa.Table.from_pylist(rows, schema=IDENTITIES),
        "variances": pa.Table.from_pylist(variances, schema=VARIANCES),
        "draws": pa.Table.from_pylist(shown, schema=DRAWS),
    }


def log_probabilities(eta: Tensor) -> Tensor:
    """log q of the 8 categories for each eta (B,): (B, 8)."""
    ones = torch.tensor(bernoulli.BITS.sum(1), dtype=eta.dtype)
    lit, dark = torch.nn.functional.logsigmoid(eta), torch.nn.functional.logsigmoid(-eta)
    return lit[:, None] * ones + dark[:, None] * (3 - ones)


def library_draws(eta: float, chosen: list[int], draws: int, seed: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The library's estimate of d loss / d eta around REINFORCE, drawn many times as one batch, float64 (draws,)."""
    generator = torch.Generator().manual_seed(seed)
    leaf = torch.full((draws,), eta, dtype=torch.float64, requires_grad=True)
    objective = TableObjective(torch.tensor(bernoulli.F).expand(draws, -1))
    summed = torch.tensor(chosen, dtype=torch.int64)[:, None].expand(-1, draws)
    estimator = RaoBlackwell(ScoreFunction(), len(chosen))
    loss = estimator.around(log_probabilities(leaf), summed, objective, generator)
    (found,) = torch.autograd.grad(loss.sum(), leaf)
    return found.numpy()


def against_enumeration(
    eta: float, chosen: list[int], values: np.ndarray[Any, np.dtype[np.float64]], case: str
) -> Iterator[dict[str, Any]]:
    """R1: deviation of the mean in units of 4 standard errors; R2: of the variance in units of 5, and the bound."""
    q, g = bernoulli.probabilities(eta), bernoulli.F[:, None] * bernoulli.score(eta)
    exact, plain = rao_blackwell_moments(q, g, chosen), rao_blackwell_moments(q, g, [])
    n = len(values)
    allowed = max(4 * float(np.sqrt(exact.variance / n)), ABSOLUTE)
    yield _row("R1", case, "mean", abs(float(values.mean()) - bernoulli.gradient(eta)) / allowed)
    yield _row("R2", case, "bound", max(0.0, exact.variance - plain.variance * exact.outside))
    error = np.sqrt(max(fourth_moment(q, g, chosen) - exact.variance**2 * (n - 3) / (n - 1), 0.0) / n)
    yield _row("R2", case, "empirical", abs(float(values.var(ddof=1)) - exact.variance) / max(5 * error, ABSOLUTE))


def exact_variances(eta: float, k: int, empirical: float) -> Iterator[dict[str, Any]]:
    """Rows of `variances`: REINFORCE by enumeration and by draws, REINFORCE with a second draw (fresh and shared)."""
    q, score = bernoulli.probabilities(eta), bernoulli.score(eta)
    chosen = top_k(q, k)
    plain = rao_blackwell_moments(q, bernoulli.F[:, None] * score, chosen)
    found = {("reinforce", "exact"): plain.variance, ("reinforce", "empirical"): empirical}
    for name, fresh in (("reinforce_plus_fresh", True), ("reinforce_plus_shared", False)):
        found[name, "exact"] = second_sample_moments(q, bernoulli.F, score, chosen, fresh=fresh).variance
    for (estimator, metric), value in found.items():
        yield {"eta": eta, "estimator": estimator, "k": k, "outside": plain.outside} | {
            "metric": metric, "value": value, "unit": "1"
        }  # fmt: skip


def _row(claim: str, case: str, metric: str, value: float) -> dict[str, Any]:
    return {"claim": claim, "case": case, "metric": metric, "value": value, "unit": "1"}

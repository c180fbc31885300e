"""Stage `check`: what holds exactly: L_1 is the VAE, the gradient passes through the proposal, the toy's bounds."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from restudy.bench.context import Context, Outputs
from restudy.studies.importance_weighting.identities import gradient_of_proposal, one_sample, toy_bounds
from restudy.studies.importance_weighting.tidy import IDENTITIES, TOY_BOUNDS


def check_identities(context: Context, *, draws: int, bound_repeats: int) -> Outputs:
    """Check claims W8 and W9 on small networks of one and two layers, and the toy half of W1.

    Args:
        draws: one-sample ELBOs that are averaged, with the analytic divergence beside them.
        bound_repeats: independent values of every L_k on the toy.

    Returns `identities` (claim, case, metric, value, unit) and `toy_bounds` (k, metric, value, unit).
    """
    found, bounds = toy_bounds(bound_repeats)
    rows: list[dict[str, Any]] = [*one_sample(draws), *gradient_of_proposal(), *found]
    return {
        "identities": pa.Table.from_pylist(rows, schema=IDENTITIES),
        "toy_bounds": pa.Table.from_pylist(bounds, schema=TOY_BOUNDS),
    }

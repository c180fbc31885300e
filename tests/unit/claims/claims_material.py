"""Hand-made replicates and small studies for the tests of the claims engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from restudy.claims import Claim, StudyVerdicts, judge, judge_study, parse_claim

GOOD = [0.9, 1.1, 1.0, 1.2, 0.8]
"""Mean 1, s.d. .158: reproduced for every S up to 1."""


def table(values: Any, **columns: Any) -> pa.Table:
    values = np.asarray(values, dtype=np.float64)
    columns.setdefault("replicate", np.arange(len(values)))
    return pa.table({**columns, "value": values})


def claim(kind: str = "direction", **fields: Any) -> Claim:
    base: dict[str, Any] = {"id": "X1", "kind": kind, "statistic": "effect"}
    if kind in ("direction", "ordering", "trend") and "sesoi" not in fields:
        base["sesoi"] = 0.5
    return parse_claim({**base, **fields})


def verdict(values: Any, kind: str = "direction", **fields: Any) -> Any:
    return judge(claim(kind, **fields), table(values))


def arms(first: Any, second: Any, names: tuple[str, str] = ("new", "old")) -> pa.Table:
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    return pa.table(
        {
            "replicate": [*range(len(first)), *range(len(second))],
            "group": [names[0]] * len(first) + [names[1]] * len(second),
            "value": [*first, *second],
        }
    )


def levels(matrix: Any, names: Any, column: str = "group") -> pa.Table:
    """Replicates by levels -> a long table."""
    matrix = np.asarray(matrix, dtype=float)
    n, k = matrix.shape
    return pa.table(
        {
            "replicate": np.repeat(np.arange(n), k),
            column: list(names) * n,
            "value": matrix.reshape(-1),
        }
    )


def study(columns: dict[str, Any], claims: list[Claim], **options: Any) -> StudyVerdicts:
    """Judge claims whose statistics simply return the given values (a list, or a table)."""
    statistics = {
        name: (lambda tables, v=value: v if isinstance(v, pa.Table) else table(v)) for name, value in columns.items()
    }
    return judge_study(claims, {}, statistics, **{"preset": "laptop", **options})

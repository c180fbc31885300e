"""Gates: preconditions on the reference arm, judged once on the mean over all planned replicates."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from ..errors import ClaimError
from .assess import complete
from .schema import Gate

_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}


def mean_of(table: pa.Table, gate: Gate, where: str, planned: int | None) -> float:
    """Mean of the gate's statistic over its replicates; NaN when one failed or a planned seed is missing."""
    if not isinstance(table, pa.Table) or "value" not in table.column_names or not table.num_rows:
        raise ClaimError(
            f"gate: statistic {gate.statistic} returned no rows with a column `value`",
            where=where,
            remedy="return replicate and value",
        )
    values = complete(table, planned).column("value").to_pylist()
    try:
        mean = float(np.mean([math.nan if value is None else float(value) for value in values]))
    except (TypeError, ValueError):
        raise ClaimError(f"gate: {gate.statistic} holds something that is not a number", where=where) from None
    if math.isinf(mean):
        raise ClaimError(f"gate: {gate.statistic} holds an infinite value", where=where, remedy="return NaN instead")
    return mean


def passes(mean: float, gate: Gate) -> bool:
    """Whether the mean satisfies the gate; NaN never does."""
    return _COMPARE[gate.op](mean, gate.value)


def judge_gates(gates: Sequence[Gate], means: Sequence[float]) -> tuple[bool, str]:
    """Whether all gates pass, and the text of the verdict's column ``gate``."""
    results = [passes(mean, gate) for gate, mean in zip(gates, means, strict=True)]
    text = "; ".join(
        f"{gate.statistic} {mean:.4g} {gate.op} {gate.value:g}: {'passed' if ok else 'failed'}"
        for gate, mean, ok in zip(gates, means, results, strict=True)
    )
    return all(results), text

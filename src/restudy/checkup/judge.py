"""What passed: a rule for each check, the same for every method. numpy, scipy and pyarrow only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

PASSED, FAILED, UNDECIDED, REFUSED = "passed", "failed", "undecided", "refused"
UNDEFINED, TOO_FEW = "no map", "too few images"
MAX_SIMILARITY = 0.5
"""Largest mean rank correlation with the trained model's maps over a cascade of random layers that still passes."""
MAX_UNDEFINED = 0.10
"""Largest share of images whose maps have no correlation."""
MIN_IMAGES = 5
ALPHA = 0.05

VERDICTS = pa.schema(
    [("method", pa.string()), ("check", pa.string()), ("verdict", pa.string()), ("value", pa.float64())]
    + [("bound", pa.float64()), ("unit", pa.string()), ("reason", pa.string())]
)
"""One row per method and check: what was measured, what it was compared with, and what came of it."""


def randomization_verdicts(table: pa.Table, methods: Sequence[str]) -> list[dict[str, Any]]:
    """Judge each order of the randomisation: similar maps although the weights are random do not explain the model."""
    frame = table.to_pylist()
    found = []
    for order in dict.fromkeys(row["order"] for row in frame):
        for method in methods:
            rows = [r for r in frame if (r["order"], r["method"], r["metric"]) == (order, method, "spearman")]
            values = np.array([row["value"] for row in rows], dtype=float)
            undefined = float(np.isnan(values).mean()) if len(values) else 1.0
            mean = float(np.nanmean(values)) if undefined < 1 else math.nan
            if undefined > MAX_UNDEFINED:
                verdict, reason = UNDEFINED, f"{undefined:.0%} of the maps are constant"
            else:
                verdict = PASSED if mean <= MAX_SIMILARITY else FAILED
                reason = "" if verdict == PASSED else "the maps stay although the weights are random"
            found.append(_row(method, f"randomisation {order}", verdict, mean, MAX_SIMILARITY, "1", reason))
    return found


def perturbation_verdicts(table: pa.Table, methods: Sequence[str]) -> list[dict[str, Any]]:
    """Judge each fill: the regions ranked highest must matter more than random ones, one-sided t bounds over images.

    `passed`: the lower bound of the mean is above 0; `failed`: the upper one is not; `undecided`: 0 lies between them.
    """
    values: dict[tuple[str, str], dict[int, float]] = {}
    for row in table.to_pylist():
        values.setdefault((row["fill"], row["method"]), {})[row["image"]] = row["value"]
    found = []
    for fill in dict.fromkeys(fill for fill, _ in values):
        chance = values[fill, "random"]
        for method in methods:
            each = np.array([value - chance[image] for image, value in values[fill, method].items()])
            mean, lower, upper = float(each.mean()), lower_bound(each), -lower_bound(-each)
            if len(each) < MIN_IMAGES:
                verdict, reason = TOO_FEW, f"{len(each)} images, {MIN_IMAGES} are the least"
            else:
                verdict = PASSED if lower > 0 else FAILED if upper <= 0 else UNDECIDED
                reason = f"bounds {lower:.3g} and {upper:.3g}"
            found.append(_row(method, f"perturbation {fill}", verdict, mean, 0.0, "logits", reason))
    return found


def lower_bound(values: np.ndarray) -> float:
    """Return the one-sided 95% lower t bound of the mean; minus infinity for fewer than two values."""
    if len(values) < 2:
        return -math.inf
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(values.mean()) - float(stats.t.ppf(1 - ALPHA, len(values) - 1)) * error


def refusals(reasons: Mapping[str, str]) -> list[dict[str, Any]]:
    """Rows of the methods that a model does not have, with the reason."""
    return [_row(method, "all", REFUSED, math.nan, math.nan, "", reason) for method, reason in reasons.items()]


def summary(verdicts: pa.Table) -> list[str]:
    """Return lines of text: every method with what it passed and failed."""
    rows = verdicts.to_pylist()
    checks = [check for check in dict.fromkeys(row["check"] for row in rows) if check != "all"]
    methods = list(dict.fromkeys(row["method"] for row in rows))
    wide = max((len(method) for method in methods), default=6)
    names = [check.replace("randomisation ", "").replace("perturbation ", "AOPC ") for check in checks]
    lines = ["  ".join([f"{'method':{wide}}", *(f"{name:>14}" for name in names)])]
    at = {(row["method"], row["check"]): row for row in rows}
    for method in methods:
        if (method, "all") in at:
            lines.append(f"{method:{wide}}  refused: {at[method, 'all']['reason']}")
            continue
        cells = [said(at[method, check]) if (method, check) in at else ""
                 for check in checks]  # fmt: skip
        lines.append("  ".join([f"{method:{wide}}", *(f"{cell:>14}" for cell in cells)]))
    return lines


def said(row: dict[str, Any]) -> str:
    """Verdict and value, the verdict alone where nothing could be measured."""
    return str(row["verdict"]) + ("" if math.isnan(row["value"]) else f" {row['value']:.2f}")


def _row(method: str, check: str, verdict: str, value: float, bound: float, unit: str, reason: str) -> dict[str, Any]:
    return {"method": method, "check": check, "verdict": verdict, "value": value, "bound": bound, "unit": unit,
            "reason": reason}  # fmt: skip

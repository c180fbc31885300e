"""The small interval plot beside each claim: coordinates only, a template draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from restudy.report import words
from restudy.report.model import Claim

WIDTH = 220.0
MIDDLE = 15.0
_EDGE = 10.0
_LABEL = 34.0


@dataclass(frozen=True)
class Strip:
    """Horizontal positions in units of the drawing, and the same in words.

    `marks`: position, style (`zero` or `asked`) and label of each line to compare with; `band`: the allowed region.
    """

    point: float
    low: float
    high: float
    marks: tuple[tuple[float, str, str], ...]
    band: tuple[float, float] | None
    says: str


def strip(claim: Claim) -> Strip | None:
    """The interval plot of a claim, None where there is no estimate or nothing to compare it with."""
    estimate = claim.estimate
    if estimate is None or not math.isfinite(estimate) or claim.kind in ("exact", "qualitative", "parts"):
        return None
    lines = _lines(claim)
    low = estimate if claim.ci_low is None else claim.ci_low
    high = estimate if claim.ci_high is None else claim.ci_high
    finite = [v for v in (estimate, low, high, *(value for value, _ in lines)) if math.isfinite(v)]
    left, right = min(finite), max(finite)
    span = (right - left) or abs(right) or 1.0

    def at(value: float) -> float:
        share = 0.0 if value < left else 1.0 if value > right else (value - left) / span
        return round(_EDGE + share * (WIDTH - 2 * _EDGE), 1)

    inside = claim.kind in ("value", "no_difference") and claim.margin is not None
    band = (at(-claim.margin), at(claim.margin)) if inside and claim.margin is not None else None
    marks = _labelled([(at(value), kind, words.given(value)) for value, kind in lines])
    return Strip(at(estimate), at(low), at(high), marks, band, f"{claim.verdict}. {words.measured(claim)}")


def _labelled(marks: list[tuple[float, str, str]]) -> tuple[tuple[float, str, str], ...]:
    """The lines, without the labels that would run into one another; what is asked for keeps its own."""
    taken: list[float] = []
    found = []
    for x, kind, label in sorted(marks, key=lambda mark: mark[1] == "zero"):
        free = all(abs(x - other) > _LABEL for other in taken)
        taken += [x] if free else []
        found.append((x, kind, label if free else ""))
    return tuple(found)


def _lines(claim: Claim) -> list[tuple[float, str]]:
    """What the interval is compared with: value and style of the line."""
    if claim.kind == "threshold" and claim.bound is not None:
        sign = -1.0 if claim.side == "below" else 1.0
        far = [(claim.bound + sign * claim.sesoi, "asked")] if claim.sesoi else []
        return [(claim.bound, "zero"), *far]
    lines = [(0.0, "zero")]
    if claim.kind == "non_inferiority" and claim.margin is not None:
        lines.append((-claim.margin, "asked"))
    elif claim.kind in ("value", "no_difference") and claim.margin is not None:
        lines += [(-claim.margin, "asked"), (claim.margin, "asked")]
    elif claim.sesoi is not None:
        lines.append((claim.sesoi, "asked"))
    return lines

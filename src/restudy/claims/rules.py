"""The verdict rules, in the order in which they are asked; the first that answers decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .assessment import Assessment
from .evidence import Evidence
from .words import (
    CONTROL,
    ERROR,
    GATE,
    INCONCLUSIVE,
    MIN_REPLICATES,
    NOT_REPRODUCED,
    NOT_TESTABLE,
    PARTIALLY,
    REPRODUCED,
    WIDTH,
)

Answer = tuple[str, str] | None
Rule = Callable[[Assessment, bool], Answer]


def not_testable(a: Assessment, significant: bool) -> Answer:
    """Rule 1: at this preset, or by nature."""
    return (NOT_TESTABLE, a.untestable) if a.untestable else None


def error(a: Assessment, significant: bool) -> Answer:
    """Rule 1: a stage or a statistic failed, or a stochastic claim shows no spread at all."""
    return (ERROR, a.error) if a.error else None


def gate(a: Assessment, significant: bool) -> Answer:
    """Rule 2: a precondition on the reference arm failed."""
    return (INCONCLUSIVE, GATE) if a.gate_failed else None


def failed(a: Assessment, significant: bool) -> Answer:
    """Rule 2: a replicate failed; the bounds of the others are printed, nothing more is concluded."""
    return (INCONCLUSIVE, f"{a.n_failed} of {a.n} failed") if a.n_failed else None


def few(a: Assessment, significant: bool) -> Answer:
    """Rule 2: fewer than five replicates never decide."""
    return (INCONCLUSIVE, f"n < {MIN_REPLICATES}") if a.few else None


def control(a: Assessment, significant: bool) -> Answer:
    """The claim also holds where it must not: what is measured is not what is claimed."""
    return (INCONCLUSIVE, CONTROL) if a.control in (REPRODUCED, PARTIALLY) else None


def not_reproduced(a: Assessment, significant: bool) -> Answer:
    """Rule 3: the smallest effect of interest is excluded."""
    e = a.evidence
    if not e.absent:
        return None
    if a.parts:
        return NOT_REPRODUCED, e.lacking
    return NOT_REPRODUCED, "contradicted" if e.opposed else "negligible" if e.present else ""


def control_open(a: Assessment) -> bool:
    """True when a control is declared and has not come out ``not reproduced``: the verdict is capped."""
    return a.control not in ("", NOT_REPRODUCED)


def reproduced(a: Assessment, significant: bool) -> Answer:
    """Rule 4: above 0, as large as S, and significant within the family; capped by an undecided control."""
    if not (a.evidence.present and a.evidence.large and significant):
        return None
    return (PARTIALLY, "control undecided") if control_open(a) else (REPRODUCED, "")


def partially(a: Assessment, significant: bool) -> Answer:
    """Rule 5: above 0, and what is missing."""
    e = a.evidence
    if not e.present:
        return None
    missing = [] if significant or (a.parts and not e.large) else ["family-wise error"]
    if not e.large:
        missing.append(e.lacking or "magnitude")
    if control_open(a):
        missing.append("control undecided")
    return PARTIALLY, ", ".join(missing)


def undecided(a: Assessment, significant: bool) -> Answer:
    """Rule 6: the interval is too wide to tell."""
    return INCONCLUSIVE, WIDTH


RULES: Final[list[Rule]] = [
    not_testable,
    error,
    gate,
    failed,
    few,
    control,
    not_reproduced,
    reproduced,
    partially,
    undecided,
]


def decide(a: Assessment, significant: bool) -> tuple[str, str]:
    """Verdict and reason of an assessment; ``significant``: its p value, adjusted for the family, is < alpha."""
    for rule in RULES:
        answer = rule(a, significant)
        if answer is not None:
            return answer
    raise AssertionError("the last rule always answers")


def verdict_alone(e: Evidence) -> str:
    """The verdict of rules 3 to 6 for one statement alone, without family, gate or control."""
    if e.absent:
        return NOT_REPRODUCED
    if e.present:
        return REPRODUCED if e.large else PARTIALLY
    return INCONCLUSIVE

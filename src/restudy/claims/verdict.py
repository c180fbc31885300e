"""A verdict: one row of ``verdicts.parquet``."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came out for one claim, or one part of it.

    ``estimate``, ``ci_low``, ``ci_high``, ``sesoi``, ``margin`` and ``bound`` are in the metric's unit
    (``ci_*`` are one-sided bounds at confidence 1 - ``alpha`` each); None where a number does not exist.
    ``verdict`` is a word of the scheme, ``reason`` what would stand in parentheses behind it.
    """

    study: str
    claim: str
    part: str
    kind: str
    primary: bool
    verdict: str
    flags: tuple[str, ...]
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    alpha: float
    look: int
    sesoi: float | None
    margin: float | None
    p_value: float | None
    p_holm: float | None
    prob_superiority: float | None
    n: int
    n_failed: int
    seeds_needed: int | None
    gate: str
    control_verdict: str
    paper_value: float | None
    unit: str
    reason: str
    lock: str
    fingerprint: str
    bound: float | None
    side: str
    scale: str
    p_sign_flip: float | None
    leave_one_out: str

    @property
    def text(self) -> str:
        """The verdict with its reason: ``inconclusive (gate)``."""
        return f"{self.verdict} ({self.reason})" if self.reason else self.verdict

    def row(self) -> dict[str, Any]:
        """The row as plain values (flags as a list), keys in the order of ``VERDICT_SCHEMA`` plus ``part``."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "flags": list(self.flags)}

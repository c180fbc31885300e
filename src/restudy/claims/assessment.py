"""Everything known about a claim before the rules are applied; p values of other claims are not in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .evidence import Evidence

NOTHING = Evidence(absent=False, opposed=False, present=False, large=False)


@dataclass(frozen=True, slots=True)
class Assessment:
    """Numbers (in the metric's unit), evidence and circumstances of one claim or one part of it.

    ``error`` and ``untestable`` hold a reason or "". ``few`` is True below five replicates, ``control`` the
    verdict on the control ("" none declared, "not judged" declared but not given), ``p_against`` the p value
    for the opposite of the claim, ``unadjusted`` the verdict of this claim alone under rules 3 to 6.
    """

    statistical: bool
    evidence: Evidence = NOTHING
    error: str = ""
    untestable: str = ""
    estimate: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    p: float | None = None
    p_against: float | None = None
    n: int = 0
    n_failed: int = 0
    few: bool = False
    gate: str = ""
    gate_failed: bool = False
    control: str = ""
    prob_superiority: float | None = None
    p_sign_flip: float | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    fragile: bool = False
    seeds_needed: int | None = None
    bound: float | None = None
    parts: tuple[tuple[str, Assessment], ...] = ()

    @property
    def stopped(self) -> bool:
        """True when a rule before the comparison decides, so that the claim enters Holm with p = 1."""
        return bool(self.error or self.untestable or self.gate_failed or self.n_failed or self.few)

"""From an assessment to a verdict row: the rules, the flags, and the columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from . import parts, rules
from .assessment import Assessment
from .schema import Claim, Part, Statement
from .verdict import Verdict
from .words import ALPHA, CONTROL, INCONCLUSIVE, MIN_REPLICATES, NOT_TESTABLE, WIDTH


@dataclass(frozen=True, slots=True)
class Origin:
    """What every row of one judgement shares."""

    study: str = ""
    alpha: float = ALPHA
    look: int = 1
    lock: str = ""
    fingerprint: str = ""


def conclude(claim: Claim, a: Assessment, origin: Origin, *, p_holm: float | None = None,
             notes: Sequence[str] = ()) -> Verdict:  # fmt: skip
    """The verdict row of a claim; ``p_holm`` is its adjusted p value where it belongs to the family."""
    decisive = p_holm if p_holm is not None else a.p
    significant = not a.statistical or (decisive is not None and decisive < origin.alpha)
    verdict, reason = rules.decide(a, significant)
    return _row(claim, claim, a, origin, verdict, reason, p_holm, flags(claim, a, verdict, notes))


def conclude_parts(claim: Claim, a: Assessment, origin: Origin) -> list[Verdict]:
    """The rows of a claim's parts: each judged alone; ``p_holm`` is adjusted inside the claim."""
    statements: Mapping[str, Part] = {part.name: part for part in claim.parts}
    inner = parts.inner_p([part for _, part in a.parts])
    rows = []
    for (name, part), p_inner in zip(a.parts, inner, strict=True):
        verdict, reason = rules.decide(part, parts.significant(part, origin.alpha))
        marks = ("fragile",) if part.fragile and verdict != NOT_TESTABLE else ()
        rows.append(_row(claim, statements[name], part, origin, verdict, reason, p_inner, marks, name))
    return rows


def flags(claim: Claim, a: Assessment, verdict: str, notes: Sequence[str]) -> tuple[str, ...]:
    """Marks beside a verdict: fragile, exploratory, what was not judged, what was amended."""
    found = []
    if a.fragile and verdict != NOT_TESTABLE:
        found.append("fragile")
    if claim.expected_fragile:
        found.append("expected fragile")
    if claim.exploratory:
        found.append("exploratory")
    if a.control == "not judged":
        found.append("control not judged")
    if a.gate == "not judged":
        found.append("gate not judged")
    return (*found, *notes)


def _row(claim: Claim, s: Statement, a: Assessment, origin: Origin, verdict: str, reason: str,
         p_holm: float | None, marks: tuple[str, ...], part: str = "") -> Verdict:  # fmt: skip
    wants_more = verdict == INCONCLUSIVE and (reason in (WIDTH, CONTROL) or reason.startswith("n <"))
    needed = a.seeds_needed if wants_more and reason != CONTROL else None
    return Verdict(
        study=origin.study,
        claim=claim.id,
        part=part,
        kind=s.kind if not (isinstance(s, Claim) and s.parts) else "parts",
        primary=claim.primary,
        verdict=verdict,
        flags=marks,
        estimate=a.estimate,
        ci_low=a.ci_low,
        ci_high=a.ci_high,
        alpha=origin.alpha,
        look=origin.look,
        sesoi=s.sesoi,
        margin=s.margin,
        p_value=a.p,
        p_holm=p_holm,
        prob_superiority=a.prob_superiority,
        n=a.n,
        n_failed=a.n_failed,
        seeds_needed=None if needed is None else max(needed, MIN_REPLICATES),
        gate=a.gate,
        control_verdict=a.control,
        paper_value=s.paper.value if s.paper is not None else None,
        unit=claim.unit,
        reason=reason,
        lock=origin.lock,
        fingerprint=origin.fingerprint,
        bound=a.bound if a.bound is not None else (s.tolerance if s.kind == "exact" else s.bound),
        side=s.side or "",
        scale=s.scale,
        p_sign_flip=a.p_sign_flip,
        leave_one_out=", ".join(f"{count} {word}" for word, count in sorted(a.left_out.items())),
    )

"""A claim made of several statements: how its parts become one assessment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import holm, rules
from .assessment import NOTHING, Assessment
from .evidence import Evidence
from .words import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED


def inner_p(parts: Sequence[Assessment]) -> list[float | None]:
    """p values of the parts, Holm-adjusted among the statistical ones; None for the others."""
    at = [i for i, part in enumerate(parts) if part.statistical]
    adjusted = holm.adjust([holm.entry(parts[i]) for i in at])
    found: list[float | None] = [None] * len(parts)
    for i, p in zip(at, adjusted, strict=True):
        found[i] = p
    return found


def significant(a: Assessment, alpha: float) -> bool:
    """True when a part stands alone at level alpha; exact parts need no p value."""
    return not a.statistical or (a.p is not None and a.p < alpha)


def combine(named: Mapping[str, Assessment], alpha: float) -> Assessment:
    """One assessment for a claim of parts.

    All parts must hold for ``reproduced`` (the largest p value stands for the claim). ``partially``: at
    least half hold after Holm inside, and none is contradicted. ``not reproduced``: a part is contradicted
    (at alpha shared among the parts), or so many are not reproduced that half can no longer hold.
    """
    parts = list(named.values())
    statistical = [part for part in parts if part.statistical]
    base = Assessment(
        statistical=bool(statistical),
        n=max(part.n for part in parts),
        n_failed=max(part.n_failed for part in parts),
        few=any(part.few for part in parts),
        error="; ".join(f"{name}: {part.error}" for name, part in named.items() if part.error),
        untestable="; ".join(f"{name}: {part.untestable}" for name, part in named.items() if part.untestable),
        parts=tuple(named.items()),
        fragile=any(part.fragile for part in parts),
        evidence=NOTHING,
    )
    if base.error or base.untestable:
        return base
    alone = {name: rules.decide(part, significant(part, alpha))[0] for name, part in named.items()}
    wide = [part.seeds_needed for name, part in named.items() if alone[name] == INCONCLUSIVE and part.statistical]
    entries = [holm.entry(part) for part in statistical]
    return Assessment(
        **{name: getattr(base, name) for name in ("statistical", "n", "n_failed", "few", "parts", "fragile")},
        evidence=_weigh(named, alone, alpha),
        p=max(entries) if entries else None,
        seeds_needed=None if None in wide or not wide else max(n for n in wide if n is not None),
    )


def _weigh(named: Mapping[str, Assessment], alone: Mapping[str, str], alpha: float) -> Evidence:
    """The evidence of the whole from its parts' verdicts."""
    count = len(named)
    inner = dict(zip(named, inner_p(list(named.values())), strict=True))
    hold, refuted, contradicted, suspect = [], [], [], False
    for name, part in named.items():
        adjusted = inner[name]
        opposed = alone[name] == NOT_REPRODUCED and part.evidence.opposed
        suspect = suspect or opposed
        if opposed and (not part.statistical or (part.p_against is not None and part.p_against < alpha / count)):
            contradicted.append(name)
        if alone[name] == NOT_REPRODUCED:
            refuted.append(name)
        elif alone[name] == REPRODUCED and (adjusted is None or adjusted < alpha):
            hold.append(name)
    absent = bool(contradicted) or 2 * len(refuted) > count
    everything = all(word == REPRODUCED for word in alone.values())
    rest = [f"{name} {alone[name]}" for name in named if name not in hold]
    if absent:
        lacking = f"contradicted: {', '.join(contradicted)}" if contradicted else f"parts: {', '.join(refuted)}"
    else:
        lacking = "" if everything else f"parts: {', '.join(hold) or 'none'} reproduced; {', '.join(rest)}"
    present = everything or (2 * len(hold) >= count and not suspect)
    return Evidence(absent=absent, opposed=bool(contradicted), present=present, large=everything, lacking=lacking)

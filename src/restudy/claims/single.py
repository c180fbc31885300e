"""``judge``: one claim, its replicates, and perhaps its control, without the family of other claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ClaimError
from . import parts as composite
from .assess import Setting, assess
from .assessment import Assessment
from .conclude import Origin, conclude
from .schema import Claim, parse_claim
from .verdict import Verdict
from .words import ALPHA

Replicates: TypeAlias = "pa.Table | Mapping[str, pa.Table]"
"""One table; for a claim of parts a table with a column ``part``, or one table per part."""


def judge(
    claim: Mapping[str, Any] | Claim, replicates: Replicates, control: Replicates | None = None,
    *, alpha: float = ALPHA,
) -> Verdict:  # fmt: skip
    """Judge one claim alone, without Holm.

    ``claim``: the fields of ``claims.yaml`` (descriptive fields may be left out), or a validated Claim.
    ``replicates``: a table with columns ``replicate`` and ``value`` in the metric's unit (NaN: the replicate
    failed), ``group`` for orderings and for two arms, ``x`` for trends, ``cluster`` for items.
    ``control``: the same for the arm on which the claim must not hold. A declared control that is not given
    caps the verdict at ``partially``; gates are judged by :func:`judge_study` only (flag "gate not judged").
    ``alpha``: one-sided error of each bound.

    Raises :class:`ClaimError` (claim, field, remedy) for input that cannot be judged.
    """
    claim = parse_claim(claim)
    setting = Setting(alpha)
    open_controls = {part.name: "not judged" for part in claim.parts if part.control}
    a = assess_claim(claim, replicates, setting, open_controls)
    verdict = "not judged" if claim.control else ""
    if control is not None:
        verdict = control_verdict(claim, control, setting)
    gate = "not judged" if claim.gate else ""
    return conclude(claim, replace(a, control=verdict, gate=gate), Origin(alpha=alpha))


def assess_claim(
    claim: Claim, replicates: Replicates, setting: Setting, controls: Mapping[str, str] | None = None
) -> Assessment:
    """The assessment of a claim, or of a claim of parts, without its own control and gates.

    ``controls``: verdicts on the parts' controls by part name.
    """
    where = f"claim {claim.id}"
    if claim.kind == "qualitative" and not claim.parts:
        return Assessment(statistical=False, untestable="qualitative")
    if not claim.parts:
        return assess(_one(replicates, where), claim, where, setting)
    tables = split(claim, replicates)
    named = {}
    for part in claim.parts:
        a = assess(tables[part.name], part, f"{where}, part {part.name}", setting)
        named[part.name] = replace(a, control=(controls or {}).get(part.name, ""))
    return composite.combine(named, setting.alpha)


def _one(replicates: Replicates, where: str) -> pa.Table:
    if isinstance(replicates, Mapping):
        raise ClaimError("replicates: one table is needed", where=where, remedy="the claim has no parts")
    return replicates


def split(claim: Claim, replicates: Replicates) -> Mapping[str, pa.Table]:
    """The table of each part, from a mapping or from one table with a column ``part``."""
    where = f"claim {claim.id}"
    if not isinstance(replicates, Mapping):
        if not isinstance(replicates, pa.Table) or "part" not in replicates.column_names:
            raise ClaimError(
                "part: a claim of parts needs a column `part`, or one table per part",
                where=where,
                remedy=f"name the parts {', '.join(part.name for part in claim.parts)}",
            )
        column = replicates.column("part")
        replicates = {part.name: replicates.filter(pc.equal(column, part.name)) for part in claim.parts}
    missing = [part.name for part in claim.parts if part.name not in replicates]
    if missing:
        raise ClaimError(f"parts: no table for {', '.join(missing)}", where=where, remedy="give one table per part")
    return replicates


def control_verdict(claim: Claim, control: Replicates, setting: Setting) -> str:
    """The word that comes out when the claim is judged on its control, alone."""
    try:
        a = assess_claim(claim, control, setting)
    except ClaimError as error:
        raise ClaimError(f"control: {error.what}", where=error.where, remedy=error.remedy) from None
    return conclude(claim, a, Origin(alpha=setting.alpha)).verdict

"""``judge_study``: all claims of a study over its results, with the family, the paper verdict and the looks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ..errors import ClaimError
from . import extension as ext
from . import gates, holm, parts
from .assess import Setting, assess, refused
from .assessment import Assessment
from .conclude import Origin, conclude, conclude_parts
from .errors_bound import false_verdicts
from .paper import PaperVerdict, paper_verdict
from .schema import Claim, Part
from .single import assess_claim, control_verdict
from .statistics import Caller, Statistics, Tables
from .table import to_table
from .verdict import Verdict


@dataclass(frozen=True, slots=True)
class StudyVerdicts:
    """All verdicts of a study at one preset.

    ``false_reproduced`` and ``false_not_reproduced`` are upper bounds for the expected number of such errors
    among the verdicts shown. ``paper`` is None at preset smoke.
    """

    study: str
    preset: str
    judged_as: str
    verdicts: tuple[Verdict, ...]
    parts: tuple[Verdict, ...]
    paper: PaperVerdict | None
    false_reproduced: float
    false_not_reproduced: float

    def table(self) -> pa.Table:
        """Rows of ``verdicts.parquet``."""
        return to_table(self.verdicts)

    def parts_table(self) -> pa.Table:
        """Rows of ``verdict_parts.parquet``."""
        return to_table(self.parts, parts=True)

    def __getitem__(self, claim: str) -> Verdict:
        """The verdict on the claim of that id."""
        for verdict in self.verdicts:
            if verdict.claim == claim:
                return verdict
        raise KeyError(claim)


def judge_study(
    claims: Sequence[Claim], tables: Tables, statistics: Statistics, *, preset: str, study: str = "",
    judged_as: str | None = None, seeds: int | None = None, extension: int | None = None, look: int = 1,
    lock: str = "", fingerprint: str = "", notes: Mapping[str, Sequence[str]] | None = None,
) -> StudyVerdicts:  # fmt: skip
    """Judge every claim of a study.

    ``tables``: results tables by name. ``statistics``: the study's module, or functions by name.
    ``judged_as``: the preset whose rules apply (a derived preset's parent); ``preset`` itself by default.
    ``seeds``: planned seeds of the first look; a claim with unit seed whose statistic leaves one of them out
    has a failed replicate. ``extension``: total seeds after a declared extension (None: none declared).
    ``look`` = 2 judges again, on all seeds, what was inconclusive for width on seeds below ``seeds``.
    ``lock``, ``fingerprint``: stored in every row. ``notes``: claim id -> flags to add ("amended ...").

    A claim that cannot be judged gets the verdict ``error`` with its reason; the others go on.
    Raises ClaimError only for a wrong call (look 2 without extension or seeds).
    """
    rules_of = judged_as or preset
    alpha = ext.alpha_of(extension)
    origin = Origin(study=study, alpha=alpha, look=1, lock=lock, fingerprint=fingerprint)
    now = tables
    if look != 1:
        if look != 2 or extension is None or seeds is None:
            raise ClaimError("look: 2 needs `extension` and `seeds`", where=study or "study", remedy="see judge_study")
        now = ext.first_look(tables, seeds)
    found = {claim.id: _assess(claim, Caller(statistics, now), Setting(alpha, seeds), rules_of) for claim in claims}
    rows = _conclude(claims, found, origin, rules_of, notes or {})
    part_rows = {claim.id: conclude_parts(claim, found[claim.id], origin) for claim in claims if claim.parts}
    if look == 2:
        again = [claim for claim in claims if ext.open_for_width(rows[claim.id])]
        caller, setting = Caller(statistics, tables), Setting(alpha, extension)
        found |= {claim.id: _assess(claim, caller, setting, rules_of) for claim in again}
        second = replace(origin, look=2)
        later = _conclude(claims, found, second, rules_of, notes or {})
        rows |= {claim.id: later[claim.id] for claim in again}
        part_rows |= {claim.id: conclude_parts(claim, found[claim.id], second) for claim in again if claim.parts}
    return _gather(claims, rows, part_rows, found, study, preset, rules_of)


def in_family(claim: Claim, preset: str) -> bool:
    """Whether a claim belongs to the paper's family at a preset: fixed by the claims alone, never by results."""
    return claim.primary and claim.statistical and preset in claim.presets and preset != "smoke"


def _gather(claims: Sequence[Claim], rows: Mapping[str, Verdict], part_rows: Mapping[str, list[Verdict]],
            found: Mapping[str, Assessment], study: str, preset: str, rules_of: str) -> StudyVerdicts:  # fmt: skip
    primary = [rows[claim.id] for claim in claims if in_family(claim, rules_of)]
    bounds = false_verdicts([(rows[claim.id], found[claim.id]) for claim in claims])
    return StudyVerdicts(
        study=study,
        preset=preset,
        judged_as=rules_of,
        verdicts=tuple(rows[claim.id] for claim in claims),
        parts=tuple(row for claim in claims for row in part_rows.get(claim.id, [])),
        paper=None if rules_of == "smoke" else paper_verdict(primary),
        false_reproduced=bounds[0],
        false_not_reproduced=bounds[1],
    )


def _conclude(claims: Sequence[Claim], found: Mapping[str, Assessment], origin: Origin, preset: str,
              notes: Mapping[str, Sequence[str]]) -> dict[str, Verdict]:  # fmt: skip
    """Apply Holm within the family, then the rules."""
    family = [claim.id for claim in claims if in_family(claim, preset)]
    adjusted = dict(zip(family, holm.adjust([holm.entry(found[name]) for name in family]), strict=True))
    return {
        claim.id: conclude(
            claim, found[claim.id], origin, p_holm=adjusted.get(claim.id), notes=tuple(notes.get(claim.id, ()))
        )
        for claim in claims
    }


def untestable(claim: Claim, preset: str) -> str:
    """Why a claim is not judged at a preset, or ""."""
    if claim.kind == "qualitative" and not claim.parts:
        return "qualitative"
    if preset not in claim.presets:
        return f"preset {preset}: judged at {', '.join(claim.presets)}"
    return "preset smoke" if preset == "smoke" and claim.statistical else ""


def _assess(claim: Claim, call: Caller, setting: Setting, preset: str) -> Assessment:
    """The assessment of a claim with its gates and its control; errors become its content."""
    reason = untestable(claim, preset)
    if reason:
        return Assessment(statistical=claim.statistical, untestable=reason)
    setting = setting if claim.unit == "seed" else Setting(setting.alpha)
    where = f"claim {claim.id}"
    try:
        a = _assess_parts(claim, call, setting) if claim.parts else _assess_one(claim, call, setting)
        if claim.control is not None:
            a = replace(a, control=_control(claim, call, setting))
        if claim.gate:
            means = [gates.mean_of(call(gate.statistic, where), gate, where, setting.planned) for gate in claim.gate]
            passed, text = gates.judge_gates(claim.gate, means)
            a = replace(a, gate=text, gate_failed=not passed)
    except ClaimError as error:
        return Assessment(statistical=claim.statistical, error=error.what)
    return a


def _assess_one(claim: Claim, call: Caller, setting: Setting) -> Assessment:
    where = f"claim {claim.id}"
    return assess_claim(claim, call(claim.statistic, where), setting)


def _control(claim: Claim, call: Caller, setting: Setting) -> str:
    return control_verdict(claim, call(claim.control, f"claim {claim.id}, control"), setting)


def _assess_parts(claim: Claim, call: Caller, setting: Setting) -> Assessment:
    """Each part by its own statistic and control; a part that cannot be judged is an error of the claim."""
    named = {}
    for part in claim.parts:
        where = f"claim {claim.id}, part {part.name}"
        try:
            a = assess(call(part.statistic, where), part, where, setting)
            if part.control is not None:
                a = replace(a, control=_part_control(part, call, where, setting))
        except ClaimError as error:
            a = refused(error, part)
        named[part.name] = a
    return parts.combine(named, setting.alpha)


def _part_control(part: Part, call: Caller, where: str, setting: Setting) -> str:
    from . import rules

    a = assess(call(part.control, f"{where}, control"), part, f"{where}, control", setting)
    return rules.decide(a, parts.significant(a, setting.alpha))[0]

"""From results tables to verdicts: finds claims and statistics of a study, and hands both to the engine."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import pyarrow as pa

from restudy import layout
from restudy.catalog.plan import plan
from restudy.catalog.study import study
from restudy.claims import Claim, StudyVerdicts, judge_study, load_claims
from restudy.claims.amended import notes_since
from restudy.claims.lock import Entry, entry_in_force
from restudy.claims.lock_file import read_lock
from restudy.errors import ConfigError
from restudy.provenance.closure import closure


def judge(
    slug: str, preset: str, tables: Mapping[str, pa.Table], *, stamp: str = "", recorded: int | None = None
) -> StudyVerdicts:
    """Judge a study's claims on tables given, as at a preset.

    Args:
        slug: the study.
        preset: a preset, frozen or derived; a derived one is judged like its parent.
        tables: merged results tables by name.
        stamp: fingerprint to be recorded in the rows.
        recorded: how many lock entries there were when the results were computed; later ones are noted.
    """
    found = plan(slug, preset)
    claims, entries = claims_of(slug), lock_of(slug)
    return judge_study(
        claims,
        dict(tables),
        statistics_of(slug),
        preset=preset,
        study=slug,
        judged_as=found.judged_as,
        seeds=found.first_look,
        extension=found.study.file.extension,
        look=found.look,
        lock=lock_id(slug),
        fingerprint=stamp,
        notes=_notes(claims, entries, slug, recorded),
    )


def claims_of(slug: str) -> list[Claim]:
    """The claims of a study, validated.

    Raises:
        ConfigError: claims.yaml is not valid, or a claim names a preset that the study does not have.
    """
    found = study(slug)
    claims = list(load_claims(found.folder / "claims.yaml"))
    for claim in claims:
        if unknown := [p for p in claim.presets if p not in found.file.presets]:
            where = f"{layout.relative(found.folder / 'claims.yaml')}: claim {claim.id}"
            raise ConfigError(f"presets: {unknown}", where=where, remedy=f"known: {', '.join(found.file.presets)}")
    return claims


def statistics_of(slug: str) -> ModuleType:
    """Import the module that holds a study's statistics."""
    return importlib.import_module(f"restudy.studies.{slug}.statistics")


def lock_of(slug: str) -> list[Entry]:
    """The entries of a study's claims.lock, oldest first."""
    return list(read_lock(study(slug).folder / "claims.lock"))


def lock_id(slug: str) -> str:
    """The lock entry in force, or "" when the claims are not frozen as they are."""
    entry = entry_in_force(lock_of(slug), claims_of(slug), statistics_code(slug))
    return entry.id if entry else ""


def statistics_code(slug: str) -> str:
    """Hash of the code closure of a study's statistics."""
    return closure(f"restudy.studies.{slug}.statistics").digest


def _notes(claims: Sequence[Claim], entries: Sequence[Entry], slug: str, recorded: int | None) -> dict[str, list[str]]:
    """Flags about freezing: not frozen as they are, or amended after the results."""
    if not entries:
        return {claim.id: ["not frozen"] for claim in claims}
    if entry_in_force(entries, claims, statistics_code(slug)) is None:
        return {claim.id: ["differs from the frozen claims"] for claim in claims}
    if recorded is None:
        return {}
    if recorded == 0:
        return {claim.id: ["frozen after results"] for claim in claims}
    return notes_since(entries, entries[recorded - 1].id, claims) if recorded <= len(entries) else {}


def summary(judged: StudyVerdicts) -> dict[str, Any]:
    """What DVC shows as metrics: the paper verdict, and per claim verdict, estimate and lower bound."""
    claims = {
        row.claim: {"verdict": row.verdict, "estimate": row.estimate, "ci_low": row.ci_low} for row in judged.verdicts
    }
    return {"paper": judged.paper.text if judged.paper else None, "claims": claims}

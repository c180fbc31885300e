"""Claims from claims.yaml with their verdicts from Parquet; what is not there yet stays `not run yet`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

from restudy.catalog.schema import read_yaml
from restudy.errors import RestudyError
from restudy.report.model import Claim
from restudy.results.tables import read_table

_SAID = {"id", "says", "where", "why", "side", "parts", "control", "formula"}
_DECIDED = frozenset(f.name for f in fields(Claim)) - _SAID


Formulas = Callable[[str], str]
"""Statistic -> what it computes, in a line."""


def claims_of(
    study_folder: Path, results: Path, formulas: Formulas = lambda name: ""
) -> tuple[tuple[Claim, ...], list[str]]:
    """The claims of a study in the order of claims.yaml, and what could not be read.

    Args:
        study_folder: holds claims.yaml.
        results: holds verdicts.parquet and verdict_parts.parquet, or does not yet.
        formulas: says what a statistic computes.
    """
    problems: list[str] = []
    try:
        entries = read_yaml(study_folder / "claims.yaml") or []
    except RestudyError as error:
        entries, problems = [], [str(error)]
    verdicts = {str(row["claim"]): row for row in _rows(results / "verdicts.parquet", problems)}
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(results / "verdict_parts.parquet", problems):
        parts.setdefault(str(row["claim"]), []).append(row)
    written = [e for e in entries if isinstance(e, dict) and "id" in e] if isinstance(entries, list) else []
    known = {str(entry["id"]) for entry in written}
    gone = [{"id": name, "says": "(no longer in claims.yaml)"} for name in verdicts if name not in known]
    return tuple(_claim(entry, verdicts, parts, formulas) for entry in [*written, *gone]), problems


def _claim(
    entry: dict[str, Any],
    verdicts: dict[str, dict[str, Any]],
    parts: dict[str, list[dict[str, Any]]],
    formulas: Formulas,
) -> Claim:
    name = str(entry["id"])
    claim = Claim(**_said(entry, formulas), **_decided(verdicts.get(name, {}), entry))
    said = {str(p.get("name")): p for p in entry.get("parts") or [] if isinstance(p, dict)}
    found = []
    for row in parts.get(name, []):
        own = said.get(str(row.get("part")), {})
        words = {"id": str(row.get("part")), "says": str(own.get("says") or row.get("part") or "")}
        words |= {"where": "", "why": ""}
        found.append(Claim(**(_said(entry | own, formulas) | words), **_decided(row, entry | own)))
    return claim.with_parts(tuple(found))


def _said(entry: dict[str, Any], formulas: Formulas) -> dict[str, Any]:
    """What the claim says of itself."""
    paper = entry.get("paper") if isinstance(entry.get("paper"), dict) else {}
    return {
        "id": str(entry.get("id", "")),
        "says": str(entry.get("says", "")),
        "where": str(entry.get("where", "")),
        "why": str(entry.get("why", "")),
        "side": str(entry.get("side") or ""),
        "control": str(entry.get("control") or ""),
        "statistic": str(entry.get("statistic") or ""),
        "formula": formulas(str(entry.get("statistic") or "")),
        "paper_note": _paper_note(paper or {}),
    }


def _paper_note(paper: dict[str, Any]) -> str:
    if not paper:
        return ""
    shown = [str(paper["value"])] if paper.get("value") is not None else []
    shown += [f"s.d. {paper['sd']}"] if paper.get("sd") is not None else []
    shown += [f"n = {paper['n']}"] if paper.get("n") is not None else []
    shown += ["recalled, not read: context only"] if paper.get("source") == "recalled" else []
    return ", ".join([*shown, *([str(paper["note"])] if paper.get("note") else [])])


def _decided(row: dict[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    """What the run decided, or, before it, what claims.yaml asks for."""
    if not row:
        asked = ("kind", "primary", "sesoi", "margin", "bound", "unit", "scale")
        return {k: entry[k] for k in asked if entry.get(k) is not None and k != "kind"} | {
            "kind": str(entry.get("kind") or ("parts" if entry.get("parts") else ""))
        }
    found = {k: _plain(v) for k, v in row.items() if k in _DECIDED and _plain(v) is not None}
    return found | {"flags": tuple(str(flag) for flag in row.get("flags") or ())}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _rows(path: Path, problems: list[str]) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    try:
        rows: list[dict[str, Any]] = read_table(path).to_pylist()
    except RestudyError as error:
        problems.append(str(error))
        return []
    return [row for row in rows if row.get("claim") is not None]

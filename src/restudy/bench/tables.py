"""Verdicts as stored: read them, and say them in a line each."""

from __future__ import annotations

import json
from typing import Any

from restudy import layout
from restudy.results.tables import read_table


def stored_verdicts(slug: str, preset: str) -> list[dict[str, Any]]:
    """The rows of a study's verdicts.parquet.

    Raises:
        ResultError: not run yet, or cut short.
    """
    rows: list[dict[str, Any]] = read_table(layout.results(preset, slug) / "verdicts.parquet").to_pylist()
    return rows


def verdict_lines(slug: str, preset: str, *, primary_only: bool = False) -> list[str]:
    """One line a claim: id, verdict, estimate with interval, reason; claims not judged at the preset share a line."""
    lines, unjudged = [], []
    for row in stored_verdicts(slug, preset):
        if row["verdict"] == "not testable":
            unjudged.append(row["claim"])
        elif row["primary"] or not primary_only:
            star = "*" if row["primary"] else " "
            why = f" ({row['reason']})" if row["reason"] else ""
            lines.append(f"{slug} {row['claim']}{star} {row['verdict']}{_numbers(row)}{why}"[:200])
    if unjudged:
        lines.append(f"{slug}: not judged at preset {preset}: {', '.join(unjudged)}")
    return lines


def _numbers(row: dict[str, Any]) -> str:
    if row["estimate"] is None or row["estimate"] != row["estimate"]:
        return ""
    if row["ci_low"] is None or row["ci_high"] is None:
        return f" {row['estimate']:.3g}"
    return f" {row['estimate']:.3g} [{row['ci_low']:.3g}, {row['ci_high']:.3g}]"


def paper_verdict(slug: str, preset: str) -> str | None:
    """The paper's verdict with its counts, in words, from the summary beside the results."""
    try:
        content = json.loads((layout.root() / "results" / preset / f"{slug}.verdicts.json").read_text())
    except (OSError, ValueError):
        return None
    said = content.get("paper")
    return str(said) if said else None

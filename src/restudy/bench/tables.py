"""Verdicts as stored: read them, and say them in a line each."""

from __future__ import annotations

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


def verdict_lines(slug: str, preset: str) -> list[str]:
    """One line a claim: id, verdict, estimate with interval, reason."""
    lines = []
    for row in stored_verdicts(slug, preset):
        numbers = ""
        if row["estimate"] is not None and row["estimate"] == row["estimate"]:
            numbers = f" {row['estimate']:.3g}"
            if row["ci_low"] is not None and row["ci_high"] is not None:
                numbers += f" [{row['ci_low']:.3g}, {row['ci_high']:.3g}]"
        primary = "*" if row["primary"] else " "
        why = f" ({row['reason']})" if row["reason"] else ""
        lines.append(f"{slug} {row['claim']}{primary} {row['verdict']}{numbers}{why}"[:200])
    return lines

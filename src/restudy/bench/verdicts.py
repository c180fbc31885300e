"""Verdicts for people: shown, checked against the stored results, and the power of the scheme."""

from __future__ import annotations

from collections.abc import Sequence

from restudy import layout
from restudy.bench.judging import judge
from restudy.bench.workers import recorded_entries
from restudy.catalog.plan import plan
from restudy.claims import StudyVerdicts
from restudy.claims.check import check as compare
from restudy.claims.render import as_json, as_markdown, as_text
from restudy.errors import ResultError
from restudy.provenance.fingerprint import Node
from restudy.results.tables import read_table


def judged_again(slug: str, preset: str) -> StudyVerdicts:
    """Judge a study's stored tables again, without training.

    Raises:
        ResultError: a table is missing or cut short.
    """
    folder = layout.results(preset, slug)
    tables = {name: read_table(folder / f"{name}.parquet") for name in plan(slug, preset).tables}
    return judge(slug, preset, tables, recorded=recorded_entries(Node("verdicts", preset, slug)))


def check(slugs: Sequence[str], preset: str) -> list[str]:
    """Every stored verdict that no longer follows from the stored results, in a line each."""
    lines = []
    for slug in slugs:
        path = layout.results(preset, slug) / "verdicts.parquet"
        if not path.is_file():
            lines.append(f"{slug}: not run yet")
            continue
        fresh = judged_again(slug, preset)
        lines += [f"{slug} {difference}" for difference in compare(read_table(path), fresh.verdicts)]
        parts = read_table(path.with_name("verdict_parts.parquet"))
        lines += [f"{slug} {difference}" for difference in compare(parts, fresh.parts)]
    return lines


def show(slugs: Sequence[str], preset: str, style: str) -> str:
    """The verdicts of stored results as text, Markdown or JSON.

    Raises:
        ResultError: no study has results at this preset.
    """
    render = {"text": as_text, "markdown": as_markdown, "json": as_json}[style]
    shown = [
        render(judged_again(s, preset)) for s in slugs if (layout.results(preset, s) / "verdicts.parquet").is_file()
    ]
    if not shown:
        raise ResultError("no verdicts yet", where=f"results/{preset}", remedy=f"run `make reproduce PRESET={preset}`")
    if style == "json":
        return shown[0] if len(shown) == 1 else "[" + ",\n".join(shown) + "]"
    return "\n\n".join(shown)

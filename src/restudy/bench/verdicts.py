"""Verdicts for people: shown, checked against the stored results, and the power of the scheme."""

from __future__ import annotations

from collections.abc import Sequence

from restudy import layout
from restudy.bench.judging import claims_of, judge, statistics_of
from restudy.bench.workers import recorded_entries
from restudy.catalog.plan import plan
from restudy.claims import StudyVerdicts
from restudy.claims.check import check as compare
from restudy.claims.explain import as_explanation
from restudy.claims.render import as_json, as_markdown, as_text
from restudy.errors import ClaimError, ResultError
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


def explain(slugs: Sequence[str], preset: str, claim: str) -> str:
    """What one claim says, computes and asks for, and its verdict on stored results where there are any.

    Args:
        slugs: where to look for the claim; exactly one of these studies must have it.
        preset: the preset of the results.
        claim: the claim's id.

    Raises:
        ClaimError: no study has such a claim, or several have.
    """
    having = {slug: found for slug in slugs for found in claims_of(slug) if found.id == claim}
    if not having:
        known = "known are " + ", ".join(c.id for c in claims_of(slugs[0]))
        remedy = known if len(slugs) == 1 else "see `restudy verdicts`"
        raise ClaimError(f"no claim {claim!r}", where=", ".join(slugs), remedy=remedy)
    if len(having) > 1:
        raise ClaimError(f"{', '.join(having)} have such a claim", where=claim, remedy="name one with --study")
    ((slug, found),) = having.items()
    judged = None
    if (layout.results(preset, slug) / "verdicts.parquet").is_file():
        judged = judged_again(slug, preset)
    return f"{slug} at preset {preset}\n{as_explanation(found, statistics_of(slug), judged)}"


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

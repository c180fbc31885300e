"""Words around a run: verdicts as tags and metrics, its description, and its data sets."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from restudy.errors import RestudyError
from restudy.tracking.curves import clean, numbers
from restudy.tracking.stored import Stored

DIGEST_LENGTH = 36  # the most that MLflow takes; the whole sum stands in the data set's source
# A verdict as a number, so that runs can be sorted and charted by it; undecidable ones have none.
SCORES = {"reproduced": 1.0, "partially": 0.5, "inconclusive": 0.0, "not reproduced": -1.0}
NUMBERS = ("estimate", "ci_low", "ci_high", "p_holm", "n")

Rows = Sequence[Mapping[str, Any]]


def verdict_metrics(rows: Rows) -> dict[str, float]:
    """Per claim its numbers (`claims/estimate/A2`, ...) and its verdict as a score; per verdict word a count."""
    found: dict[str, float] = {}
    for row in rows:
        judged = numbers(row, NUMBERS)
        if "estimate" in judged:
            found |= {f"claims/{name}/{row['claim']}": value for name, value in judged.items()}
        if row["verdict"] in SCORES:
            found[f"claims/score/{row['claim']}"] = SCORES[row["verdict"]]
        count = f"verdicts/{row['verdict']}"
        found[count] = found.get(count, 0.0) + 1.0
    return found


def verdict_tags(rows: Rows, summary: Mapping[str, Any]) -> dict[str, str]:
    """Tag `claim.<id>` with the verdict's word, and `restudy.verdict` with the paper's."""
    tags = {clean(f"claim.{row['claim']}"): str(row["verdict"]) for row in rows}
    paper = summary.get("paper")
    return tags | ({"restudy.verdict": str(paper)} if paper else {})


def description(found: Stored, rows: Rows) -> str:
    """The parent's description: a table of its claims in Markdown."""
    lines = [f"**{_cell(found.summary.get('paper') or 'no paper verdict')}** at preset {found.preset}", ""]
    lines += ["| claim | verdict | estimate | interval | why |", "|---|---|---|---|---|"]
    for row in rows:
        shown = {k: f"{v:.3g}" for k, v in numbers(row, ("estimate", "ci_low", "ci_high")).items()}
        interval = f"{shown['ci_low']} to {shown['ci_high']}" if {"ci_low", "ci_high"} <= shown.keys() else ""
        words = [row["claim"], row["verdict"], shown.get("estimate", ""), interval, row.get("reason") or ""]
        lines.append("| " + " | ".join(map(_cell, words)) + " |")
    return "\n".join(lines)[:7900]


def dataset_inputs(data: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """Name, digest and source (JSON) of the data sets that a job read."""
    made = []
    for name, data_sum in sorted(data.items()):
        source: dict[str, Any] = {"name": name, "data_sum": data_sum}
        with contextlib.suppress(RestudyError, ImportError):
            from restudy.data.catalogue import dataset

            declared = dataset(name)
            if declared.data_sum == data_sum:
                source |= {"sources": declared.sources, "licence": declared.licence, "url": declared.homepage}
        made.append((name, data_sum[:DIGEST_LENGTH], json.dumps(source, sort_keys=True)))
    return tuple(made)


def _cell(text: object) -> str:
    return str(text).replace("|", "/").replace("\n", " ").replace("<", "&lt;")

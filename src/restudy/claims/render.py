"""Verdicts for people and programs: text table, Markdown, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .study import StudyVerdicts
from .verdict import Verdict

_HEADS = ("claim", "verdict", "estimate", "bounds", "S or margin", "p", "n", "seeds needed", "beside it")


def number(value: float | None) -> str:
    """Three significant digits, "" for None."""
    return "" if value is None else f"{value:.3g}"


def yardstick(v: Verdict) -> str:
    """What the effect is compared with, in the metric's unit."""
    if v.sesoi is not None and v.bound is not None:
        return f"{v.side} {number(v.bound)}, S {number(v.sesoi)}"
    if v.sesoi is not None:
        return f"S {number(v.sesoi)}"
    if v.margin is not None:
        return f"margin {number(v.margin)}"
    return f"{'tolerance' if v.kind == 'exact' else v.side} {number(v.bound)}" if v.bound is not None else ""


def cells(v: Verdict) -> tuple[str, ...]:
    """The printed cells of one verdict row."""
    bounds = f"[{number(v.ci_low)}, {number(v.ci_high)}]" if v.ci_low is not None else ""
    p = v.p_holm if v.p_holm is not None else v.p_value
    beside = [*v.flags]
    if v.gate and v.reason == "gate":
        beside.append(v.gate)
    if v.control_verdict:
        beside.append(f"control: {v.control_verdict}")
    if v.look > 1:
        beside.append("second look")
    name = f"{v.claim}/{v.part}" if v.part else v.claim + ("*" if v.primary else "")
    needed = "" if v.seeds_needed is None else str(v.seeds_needed)
    return (
        name,
        v.text,
        number(v.estimate),
        bounds,
        yardstick(v),
        number(p),
        str(v.n or ""),
        needed,
        "; ".join(beside),
    )


def _rows(result: StudyVerdicts) -> list[tuple[str, ...]]:
    rows = []
    for v in result.verdicts:
        rows.append(cells(v))
        rows += [cells(part) for part in result.parts if part.claim == v.claim]
    return rows


def summary(result: StudyVerdicts) -> list[str]:
    """The paper verdict with its counts, and the bounds for false verdicts."""
    paper = result.paper.text if result.paper else f"none at preset {result.judged_as}"
    return [
        f"{result.study or 'paper'} ({result.preset}): {paper}",
        f"* primary. Expected false 'reproduced' at most {result.false_reproduced:.2f}, "
        f"false 'not reproduced' at most {result.false_not_reproduced:.2f}.",
    ]


def as_text(result: StudyVerdicts) -> str:
    """A table for the terminal, columns aligned."""
    rows = [_HEADS, *_rows(result)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_HEADS))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "-" * min(sum(widths) + 16, 110), *lines[1:], "", *summary(result)])


def as_markdown(result: StudyVerdicts) -> str:
    """A Markdown table with the summary below it."""

    def line(row: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"

    head = [line(_HEADS), "|" + " --- |" * len(_HEADS)]
    first, second = summary(result)
    return "\n".join([*head, *map(line, _rows(result)), "", first, "", second.replace("* primary", "\\* primary")])


def as_json(result: StudyVerdicts) -> str:
    """Everything, as one JSON object with sorted keys."""
    paper = None
    if result.paper:
        paper = {"verdict": result.paper.verdict, "counts": dict(result.paper.counts), "total": result.paper.total}
    return json.dumps(
        {
            "study": result.study,
            "preset": result.preset,
            "judged_as": result.judged_as,
            "paper": paper,
            "false_reproduced_at_most": result.false_reproduced,
            "false_not_reproduced_at_most": result.false_not_reproduced,
            "verdicts": [v.row() for v in result.verdicts],
            "parts": [v.row() for v in result.parts],
        },
        indent=2,
        sort_keys=True,
        ensure_ascii=False,
        allow_nan=False,
    )

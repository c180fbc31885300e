"""Explain one claim in text: what it says, what is computed, what is asked for, and what came out."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import fill

from .render import number
from .schema import Claim, Statement
from .statistics import Statistics, formula, lookup
from .study import StudyVerdicts
from .verdict import Verdict

_WIDTH = 110
_LABEL = 12
_NOT_RUN = "not run yet"


def as_explanation(claim: Claim, statistics: Statistics, judged: StudyVerdicts | None) -> str:
    """Everything about a claim in labelled lines, its parts below it.

    ``statistics``: the study's module, or functions by name. ``judged``: None where no results are stored.
    """
    row = None if judged is None else judged[claim.id]
    star = "*" if claim.primary else ""
    lines = [f"{claim.id}{star}  {claim.says}"]
    lines += _said("where", claim.where)
    lines += _statement(claim, statistics)
    for gate in claim.gate:
        asked = f"mean of {gate.statistic} {gate.op} {gate.value:g}"
        lines += _said("gate", asked + _computed(gate.statistic, statistics))
    lines += _said("judged at", ", ".join(claim.presets))
    lines += _said("why", claim.why)
    lines += _outcome(row, judged is None)
    rows = {} if judged is None else {r.part: r for r in judged.parts if r.claim == claim.id}
    for part in claim.parts:
        mine = [*_statement(part, statistics), *_outcome(rows.get(part.name), judged is None)]
        lines += ["", f"{claim.id}/{part.name}", *mine]
    return "\n".join(lines)


def _said(label: str, text: str) -> list[str]:
    """A labelled paragraph, wrapped; nothing for an empty text."""
    if not text:
        return []
    indent = "  " + " " * _LABEL
    return [fill(" ".join(text.split()), _WIDTH, initial_indent=f"  {label:<{_LABEL}}", subsequent_indent=indent)]


def _statement(s: Statement, statistics: Statistics) -> Iterator[str]:
    """What a claim or part measures, and with what it is compared."""
    kind = "parts" if isinstance(s, Claim) and s.parts else s.kind
    yield from _said("kind", kind.replace("_", " ") + ("" if s.scale == "identity" else f", on the scale {s.scale}"))
    if s.statistic is not None:
        yield from _said("statistic", s.statistic + _computed(s.statistic, statistics))
    if s.control is not None:
        yield from _said("control", s.control + _computed(s.control, statistics))
    yield from _said("asked for", ", ".join(_asked(s)))
    if s.paper is not None:
        numbers = {"value": s.paper.value, "s.d.": s.paper.sd, "n =": s.paper.n}
        said = [f"{word} {value:g}" for word, value in numbers.items() if value is not None]
        yield from _said("paper", ", ".join([*said, s.paper.source, *([s.paper.note] if s.paper.note else [])]))


def _computed(name: str, statistics: Statistics) -> str:
    text = formula(lookup(statistics, name))
    return f": {text}" if text else ""


def _asked(s: Statement) -> Iterator[str]:
    """The sizes and places that decide, in words; names as in claims.yaml."""
    if s.bound is not None:
        yield f"{s.side or 'bound'} {s.bound:g}"
    if s.sesoi is not None:
        yield f"smallest effect of interest (sesoi) {s.sesoi:g}"
    if s.margin is not None:
        yield f"margin {s.margin:g}"
    if s.tolerance is not None:
        yield f"tolerance {s.tolerance:g}"
    if s.order:
        yield f"order {' > '.join(s.order)}"


def _outcome(row: Verdict | None, not_run: bool) -> Iterator[str]:
    """The verdict with its reason and numbers."""
    if row is None:
        yield from _said("verdict", _NOT_RUN if not_run else "not judged")
        return
    yield from _said("verdict", row.text)
    yield from _said("numbers", ", ".join(_numbers(row)))
    yield from _said("gates", row.gate)
    yield from _said("on control", row.control_verdict)
    yield from _said("flags", "; ".join(row.flags))


def _numbers(row: Verdict) -> Iterator[str]:
    if row.estimate is not None:
        span = "" if row.ci_low is None else f" [{number(row.ci_low)}, {number(row.ci_high)}]"
        yield f"estimate {number(row.estimate)}{span}"
    if row.p_value is not None:
        yield f"p {number(row.p_value)}"
    if row.p_holm is not None:
        yield f"after Holm {number(row.p_holm)}"
    if row.n:
        yield f"{row.n} replicates" + (f", {row.n_failed} failed" if row.n_failed else "")
    if row.seeds_needed is not None:
        yield f"{row.seeds_needed} needed"

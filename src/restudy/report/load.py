"""From the files of a project to what its pages show."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

from restudy import layout
from restudy.bench.judging import statistics_of
from restudy.bench.outputs import outputs
from restudy.catalog.plan import Plan, derived_presets, plan, studies_at
from restudy.claims.assessment import Assessment
from restudy.claims.errors_bound import false_verdicts
from restudy.claims.statistics import formula, lookup
from restudy.claims.verdict import Verdict
from restudy.claims.words import GATE, MIN_REPLICATES
from restudy.errors import RestudyError
from restudy.provenance.fingerprint import Node
from restudy.report import words
from restudy.report.load_claims import claims_of
from restudy.report.load_files import data_of, figures_of, tables_of
from restudy.report.load_provenance import costs, last_finished, provenance, run_files
from restudy.report.model import NOT_RUN, Claim, IndexPage, IndexRow, PaperPage, Provenance
from restudy.report.states import state

_STOPPED = ("not testable", "error", NOT_RUN)


def paper(slug: str, preset: str) -> PaperPage:
    """Everything on a study's page.

    Raises:
        ConfigError: unknown study or preset.
    """
    found = plan(slug, preset)
    claims, problems = claims_of(found.study.folder, layout.results(preset, slug), _formulas(slug))
    runs = run_files(slug, preset)
    notebook = layout.report(preset) / "notebooks" / f"{slug}.html"
    return PaperPage(
        row=_row(found, slug, claims, runs),
        preset=preset,
        judged_as=found.judged_as,
        frozen=found.frozen,
        citation=found.study.file.citation.model_dump(),
        summary=found.study.file.summary,
        deviations=tuple((d.what, d.paper, d.here) for d in found.study.file.deviations),
        changes=_changes(found),
        claims=claims,
        figures=figures_of(found, slug, claims),
        tables=tables_of(found, slug),
        data=data_of(found),
        provenance=provenance(found, slug, runs),
        notebook=f"notebooks/{slug}.html" if notebook.is_file() else "",
        problems=tuple(problems),
    )


def _formulas(slug: str) -> Callable[[str], str]:
    """What each statistic of a study computes; a page is shown without it where statistics.py cannot be imported."""
    try:
        module = statistics_of(slug)
    except Exception:  # a study's code may fail in any way; its verdicts say so already
        return lambda name: ""
    return lambda name: formula(lookup(module, name))


def index(preset: str, arriving: str = "") -> IndexPage:
    """Everything on the index of a preset.

    Args:
        arriving: a study whose page is about to be written, linked already.

    Raises:
        ConfigError: no study has the preset.
    """
    rows, problems = [], []
    for slug in studies_at(preset):
        try:
            found = plan(slug, preset)
            claims, faults = claims_of(found.study.folder, layout.results(preset, slug))
            rows.append(_row(found, slug, claims, run_files(slug, preset), arriving))
        except RestudyError as error:
            faults = [str(error)]
        problems += faults
    changes = derived_presets().get(preset)
    others = sorted(p.parent.name for p in layout.root().glob("report/*/index.html") if p.parent.name != preset)
    judged_as = changes.inherits if changes else preset
    return IndexPage(preset, judged_as, changes is None, tuple(rows), tuple(others), tuple(problems))


def _row(
    found: Plan, slug: str, claims: tuple[Claim, ...], runs: dict[Node, dict[str, Any]], arriving: str = ""
) -> IndexRow:
    done = [facts for facts in runs.values() if facts]
    where, reasons = _state(slug, found.preset)
    if where == "not run" and done:
        where, reasons = "partial", (f"{len(done)} of {len(runs)} jobs are done",)
    brief = _summary(slug, found.preset) if where not in ("not run", "partial") else {}
    spent = Provenance(costs=costs(runs))
    citation = found.study.file.citation
    page = layout.report(found.preset) / f"{slug}.html"
    false = _false_verdicts(claims)
    return IndexRow(
        slug=slug,
        title=found.study.file.title,
        authors=citation.authors,
        year=citation.year,
        verdict=_word(brief, found.judged_as),
        counts=_counts(claims),
        primary=_primary(claims) if brief else (),
        seeds=found.seeds,
        cpu_minutes=spent.cpu_minutes,
        finished=last_finished(done),
        state=where,
        reasons=reasons,
        href=f"{slug}.html" if page.is_file() or slug == arriving else "",
        words=" ".join([slug, citation.title, citation.venue, *(f"{c.id} {c.says}" for c in claims)]),
        false_reproduced=false[0],
        false_not_reproduced=false[1],
    )


def _state(slug: str, preset: str) -> tuple[str, tuple[str, ...]]:
    node = Node("verdicts", preset, slug)
    found = state(outputs(node)[0], node)
    if found.state == "missing":
        return "not run", ()
    if found.state in ("fresh", "unknown"):
        return found.state, found.reasons
    return "stale", found.reasons or (found.state,)


def _summary(slug: str, preset: str) -> dict[str, Any]:
    try:
        content = json.loads((layout.root() / "results" / preset / f"{slug}.verdicts.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _word(brief: dict[str, Any], judged_as: str) -> str:
    """The verdict on the paper, as the engine stored it: `partially: 2 of 4 reproduced, ...` up to the colon."""
    if not brief:
        return NOT_RUN
    if judged_as == "smoke" or not isinstance(brief.get("paper"), str):
        return "not testable"
    return str(brief["paper"]).partition(":")[0]


def _primary(claims: tuple[Claim, ...]) -> tuple[tuple[str, int], ...]:
    """The primary statistical claims that were judged, by verdict: what the verdict on the paper rests on."""
    return _counts(
        tuple(c for c in claims if c.primary and c.statistical and c.verdict not in ("not testable", NOT_RUN))
    )


def _counts(claims: tuple[Claim, ...]) -> tuple[tuple[str, int], ...]:
    count = Counter(claim.verdict for claim in claims)
    return tuple((word, count[word]) for word in words.VERDICTS if count[word])


def _false_verdicts(claims: tuple[Claim, ...]) -> tuple[float, float]:
    """Expected false verdicts at most, in both directions, by the rule of the claims engine."""
    return false_verdicts((cast(Verdict, claim), _assessment(claim)) for claim in claims)


def _assessment(claim: Claim) -> Assessment:
    """What that rule asks of a stored claim: does chance enter, and did an earlier rule stop it?"""
    stopped = claim.verdict in _STOPPED
    return Assessment(
        statistical=claim.statistical,
        untestable=claim.verdict if stopped else "",
        gate_failed=claim.reason == GATE,
        n_failed=claim.n_failed,
        few=claim.reason == f"n < {MIN_REPLICATES}",
        parts=tuple((part.id, Assessment(part.statistical)) for part in claim.parts),
    )


def _changes(found: Plan) -> tuple[str, ...]:
    """What a derived preset changes, in words."""
    if found.changes is None:
        return ()
    frozen = plan(found.study.slug, found.judged_as)
    said = [f"seeds: {frozen.seeds} \u2192 {found.seeds}"] if frozen.seeds != found.seeds else []
    for stage in found.stages:
        before, after = frozen.parameters(stage), found.parameters(stage)
        said += [f"{stage}.{n}: {before.get(n)} \u2192 {v}" for n, v in after.items() if before.get(n) != v]
    for axis in found.study.file.axes:
        if frozen.axis(axis) != found.axis(axis):
            said.append(f"{axis}: {', '.join(map(str, found.axis(axis)))}")
    return tuple(said)

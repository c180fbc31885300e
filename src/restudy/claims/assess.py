"""From a statement and its replicates to an assessment: everything but the rules and the family."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pyarrow as pa

from ..errors import ClaimError
from . import effects, evidence, robustness, rules, seeds
from .assessment import Assessment
from .effects import Question, Sample
from .replicates import check_table
from .schema import Statement
from .words import MIN_REPLICATES, STATISTICAL_KINDS


@dataclass(frozen=True, slots=True)
class Setting:
    """What one judgement shares: the one-sided error ``alpha`` and the replicates that were planned (or None)."""

    alpha: float
    planned: int | None = None


def count_failed(sample: Sample) -> int:
    """Number of failed replicates; none is ever dropped in silence."""
    return sample.n_failed


def too_few(n: int) -> bool:
    """True below the number of replicates with which anything may be decided."""
    return n < MIN_REPLICATES


def assess(table: pa.Table, s: Statement, where: str, setting: Setting) -> Assessment:
    """Judge one statement up to the rules. Raises ClaimError for a table that cannot be judged."""
    if s.kind == "qualitative":
        return Assessment(statistical=False, untestable="qualitative")
    check_table(table, where)
    table = complete(table, setting.planned)
    sample = effects.sample(table, s, where)
    question = effects.question(s)
    if question.form == "exact":
        return _assess_exact(question, sample)
    n, n_failed = sample.n, count_failed(sample)
    base = Assessment(
        statistical=True, n=n, n_failed=n_failed, few=too_few(n), prob_superiority=_number(
            robustness.prob_superiority(question, sample)), bound=s.bound
    )  # fmt: skip
    if evidence.identical(sample):
        return replace(base, error=f"all {n} replicates are identical: is the seed used?")
    if n - n_failed < 1 or (sample.arms is not None and min(len(arm) for arm in sample.arms) < 2):
        return base
    return _with_numbers(base, question, sample, s, setting.alpha)


def _with_numbers(base: Assessment, question: Question, sample: Sample, s: Statement, alpha: float) -> Assessment:
    """The assessment with estimate, bounds, p values, robustness and seeds needed filled in."""
    fit = evidence.fit_sample(question, sample)
    got = evidence.numbers(question, fit, alpha)
    lacking = evidence.reversed_step(sample, alpha)
    shown = evidence.weigh(question, got.estimate, got.lower, got.upper, lacking)
    report, swap = effects.reporter(s)
    low, high = (got.upper, got.lower) if swap else (got.lower, got.upper)
    flips = robustness.sign_flip(question, sample)
    left_out = robustness.leave_one_out(question, sample, alpha)
    alone = rules.verdict_alone(evidence.weigh(question, got.estimate, got.lower, got.upper))
    disagree = not math.isnan(flips) and (got.p < alpha) != (flips < robustness.SIGN_FLIP_LEVEL)
    settle = question.settle or abs(got.estimate)
    return replace(
        base,
        evidence=shown,
        estimate=_number(report(got.estimate)),
        ci_low=_number(report(low)),
        ci_high=_number(report(high)),
        p=_number(got.p),
        p_against=_number(got.p_against),
        p_sign_flip=_number(flips),
        left_out=left_out,
        fragile=disagree or any(word != alone for word in left_out),
        seeds_needed=_seeds_needed(question, got.sd, settle, alpha),
    )


def _seeds_needed(question: Question, sd: float, settle: float, alpha: float) -> int | None:
    variance = 0.0
    if question.paper_sd is not None and question.paper_n is not None and not question.one_draw:
        variance = question.paper_sd**2 / question.paper_n
    return seeds.seeds_needed(sd, settle, alpha, paper_variance=variance, one_draw=question.one_draw)


def _assess_exact(question: Question, sample: Sample) -> Assessment:
    worst, shown = evidence.exact(question, sample)
    return Assessment(
        statistical=False, evidence=shown, estimate=_number(worst), n=sample.n, n_failed=count_failed(sample),
        bound=question.target,
    )  # fmt: skip


def complete(table: pa.Table, planned: int | None) -> pa.Table:
    """The table with a NaN row for every planned seed (0..planned-1) that is missing from it.

    A statistic that leaves a failed seed out would otherwise hide the failure. Only tables whose
    ``replicate`` column holds integers and that have no clusters are completed.
    """
    if planned is None:
        return table
    names = table.column_names
    if "replicate" not in names or not pa.types.is_integer(table.schema.field("replicate").type):
        return table
    if "cluster" in names or "value" not in names:
        return table
    present = set(table.column("replicate").to_pylist())
    missing = [seed for seed in range(planned) if seed not in present]
    if not missing:
        return table
    first = {name: table.column(name)[0].as_py() for name in names}
    rows = [{**first, "replicate": seed, "value": math.nan} for seed in missing]
    return pa.concat_tables([table, pa.Table.from_pylist(rows, schema=table.schema)])


def statistical(s: Statement) -> bool:
    """True for a kind in which chance enters."""
    return s.kind in STATISTICAL_KINDS


def refused(error: ClaimError, s: Statement) -> Assessment:
    """The assessment of a statement whose table cannot be judged."""
    return Assessment(statistical=statistical(s), error=error.what)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)

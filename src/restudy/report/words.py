"""Numbers and verdicts in words that a tired reader understands."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from restudy.report.model import NOT_RUN, Claim

# Word -> (class in the style sheet, what it means). The order is that of bars and filters.
VERDICTS: Final[dict[str, tuple[str, str]]] = {
    "reproduced": ("yes", "the effect is there, as large as was asked for"),
    "partially": ("part", "the effect is there, but something of the claim is missing"),
    "not reproduced": ("no", "an effect that matters is ruled out"),
    "inconclusive": ("open", "the run cannot tell"),
    "not testable": ("none", "not judged at this preset, or by its nature"),
    "error": ("error", "a stage or a statistic failed"),
    "incomplete": ("error", "a primary claim ended in an error"),
    NOT_RUN: ("wait", "no result is stored"),
}
# What stands in parentheses behind a verdict, in README and on the command line.
REASONS: Final[dict[str, str]] = {
    "width": "the interval is too wide to decide; more seeds would",
    "gate": "a precondition failed, so the claim was not judged",
    "control": "the effect is also found on a control, where it must not be",
    "contradicted": "the whole interval lies on the other side of what is claimed",
    "negligible": "there is an effect, but too small to matter",
    "magnitude": "the estimate stays below the smallest effect of interest",
    "family-wise error": "it does not survive the correction over the paper's primary claims",
    "parts": "a claim of several statements: which of them hold, or do not",
}
FLAGS: Final[dict[str, str]] = {
    "fragile": "a second test disagrees, or leaving out one seed changes the verdict",
    "expected fragile": "at this preset's number of seeds a fragile verdict was expected before the run",
    "exploratory": "not fixed before the run",
    "amended": "the claim was changed after results were there",
    "code moved, numbers unchanged": "the code was rewritten after the run; all stored results give the same numbers",
    "code moved, numbers not compared": "the code was rewritten after the run; no stored results tell about this claim",
    "frozen after results": "the claim was fixed when results were already there",
}
_UNITS: Final = {"seed": "seeds", "draw": "draws", "item": "items"}


def css(verdict: str) -> str:
    """The style class of a verdict."""
    return VERDICTS.get(verdict, ("none", ""))[0]


def number(value: float | None, digits: int = 3) -> str:
    """A number with three significant digits and a true minus sign; an en dash where there is none."""
    if value is None or math.isnan(value):
        return "\u2013"
    if math.isinf(value):
        return "\u221e" if value > 0 else "\u2212\u221e"
    size = abs(value)
    if size and (size < 1e-3 or size >= 1e5):
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        text = f"{mantissa}e{int(exponent)}"
    else:
        decimals = digits - 1 - math.floor(math.log10(size)) if size else 0
        text = f"{value:.{min(max(decimals, 0), 6)}f}"
    return text.replace("-", "\u2212")


def given(value: float | None) -> str:
    """A number that somebody wrote down (a bound, a margin), without trailing zeros."""
    return number(value) if value is None else f"{value:g}".replace("-", "\u2212")


def p_value(value: float | None) -> str:
    """A p value: three decimals, or `< 0.001`."""
    if value is None or math.isnan(value):
        return "\u2013"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def interval(claim: Claim) -> str:
    """The interval of a claim in words, empty where there is none."""
    if claim.ci_low is None and claim.ci_high is None:
        return ""
    level = round(100 * (1 - 2 * claim.alpha))
    return f"{level}% interval {number(claim.ci_low)} to {number(claim.ci_high)}"


def measured(claim: Claim) -> str:
    """What was measured and what the claim asks for, as one phrase."""
    if claim.estimate is None:
        return ""
    got = number(claim.estimate)
    span = f" ({interval(claim)})" if interval(claim) else ""
    asked = wanted(claim)
    name = {
        "threshold": "Mean",
        "value": "Deviation from the paper",
        "no_difference": "Difference",
        "non_inferiority": "Difference",
        "exact": "Largest deviation",
        "trend": "Change",
        "ordering": "Smallest step",
    }.get(claim.kind, "Estimate")
    return f"{name} {got}{span}; {asked}." if asked else f"{name} {got}{span}."


def wanted(claim: Claim) -> str:
    """What a claim asks of its number."""
    if claim.kind == "threshold" and claim.bound is not None:
        beyond = f", by {given(claim.sesoi)} or more" if claim.sesoi else ""
        return f"claimed: {claim.side or 'beyond'} {given(claim.bound)}{beyond}"
    if claim.kind == "non_inferiority" and claim.margin is not None:
        return f"claimed: no worse than {given(-claim.margin)}"
    if claim.kind in ("value", "no_difference") and claim.margin is not None:
        return f"claimed: within \u00b1{given(claim.margin)}"
    if claim.kind == "exact" and claim.bound is not None:
        return f"allowed: {given(claim.bound)}"
    return f"smallest effect of interest {given(claim.sesoi)}" if claim.sesoi is not None else ""


_ABOVE: Final = {
    ("reproduced", ""): "The effect is clearly there, and as large as was asked for.",
    ("not reproduced", "contradicted"): "The whole interval lies on the other side: the opposite of the claim.",
    ("not reproduced", "negligible"): "There is an effect in the claimed direction, but too small to matter.",
    ("not reproduced", ""): "An effect as large as the smallest one of interest is ruled out.",
}
_WITHIN: Final = {
    ("reproduced", ""): "The whole interval lies inside the margin.",
    ("not reproduced", "contradicted"): "The whole interval lies outside the margin.",
}
_EXACT: Final = {
    ("reproduced", ""): "It holds to within the tolerance of the arithmetic.",
    ("not reproduced", "contradicted"): "It does not hold to within the tolerance.",
}
_MISSING: Final = {
    "magnitude": "the estimate stays below the smallest effect of interest",
    "family-wise error": "the p value does not survive the correction for several primary claims",
    "control undecided": "the control could not be told apart",
}


def because(claim: Claim) -> str:
    """The reason of a verdict as a sentence."""
    table = {"value": _WITHIN, "no_difference": _WITHIN, "exact": _EXACT}.get(claim.kind, _ABOVE)
    if claim.kind == "parts" and claim.verdict == "reproduced":
        return "Every part of the claim holds."
    if sentence := table.get((claim.verdict, claim.reason)):
        return sentence
    if claim.verdict == "partially":
        return "Part of it holds; missing: " + _missing(claim.reason) + "."
    if claim.verdict == "inconclusive":
        return _open(claim)
    if claim.verdict == "not reproduced":
        return f"It does not hold: {claim.reason}."
    if claim.verdict == "not testable":
        return _untestable(claim.reason)
    if claim.verdict == "error":
        return f"It could not be judged: {claim.reason}."
    return "No result is stored for this preset." if claim.verdict == NOT_RUN else claim.reason


def _missing(reason: str) -> str:
    if reason.startswith("parts:"):
        groups = [group.strip() for group in reason.removeprefix("parts:").split(";")]
        held = [group for group in groups if group.endswith(" reproduced") and not group.endswith(" not reproduced")]
        return "; ".join(group for group in groups if group not in held)
    return "; ".join(_MISSING.get(part, part) for part in reason.split(", "))


def _open(claim: Claim) -> str:
    if claim.reason == "gate":
        return f"A precondition failed: {claim.gate}."
    if claim.reason == "control":
        return f"The same rule also finds it on the control ({claim.control_verdict}), where it must not be."
    more = f"; about {claim.seeds_needed} {units(claim)} would" if claim.seeds_needed else ""
    if claim.reason == "width":
        return f"The interval is too wide to tell{more}."
    if claim.reason.startswith("n <"):
        return f"{claim.n} {units(claim)} decide nothing (at least five are needed)."
    return f"It cannot be told: {claim.reason}{more}." if claim.reason else "It cannot be told."


def _untestable(reason: str) -> str:
    if reason == "qualitative":
        return "A statement that no number decides; both sides are shown."
    if reason == "preset smoke":
        return "The smoke preset proves the plumbing and judges no statistical claim."
    if reason.startswith("preset ") and "judged at" in reason:
        return f"Judged at {reason.partition('judged at')[2].strip()} only."
    return f"Not judged: {reason}." if reason else "Not judged."


def flag(text: str) -> str:
    """What a flag beside a verdict means, empty for one that says it itself."""
    return next((says for name, says in FLAGS.items() if text.startswith(name)), "")


def units(claim: Claim) -> str:
    """The replicates of a claim, as a plural noun."""
    return _UNITS.get(claim.unit, "replicates")


def brief(claim: Claim) -> list[str]:
    """Seeds, gate and control in a few words, for the line under a claim."""
    said = [f"{claim.n} {units(claim)}"] if claim.n else []
    if claim.n_failed:
        said[-1] += f", {claim.n_failed} failed"
    if claim.gate:
        said.append("gate failed" if claim.reason == "gate" or ": failed" in claim.gate else "gate passed")
    if claim.control_verdict == "not reproduced":
        said.append("does not show on the control, as it must not")
    elif claim.control_verdict:
        said.append(f"control: {claim.control_verdict}")
    return said


def counts_text(counts: Iterable[tuple[str, int]]) -> str:
    """`3 reproduced, 1 inconclusive`."""
    return ", ".join(f"{n} {word}" for word, n in counts) or "none"


def headline(primary: Iterable[tuple[str, int]]) -> str:
    """`2 of 4 primary claims reproduced, 1 partially, 1 inconclusive`."""
    found = dict(primary)
    total = sum(found.values())
    if not total:
        return "no primary claim judged"
    rest = [f"{n} {word}" for word, n in found.items() if word != "reproduced"]
    noun = "claim" if total == 1 else "claims"
    return ", ".join([f"{found.get('reproduced', 0)} of {total} primary {noun} reproduced", *rest])


def date(stamp: str) -> str:
    """The day of an ISO time, empty where it is none."""
    try:
        return datetime.fromisoformat(stamp).date().isoformat()
    except ValueError:
        return ""


def minutes(value: float | None) -> str:
    """CPU minutes: `0.4`, `12.3`, `131`, or an en dash; the same everywhere, README's table included."""
    if value is None:
        return "\u2013"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"

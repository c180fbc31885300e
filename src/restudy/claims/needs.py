"""What each kind of claim needs, and which combinations of fields mean nothing and are refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from .scales import DOMAIN, NEUTRAL

if TYPE_CHECKING:
    from .schema import Claim, Statement

NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "direction": ("sesoi",),
    "threshold": ("bound", "side"),
    "non_inferiority": ("margin",),
    "value": ("margin", "paper"),
    "no_difference": ("margin",),
    "ordering": ("sesoi",),
    "trend": ("sesoi",),
    "exact": ("tolerance",),
    "qualitative": (),
    "parts": ("parts",),
}
MEASURES: Final[dict[str, tuple[str, ...]]] = {
    "sesoi": ("direction", "threshold", "ordering", "trend"),
    "margin": ("non_inferiority", "value", "no_difference"),
    "bound": ("threshold",),
    "side": ("threshold",),
    "tolerance": ("exact",),
    "order": ("ordering",),
}
_ARM_KINDS: Final = ("direction", "non_inferiority", "no_difference")


def inherit(data: Any) -> Any:
    """Parts take ``kind`` and ``scale`` from the claim where they name none (``kind: parts`` gives none)."""
    if not isinstance(data, Mapping) or not isinstance(data.get("parts"), list | tuple):
        return data
    given = {key: data[key] for key in ("kind", "scale") if key in data and data[key] != "parts"}
    parts = [{**given, **part} if isinstance(part, Mapping) else part for part in data["parts"]]
    return {**data, "parts": parts}


def check(statement: Statement, name: str) -> None:
    """Raise ValueError (``field: what is allowed``) unless the statement has what its kind needs."""
    prefix = f"part {name}: " if name else ""
    kind = statement.kind
    for field in NEEDS[kind]:
        if getattr(statement, field, None) is None:
            raise ValueError(f"{prefix}{field}: kind {kind} needs it")
    for field, kinds in MEASURES.items():
        if getattr(statement, field) is not None and kind not in kinds:
            raise ValueError(f"{prefix}{field}: has no meaning for kind {kind}, only for {', '.join(kinds)}")
    _check_scale(statement, prefix)
    if kind == "value":
        _check_value(statement, prefix)
    if not statement.paired and (kind not in _ARM_KINDS or statement.reference is None):
        raise ValueError(f"{prefix}paired: false needs a `reference` arm and kind {', '.join(_ARM_KINDS)}")
    if statement.order is not None and (len(statement.order) < 2 or len(set(statement.order)) < len(statement.order)):
        raise ValueError(f"{prefix}order: at least two different groups, from the highest to the lowest")


def _check_scale(statement: Statement, prefix: str) -> None:
    """Refuse bounds, SESOIs and margins that leave the domain of the scale, and exact claims on a scale."""
    scale = statement.scale
    low, high = DOMAIN[scale]
    if scale != "identity" and statement.kind == "exact":
        raise ValueError(f"{prefix}scale: an exact claim is compared as it is, use identity")
    if statement.bound is not None:
        reach = (statement.sesoi or 0.0) * (1 if statement.side == "above" else -1)
        for value in (statement.bound, statement.bound + reach):
            if not low < value < high:
                raise ValueError(f"{prefix}bound: {value:g} lies outside ({low:g}, {high:g}) of scale {scale}")
        return
    for field in ("sesoi", "margin"):
        value = getattr(statement, field)
        if value is not None and statement.kind != "value" and not NEUTRAL[scale] + value < high:
            raise ValueError(f"{prefix}{field}: {value:g} is not below {high - NEUTRAL[scale]:g} on scale {scale}")


def _check_value(statement: Statement, prefix: str) -> None:
    """A ``value`` claim needs a value that was read in the paper, and a margin inside the scale's domain."""
    paper, margin = statement.paper, statement.margin
    if paper is None or margin is None:
        return
    if paper.value is None:
        raise ValueError(f"{prefix}paper.value: kind value needs it")
    if paper.source != "read":
        raise ValueError(f"{prefix}paper.source: {paper.source!r} is no target for kind value, only 'read' is")
    low, high = DOMAIN[statement.scale]
    if not (low < paper.value - margin and paper.value + margin < high):
        raise ValueError(
            f"{prefix}margin: {paper.value:g} +- {margin:g} leaves ({low:g}, {high:g}) of scale {statement.scale}"
        )


def check_claim(claim: Claim) -> None:
    """Raise ValueError for what a whole claim must not say (parts, primary, exploratory, value)."""
    if claim.parts:
        if claim.statistic is not None:
            raise ValueError("statistic: a claim of parts names a statistic in each part, not beside them")
        if len(claim.parts) < 2:
            raise ValueError("parts: at least two are needed; a single statement is a claim without parts")
        names = [part.name for part in claim.parts]
        if len(set(names)) < len(names):
            raise ValueError(f"parts: names are used twice ({', '.join(names)})")
    elif claim.kind == "parts":
        raise ValueError("parts: kind parts needs them")
    elif claim.kind != "qualitative" and claim.statistic is None:
        raise ValueError("statistic: required field is missing")
    if claim.primary and claim.unit == "item":
        raise ValueError("primary: items judge one fixed model, so the claim is never primary; say false")
    if claim.primary and (claim.exploratory or claim.kind == "qualitative"):
        raise ValueError("primary: an exploratory or qualitative claim is never primary; say false")
    for statement in claim.parts or (claim,):
        if statement.kind == "value" and not statement.scale_free and set(claim.presets) != {"paper"}:
            raise ValueError("presets: kind value is judged at [paper] only, unless `scale_free: true`")

"""Entries of ``claims.lock``: the claims as they were frozen before the run, and what was changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .schema import Claim

NOT_DECISIONS: Final = frozenset({"says", "where", "mission", "why"})
"""Fields of a claim that no verdict depends on; everything else is frozen."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What showed that moved code gives the same numbers.

    ``presets``: those whose stored results were used. ``statistics``: how many were equal on all of them.
    ``without``: statistics that no stored results allow to compute.
    """

    presets: tuple[str, ...]
    statistics: int
    without: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """The comparison as plain values; ``without`` only where there is something to name."""
        known: dict[str, Any] = {"presets": list(self.presets), "statistics": self.statistics}
        return known | ({"without": list(self.without)} if self.without else {})


@dataclass(frozen=True, slots=True)
class Entry:
    """One freeze: ``claims`` maps id -> decision fields, ``code`` is the hash of the statistics' code.

    ``previous`` is the id of the entry before, so that a changed or removed entry shows. ``compared`` is set
    where only the code moved and all numbers stayed equal.
    """

    date: str
    reason: str
    code: str
    seeds: tuple[int, ...]
    claims: Mapping[str, Mapping[str, Any]]
    previous: str
    compared: Compared | None = None

    @property
    def id(self) -> str:
        """Hash of the whole entry, 16 hexadecimal digits; what a run records and a verdict row shows."""
        return _hash(self.plain())[:16]

    def plain(self) -> dict[str, Any]:
        """The whole entry as plain values, with all claims; its id is a hash over them."""
        return {**self.head(), "claims": {name: dict(fields) for name, fields in self.claims.items()}}

    def head(self) -> dict[str, Any]:
        """Everything but the claims; without a comparison no key says so, which keeps the ids of such entries."""
        known = {
            "previous": self.previous,
            "date": self.date,
            "reason": self.reason,
            "code": self.code,
            "seeds": list(self.seeds),
        }
        return known | ({"same_numbers": True, "compared": self.compared.plain()} if self.compared else {})


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def decision_fields(claim: Claim) -> dict[str, Any]:
    """The fields of a claim that a verdict depends on; of those left at their default only `unit` and `primary`."""
    stated = claim.model_dump(mode="json", exclude_defaults=True)
    fields = {name: stated.get(name, getattr(claim, name)) for name in (*stated, "unit", "primary")}
    return {name: value for name, value in fields.items() if name not in NOT_DECISIONS and name != "id"}


def decision_hash(claims: Sequence[Claim]) -> str:
    """SHA-256 of the decision fields of all claims; rewording ``says`` leaves it as it is."""
    return _hash({claim.id: decision_fields(claim) for claim in claims})


def entry_in_force(entries: Sequence[Entry], claims: Sequence[Claim], code: str) -> Entry | None:
    """The newest entry, if the claims and the code are still what it froze; else None (not frozen)."""
    if not entries:
        return None
    last = entries[-1]
    now = {claim.id: decision_fields(claim) for claim in claims}
    return last if last.code == code and now == {name: dict(fields) for name, fields in last.claims.items()} else None


def changes(old: Entry, new: Entry) -> dict[str, list[str]]:
    """Claim id -> lines ``field: old -> new``; key "" holds changes of the code and the seeds."""
    found: dict[str, list[str]] = {}
    if old.code != new.code:
        found.setdefault("", []).append(f"statistics: {old.code[:12]} -> {new.code[:12]}")
    if old.seeds != new.seeds:
        found.setdefault("", []).append(f"seeds: {len(old.seeds)} -> {len(new.seeds)}")
    return found | changed_decisions(old, new)


def changed_decisions(old: Entry, new: Entry) -> dict[str, list[str]]:
    """Claim id -> lines ``field: old -> new``, or ``added`` or ``removed``, for claims that are judged otherwise."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys([*old.claims, *new.claims]):
        before, after = old.claims.get(name), new.claims.get(name)
        if before is None or after is None:
            found[name] = ["added" if before is None else "removed"]
            continue
        lines = [
            f"{field}: {_show(before.get(field))} -> {_show(after.get(field))}"
            for field in dict.fromkeys([*before, *after])
            if before.get(field) != after.get(field)
        ]
        if lines:
            found[name] = lines
    return found


def _show(value: Any) -> str:
    if value is None:
        return "none"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)

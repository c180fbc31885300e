"""``claims.lock``: the claims as they were frozen before the run; entries are only ever appended."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import ConfigError
from .schema import Claim

NOT_DECISIONS: Final = frozenset({"says", "where", "mission", "why"})
"""Fields of a claim that no verdict depends on; everything else is frozen."""

_HEAD: Final = "# Written by `restudy claims freeze`. Entries are appended, never changed.\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """One freeze: ``claims`` maps id -> decision fields, ``code`` is the hash of the statistics' code.

    ``previous`` is the id of the entry before, so that a changed or removed entry shows.
    """

    date: str
    reason: str
    code: str
    seeds: tuple[int, ...]
    claims: Mapping[str, Mapping[str, Any]]
    previous: str

    @property
    def id(self) -> str:
        """Hash of the whole entry, 16 hexadecimal digits; what a run records and a verdict row shows."""
        return _hash(self.plain())[:16]

    def plain(self) -> dict[str, Any]:
        """The entry as plain values, as it stands in the file."""
        return {
            "previous": self.previous,
            "date": self.date,
            "reason": self.reason,
            "code": self.code,
            "seeds": list(self.seeds),
            "claims": {name: dict(fields) for name, fields in self.claims.items()},
        }


def _hash(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def decision_fields(claim: Claim) -> dict[str, Any]:
    """The fields of a claim that a verdict depends on, without those left at their default."""
    fields = claim.model_dump(mode="json", exclude_defaults=True)
    return {name: value for name, value in fields.items() if name not in NOT_DECISIONS and name != "id"}


def decision_hash(claims: Sequence[Claim]) -> str:
    """SHA-256 of the decision fields of all claims; rewording ``says`` leaves it as it is."""
    return _hash({claim.id: decision_fields(claim) for claim in claims})


def read_lock(path: str | Path) -> list[Entry]:
    """The entries of a ``claims.lock``, oldest first; an absent file has none.

    Raises ConfigError when the file is not a lock, or an entry was changed or removed.
    """
    path = Path(path)
    if not path.exists():
        return []
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8")) or []
        entries = [
            Entry(
                date=str(raw["date"]),
                reason=str(raw["reason"]),
                code=str(raw["code"]),
                seeds=tuple(int(seed) for seed in raw["seeds"]),
                claims=raw["claims"],
                previous=str(raw["previous"]),
            )
            for raw in data
        ]
    except (yaml.YAMLError, KeyError, TypeError, ValueError) as error:
        raise ConfigError(f"not a claims lock: {' '.join(str(error).split())}", where=str(path)) from None
    before = ""
    for number, entry in enumerate(entries, start=1):
        if entry.previous != before:
            raise ConfigError(
                f"entry {number}: what stands before it was changed or removed",
                where=str(path),
                remedy="restore the file from version control; entries are only appended",
            )
        before = entry.id
    return entries


def freeze(
    path: str | Path, claims: Sequence[Claim], *, code: str, seeds: Sequence[int], reason: str, date: str
) -> Entry:
    """Append an entry for the claims as they are now, and return it.

    ``code``: hash of the statistics' code closure, from the caller. ``date``: ISO, from the caller.
    Raises ConfigError for an empty reason, seeds that are not 0..n-1, or when nothing would change.
    """
    entries = read_lock(path)
    if not reason.strip():
        raise ConfigError("reason: is empty", where=str(path), remedy="say why the claims are frozen or amended")
    if list(seeds) != list(range(len(seeds))) or not seeds:
        raise ConfigError(f"seeds: {list(seeds)} are not 0..n-1", where=str(path), remedy="pilots use 1000 and up")
    entry = Entry(
        date=date,
        reason=" ".join(reason.split()),
        code=code,
        seeds=tuple(seeds),
        claims={claim.id: decision_fields(claim) for claim in claims},
        previous=entries[-1].id if entries else "",
    )
    if entries and not changes(entries[-1], entry):
        raise ConfigError("nothing changed since the last entry", where=str(path), remedy="no need to freeze")
    text = yaml.safe_dump([entry.plain()], sort_keys=False, allow_unicode=True, width=110)
    path = Path(path)
    before = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    partial = path.with_name(path.name + ".partial")
    partial.write_text(before + text, encoding="utf-8")
    partial.replace(path)
    return entry


def changes(old: Entry, new: Entry) -> dict[str, list[str]]:
    """Claim id -> lines ``field: old -> new``; key "" holds changes of the code and the seeds."""
    found: dict[str, list[str]] = {}
    if old.code != new.code:
        found.setdefault("", []).append(f"statistics: {old.code[:12]} -> {new.code[:12]}")
    if old.seeds != new.seeds:
        found.setdefault("", []).append(f"seeds: {len(old.seeds)} -> {len(new.seeds)}")
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
    return (
        "none"
        if value is None
        else json.dumps(value, ensure_ascii=False)
        if isinstance(value, dict | list)
        else str(value)
    )


def entry_in_force(entries: Sequence[Entry], claims: Sequence[Claim], code: str) -> Entry | None:
    """The newest entry, if the claims and the code are still what it froze; else None (not frozen)."""
    if not entries:
        return None
    last = entries[-1]
    now = {claim.id: decision_fields(claim) for claim in claims}
    return last if last.code == code and now == {name: dict(fields) for name, fields in last.claims.items()} else None


def amended_after(entries: Sequence[Entry], recorded: str) -> dict[str, list[str]]:
    """What was amended after the run that recorded entry ``recorded``: claim id -> notes for its verdict.

    Changes of code or seeds are noted on every claim. Raises ConfigError for an entry that is not in the lock.
    """
    ids = [entry.id for entry in entries]
    if recorded not in ids:
        raise ConfigError(f"entry {recorded} is not in it", where="claims.lock", remedy="restore the file")
    start = entries[ids.index(recorded)]
    if entries[-1].id == recorded:
        return {}
    found = changes(start, entries[-1])
    everywhere = found.pop("", [])
    when = entries[-1].date
    return {
        name: [f"amended after results ({when}): {line}" for line in [*found.get(name, []), *everywhere]]
        for name in entries[-1].claims
        if found.get(name) or everywhere
    }

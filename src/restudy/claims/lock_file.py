"""Read ``claims.lock``, and append to it: one claim a line, entries are never changed.

The first entry lists all claims under ``claims``. A later one lists under ``changed`` those whose decision fields
differ from the entry before it, and under ``removed`` the ids that are gone; reading puts the whole together again,
so an entry's id is the hash over all its claims however many lines it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from ..errors import ConfigError
from .lock import Compared, Entry, changes, decision_fields
from .schema import Claim

_HEAD: Final = "# Written by `restudy claims freeze`. Entries are appended, never changed.\n"
_SEEDS: Final = "pilots use 1000 and up"


def read_lock(path: str | Path) -> list[Entry]:
    """Read the entries of a ``claims.lock``, oldest first; an absent file has none.

    Raises ConfigError when the file is not a lock, or an entry was changed or removed.
    """
    path = Path(path)
    if not path.exists():
        return []
    entries: list[Entry] = []
    try:
        for raw in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
            entries.append(_entry(raw, entries[-1].claims if entries else None))
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
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


def _entry(raw: Mapping[str, Any], before: Mapping[str, Mapping[str, Any]] | None) -> Entry:
    compared = raw["compared"] if raw.get("same_numbers") else None
    return Entry(
        date=str(raw["date"]),
        reason=str(raw["reason"]),
        code=str(raw["code"]),
        seeds=tuple(int(seed) for seed in raw["seeds"]),
        claims=_claims(raw, before),
        previous=str(raw["previous"]),
        compared=None
        if compared is None
        else Compared(tuple(compared["presets"]), int(compared["statistics"]), tuple(compared.get("without", ()))),
    )


def _claims(raw: Mapping[str, Any], before: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Mapping[str, Any]]:
    """Rebuild all claims of an entry from what it lists and, unless it lists all, the claims of the one before."""
    if before is None or "claims" in raw:
        return dict(raw["claims"])
    gone = list(raw.get("removed", ()))
    if unknown := [name for name in gone if name not in before]:
        raise ValueError(f"removed: {', '.join(map(str, unknown))} was not there before")
    kept = {name: fields for name, fields in before.items() if name not in gone}
    return kept | dict(raw["changed"])


def freeze(
    path: str | Path,
    claims: Sequence[Claim],
    *,
    code: str,
    seeds: Sequence[int],
    reason: str,
    date: str,
    compare: Callable[[Entry], Compared] | None = None,
) -> Entry:
    """Append an entry for the claims as they are now, and return it.

    ``code``: hash of the statistics' code closure, from the caller. ``date``: ISO, from the caller.
    ``compare``: shows that the code of the last entry and the present one give the same numbers, or raises; then
    nothing but the code may differ.
    Raises ConfigError for an empty reason, seeds that are not 0..n-1, or when nothing would change.
    """
    path = Path(path)
    entries = read_lock(path)
    if not reason.strip():
        raise ConfigError("reason: is empty", where=str(path), remedy="say why the claims are frozen or amended")
    if list(seeds) != list(range(len(seeds))) or not seeds:
        raise ConfigError(f"seeds: {list(seeds)} are not 0..n-1", where=str(path), remedy=_SEEDS)
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
    if compare is not None:
        _check_only_code(entries, entry, str(path))
        entry = replace(entry, compared=compare(entries[-1]))
    before = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    partial = path.with_name(path.name + ".partial")
    partial.write_text(before + entry_text(entry, entries[-1] if entries else None), encoding="utf-8")
    partial.replace(path)
    return entry


def _check_only_code(entries: Sequence[Entry], new: Entry, where: str) -> None:
    """Refuse (ConfigError) an entry that claims unchanged numbers but differs in more than the code."""
    if not entries:
        raise ConfigError("nothing is frozen yet", where=where, remedy="freeze without --same-numbers first")
    found = changes(entries[-1], new)
    everywhere = [line for line in found.pop("", []) if not line.startswith("statistics:")]
    if differing := [*everywhere, *(f"claim {name}: {lines[0]}" for name, lines in found.items())]:
        raise ConfigError(
            f"more than the code differs from the last entry: {differing[0]}",
            where=where,
            remedy="freeze without --same-numbers: that is an amendment",
        )


def lock_text(entries: Sequence[Entry]) -> str:
    """The text of a whole ``claims.lock``."""
    pairs = zip(entries, [None, *entries], strict=False)
    return _HEAD + "".join(entry_text(entry, before) for entry, before in pairs)


def entry_text(entry: Entry, before: Entry | None) -> str:
    """The lines of an entry as they stand in the file; ``before`` is the entry above it."""
    lines = [_line(key, value) for key, value in entry.head().items()]
    name, listed = "claims", dict(entry.claims)
    if before is not None:
        name = "changed"
        listed = {key: fields for key, fields in entry.claims.items() if before.claims.get(key) != fields}
        if gone := [key for key in before.claims if key not in entry.claims]:
            lines.append(_line("removed", gone))
    if listed:
        lines += [f"{name}:", *(f"  {_line(key, dict(fields))}" for key, fields in listed.items())]
    else:
        lines.append(f"{name}: {{}}")
    return "- " + "\n  ".join(lines) + "\n"


class _OneLine(yaml.SafeDumper):
    """Writes text with line breaks in double quotes, so that a value never takes more than one line."""

    def represent_str(self, data: str) -> yaml.ScalarNode:
        """Quote text that would be broken into lines."""
        style = '"' if data and data.splitlines() != [data] else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_OneLine.add_representer(str, _OneLine.represent_str)


def _line(key: str, value: Any) -> str:
    """``key: value`` on one line, however long."""
    text: str = yaml.dump(
        {key: value}, Dumper=_OneLine, default_flow_style=True, sort_keys=False, allow_unicode=True, width=math.inf
    )
    return text.strip()[1:-1]

"""What changed in the frozen claims after a run, as flags for its verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from ..errors import ConfigError
from .lock import Entry, changes
from .schema import Claim
from .statistics import named

SAME: Final = "code moved, numbers unchanged"
UNSEEN: Final = "code moved, numbers not compared"


def notes_since(entries: Sequence[Entry], recorded: str, claims: Sequence[Claim]) -> dict[str, list[str]]:
    """Claim id -> flags for its verdict: what changed after the run that recorded entry ``recorded``.

    Changes of seeds, and of code that may change numbers, are noted on every claim as amendments. Code that was
    shown to give the same numbers is said to have moved: :data:`SAME`, or :data:`UNSEEN` on a claim that names a
    statistic which no stored results allowed to compare. Raises ConfigError for an entry that is not in the lock.
    """
    ids = [entry.id for entry in entries]
    if recorded not in ids:
        raise ConfigError(f"entry {recorded} is not in it", where="claims.lock", remedy="restore the file")
    since = entries[ids.index(recorded) :]
    last = since[-1]
    found = changes(since[0], last)
    everywhere = found.pop("", [])
    moved: list[Entry] = []
    if since[0].code != last.code:
        steps = [new for old, new in pairwise(since) if old.code != new.code]
        if all(entry.compared for entry in steps):
            moved = steps
            everywhere = [line for line in everywhere if not line.startswith("statistics:")]
    return {
        name: [f"amended after results ({last.date}): {line}" for line in [*found.get(name, []), *everywhere]]
        + _moved(name, moved, claims)
        for name in last.claims
        if found.get(name) or everywhere or moved
    }


def _moved(claim: str, steps: Iterable[Entry], claims: Sequence[Claim]) -> list[str]:
    """The flag of a claim whose statistics' code moved without an amendment."""
    without = {name for entry in steps if entry.compared for name in entry.compared.without}
    if not steps:
        return []
    users: Mapping[str, list[str]] = named(claims)
    return [UNSEEN if any(claim in users.get(name, ()) for name in without) else SAME]

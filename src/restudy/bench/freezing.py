"""Freezing a study's claims before its run, and declaring the extension that it allows."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import yaml

from restudy import layout
from restudy.bench.judging import claims_of, statistics_code
from restudy.bench.same_numbers import compare
from restudy.catalog.plan import extensions, plan
from restudy.catalog.study import study
from restudy.claims import from_table
from restudy.claims.extension import may_extend
from restudy.claims.lock_file import freeze as append
from restudy.claims.statistics import named
from restudy.results.files import write_atomically
from restudy.results.tables import read_table


def freeze(slug: str, reason: str, *, same_numbers: bool = False, against: str | None = None) -> str:
    """Append the claims in force to claims.lock; the line to print.

    Args:
        slug: the study.
        reason: why they are frozen or amended.
        same_numbers: show first that the frozen and the present code give the same numbers on all stored results.
        against: the git revision that holds the frozen code; found in the history by default.

    Raises:
        ConfigError: the claims are not valid, the reason is empty, nothing changed, or the frozen code is not found.
        ResultError: with `same_numbers`, no stored results, or a number differs.
    """
    found, claims = study(slug), claims_of(slug)
    entry = append(
        found.folder / "claims.lock",
        claims,
        code=statistics_code(slug),
        seeds=range(found.file.presets["laptop"].seeds),
        reason=reason,
        date=datetime.now(UTC).date().isoformat(),
        compare=partial(compare, slug, list(named(claims)), against=against) if same_numbers else None,
    )
    if entry.compared is None:
        return f"{slug}: frozen as {entry.id}"
    without = f"; not to be computed from them: {', '.join(entry.compared.without)}" if entry.compared.without else ""
    return (
        f"{slug}: frozen as {entry.id}; {entry.compared.statistics} statistics give the same numbers "
        f"on the results of {', '.join(entry.compared.presets)}{without}"
    )


def extend(slug: str, preset: str) -> str:
    """Declare the extension of a study at a preset in extensions.yaml; the line to print.

    Raises:
        ClaimError: none is declared, or no primary claim is inconclusive for width.
    """
    found = plan(slug, preset)
    rows = from_table(read_table(layout.results(preset, slug) / "verdicts.parquet"))
    seeds = found.study.file.extension
    again = may_extend(rows, seeds, found.seeds)
    content = {p: dict(studies) for p, studies in extensions().items()}
    content.setdefault(preset, {})[slug] = int(seeds or 0)
    head = "# Written by `restudy extend`: preset -> study -> seeds after the declared extension.\n"
    write_atomically(layout.root() / "extensions.yaml", (head + yaml.safe_dump(content)).encode())
    last = int(seeds or 0) - 1
    return f"{slug}: seeds {found.seeds} to {last} will judge {', '.join(again)} again; run `make reproduce`"

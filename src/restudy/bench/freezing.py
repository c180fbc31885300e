"""Freezing a study's claims before its run, and declaring the extension that it allows."""

from __future__ import annotations

from datetime import UTC, datetime

import yaml

from restudy import layout
from restudy.bench.judging import claims_of, statistics_code
from restudy.catalog.plan import extensions, plan
from restudy.catalog.study import study
from restudy.claims import from_table
from restudy.claims.extension import may_extend
from restudy.claims.lock_file import freeze as append
from restudy.results.files import write_atomically
from restudy.results.tables import read_table


def freeze(slug: str, reason: str) -> str:
    """Append the claims in force to claims.lock; the line to print.

    Raises:
        ConfigError: the claims are not valid, the reason is empty, or nothing changed.
    """
    found = study(slug)
    entry = append(
        found.folder / "claims.lock",
        claims_of(slug),
        code=statistics_code(slug),
        seeds=range(found.file.presets["laptop"].seeds),
        reason=reason,
        date=datetime.now(UTC).date().isoformat(),
    )
    return f"{slug}: frozen as {entry.id}"


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

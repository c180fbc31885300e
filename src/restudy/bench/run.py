"""`restudy run`: lock, settle, estimate, Snakemake, and what comes after a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from restudy import layout
from restudy.bench.dvc import write_fingerprints
from restudy.bench.estimate import estimate_all, table
from restudy.bench.groups import check_groups
from restudy.bench.judging import claims_of
from restudy.bench.kinds import elsewhere_line
from restudy.bench.ledger import accounted
from restudy.bench.lock import run_lock
from restudy.bench.outputs import node_of
from restudy.bench.scheduler import run_scheduler
from restudy.bench.settle import environment, record, settle, snakemake_command
from restudy.bench.tables import paper_verdict, verdict_lines
from restudy.catalog.plan import studies_at
from restudy.catalog.study import discover, study
from restudy.errors import ConfigError, RestudyError

TARGETS = ("all", "figures", "notebooks", "report", "verdicts")


def chosen(preset: str, slug: str | None) -> list[str]:
    """The studies of a run: one, or all that have the preset; all studies are validated first.

    Raises:
        ConfigError: unknown study or preset, or any study or claim file that is not valid.
    """
    for known in discover():
        claims_of(known)
    having = studies_at(preset)
    if slug is None:
        return having
    if study(slug).slug not in having:
        raise ConfigError(f"{slug} has no preset {preset!r}", where="PRESET", remedy=f"it has: {_presets(slug)}")
    return [slug]


def _presets(slug: str) -> str:
    return ", ".join(study(slug).file.presets)


def run(preset: str, slug: str | None, cores: int, target: str = "all", extra: Sequence[str] = ()) -> int:
    """Bring a preset up to date; Snakemake's exit code.

    Args:
        preset: name of the preset.
        slug: one study, or None for all.
        cores: jobs at a time.
        target: all, figures, notebooks, report or verdicts.
        extra: further arguments for Snakemake.

    Raises:
        RestudyError: bad input, another live run, or a state of the machine that the user can mend.
    """
    if target not in TARGETS:
        raise ConfigError(f"unknown target {target!r}", where="restudy run", remedy=f"known: {', '.join(TARGETS)}")
    slugs = chosen(preset, slug)
    check_groups(slugs, preset)
    _check_writable()
    with run_lock(f"restudy run --preset {preset}{f' --study {slug}' if slug else ''}") as descriptor:
        found = settle(slugs, preset)
        say(f"{len(found.current) + len(found.unrecorded)} outputs are current, {len(found.stale)} stale")
        if found.complete and not extra and (layout.report(preset) / "index.html").is_file():
            say("nothing to be done")
            _afterwards(slugs, preset)
            return 0
        estimates = estimate_all(slugs, preset, {*found.current, *found.unrecorded})
        seconds = sum(e.left for e in estimates) * 60 / max(cores, 1)
        if any(e.jobs for e in estimates):
            print(table(estimates, cores), file=sys.stderr)
        arguments = [*extra, "--", *_targets(preset, slugs, slug, target)]
        with accounted(slugs, preset):
            code = _snakemake(arguments, preset, cores, descriptor, seconds)
        _afterwards(slugs, preset)
    return code


def run_paths(preset: str, slugs: Sequence[str], paths: Sequence[str], cores: int) -> int:
    """Bring some outputs up to date; Snakemake's exit code. Used by the stages of dvc.yaml."""
    with run_lock(f"dvc repro ({preset} {' '.join(slugs)})") as descriptor:
        settle(slugs, preset)
        return _snakemake(["--", *paths], preset, cores, descriptor, 0)


def _targets(preset: str, slugs: Sequence[str], slug: str | None, target: str) -> list[str]:
    from restudy.bench.dag import targets

    if target == "all":
        return [slug] if slug else ["all"]
    if target == "report" and not slug:
        return ["report"]
    kinds = {"figures": ["figure"], "notebooks": ["notebook"], "report": ["page"], "verdicts": ["verdicts"]}[target]
    return [path for one in slugs for path in targets(one, preset, kinds)]


def _snakemake(arguments: list[str], preset: str, cores: int, descriptor: int, seconds: float) -> int:
    """Run Snakemake with the lock's descriptor handed on."""
    environ = environment() | {"RESTUDY_EXPECTED_SECONDS": f"{seconds:.0f}"}
    return run_scheduler(snakemake_command(preset, cores) + arguments, environ, descriptor)


def _afterwards(slugs: Sequence[str], preset: str) -> None:
    """Verdicts to read, the site's index, fingerprints for DVC, MLflow: none of them fails a run."""
    for slug in slugs:
        try:
            lines = [f"{slug}: {paper_verdict(slug, preset) or 'no paper verdict at this preset'}"]
            lines += verdict_lines(slug, preset, primary_only=True)
        except RestudyError:
            continue
        print("\n".join(lines))
    for step in (_index, write_fingerprints_of, _track):
        try:
            step(slugs, preset)
        except RestudyError as error:
            say(f"warning: {error}")


def _index(slugs: Sequence[str], preset: str) -> None:
    path = layout.report(preset) / "index.html"
    if any((layout.report(preset) / f"{slug}.html").is_file() for slug in slugs):
        if not path.is_file():
            from restudy.report.index import write

            write(preset)
        print(f"report: {layout.relative(path)}")


def write_fingerprints_of(slugs: Sequence[str], preset: str) -> None:
    """Write fingerprints.json for DVC."""
    write_fingerprints()


def _track(slugs: Sequence[str], preset: str) -> None:
    if os.environ.get("RESTUDY_TRACKING", "1") == "0":
        return
    from restudy.tracking.ingesting import ingest_pending

    ingest_pending(slugs, preset)


def _restore_index(slugs: Sequence[str], preset: str) -> None:
    """Render the site's index of pages that were pulled, as the run that computed them did."""
    if all((layout.report(preset) / f"{slug}.html").is_file() for slug in slugs):
        from restudy.report.index import write

        write(preset)
        record([Path("report", preset, "index.html")], preset)


def _check_writable() -> None:
    for folder in ("results", "models", "figures", "report", "work"):
        path = layout.root() / folder
        try:
            path.mkdir(exist_ok=True)
            probe = path / f".writable.{os.getpid()}"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise RestudyError(
                f"cannot write ({error.strerror})", where=f"{folder}/", remedy="make it writable"
            ) from None


def say(text: str) -> None:
    """One line to stderr."""
    print(f"restudy: {text}", file=sys.stderr, flush=True)


def restore(preset: str, slug: str | None) -> dict[str, Any]:
    """Verify every output against this checkout and let Snakemake trust what is current.

    Returns:
        counts of `current` and `recorded` files, the reason of each in `set_aside` and `stale`, and in `kinds` a line
        about current ones that another kind of machine made, or None.
    """
    slugs = chosen(preset, slug)
    with run_lock(f"restudy restore --preset {preset}"):
        records = layout.root() / ".snakemake" / "metadata"
        found = settle(slugs, preset)
        records.mkdir(parents=True, exist_ok=True)
        if slug is None and found.unrecorded and not found.set_aside and not found.stale:
            _restore_index(slugs, preset)
    return {
        "kinds": elsewhere_line({path: node_of(path) for path in (*found.current, *found.unrecorded)}),
        "current": len(found.current),
        "recorded": len(found.unrecorded),
        "set_aside": {str(k): v for k, v in found.set_aside.items()},
        "stale": {str(k): v for k, v in found.stale.items()},
    }

"""Before planning: make Snakemake's records agree with what the files themselves say.

Snakemake trusts modification times where it has no records, and never looks at content. So every output is verified
by its embedded fingerprint and content sum. What is current but unrecorded is recorded (`--touch --force`); what is
not current but would be trusted is moved to work/set-aside, since missing is the one thing that Snakemake surely
makes again.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from restudy import layout
from restudy.bench.lease import devices
from restudy.bench.outputs import expected
from restudy.bench.records import recorded, recorded_params
from restudy.catalog.device import device_class
from restudy.errors import ConfigError, RestudyError
from restudy.provenance.fingerprint import fingerprint
from restudy.provenance.stamp import verify

OLD_SECONDS = 3600


@dataclass
class Settled:
    """What was found: current files, files to be recorded, missing ones, and files set aside with the reason."""

    current: list[Path] = field(default_factory=list)
    unrecorded: list[Path] = field(default_factory=list)
    set_aside: dict[Path, str] = field(default_factory=dict)
    stale: dict[Path, str] = field(default_factory=dict)
    missing: list[Path] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether every output is there and current."""
        return not (self.set_aside or self.stale or self.missing)


def inspect(slugs: Iterable[str], preset: str) -> Settled:
    """Verify every output of some studies at a preset; nothing is changed."""
    found = Settled()
    for path, node in expected(slugs, preset).items():
        if not (layout.root() / path).is_file():
            found.missing.append(path)
            continue
        wanted = fingerprint(node)
        problem = verify(layout.root() / path, wanted)
        if problem is None:
            (found.current if recorded(path, wanted) else found.unrecorded).append(path)
        elif recorded_params(path) is None or recorded(path, wanted):
            found.set_aside[path] = problem
        else:
            found.stale[path] = problem
    return found


def settle(slugs: Sequence[str], preset: str) -> Settled:
    """Set aside what must not be trusted, record what may be.

    Call it under the run lock only.
    """
    sweep()
    found = inspect(slugs, preset)
    if found.set_aside:
        _set_aside(found.set_aside)
    if found.unrecorded:
        record(found.unrecorded, preset)
    return found


def sweep() -> None:
    """Remove what killed jobs left half-written; not the newest, which an orphan may still be writing."""
    for folder in ("results", "models", "figures", "report"):
        for path in (layout.root() / folder).rglob(".*.part"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > OLD_SECONDS:
                    path.unlink()


def _set_aside(files: dict[Path, str]) -> None:
    folder = layout.work("set-aside", datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f"))
    for path, reason in files.items():
        print(f"restudy: set aside {path}: {reason}", file=sys.stderr)
        for source in (layout.root() / path, layout.run_json(layout.root() / path)):
            if source.is_file():
                target = folder / source.relative_to(layout.root())
                target.parent.mkdir(parents=True, exist_ok=True)
                source.replace(target)


def record(files: Sequence[Path], preset: str) -> None:
    """Let Snakemake record files as current; only ever call it with verified ones.

    Raises:
        RestudyError: Snakemake failed.
    """
    command = [*snakemake_command(preset, 1, "default"), "--touch", "--force", "--quiet", "all", "--"]
    for start in range(0, len(files), 1000):
        batch = [path.as_posix() for path in files[start : start + 1000]]
        done = subprocess.run(command + batch, cwd=layout.root(), env=environment(), capture_output=True, text=True)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise RestudyError(f"Snakemake could not record them: {' '.join(last)}", where="restudy restore")


def snakemake_command(preset: str, cores: int | str, profile: str | None = None) -> list[str]:
    """The Snakemake command line of this checkout, without targets.

    Args:
        preset: name of the preset.
        cores: jobs at a time on this machine.
        profile: a folder of workflow/profiles; `RESTUDY_PROFILE`, or default, where none is named.

    Raises:
        ConfigError: no such profile.
    """
    profiles = layout.root() / "workflow" / "profiles"
    name = profile or os.environ.get("RESTUDY_PROFILE") or "default"
    if not (profiles / name / "config.yaml").is_file():
        known = ", ".join(sorted(path.parent.name for path in profiles.glob("*/config.yaml")))
        raise ConfigError(f"no profile {name!r}", where="workflow/profiles", remedy=f"known: {known}")
    counted = device_class() == "cuda" and devices() and name != "slurm"
    return [
        *(sys.executable, "-m", "snakemake"),
        *("--snakefile", str(layout.root() / "Snakefile"), "--directory", str(layout.root())),
        *("--profile", str(profiles / name), "--cores", str(cores), "--config", f"preset={preset}"),
        *(("--resources", "kernel=1", f"gpu={len(devices())}") if counted else ()),
    ]


def environment() -> dict[str, str]:
    """The environment of Snakemake after settling: this interpreter's folder first on PATH.

    Many container images set PYTHONDONTWRITEBYTECODE; every job would then compile a thousand modules anew (2 CPU s).
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    return os.environ | {"PATH": path, "RESTUDY_SETTLED": "1", "PYTHONDONTWRITEBYTECODE": ""}

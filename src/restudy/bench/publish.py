"""`restudy publish`: hand verified results to DVC, so that git's commit of dvc.lock shares them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from restudy import layout
from restudy.bench.dvc import PRESETS, parts, pipeline_file, write_fingerprints
from restudy.bench.lock import run_lock
from restudy.bench.outputs import outputs
from restudy.bench.settle import environment
from restudy.errors import ConfigError, RestudyError
from restudy.provenance.fingerprint import fingerprint
from restudy.provenance.stamp import verify


@dataclass
class Published:
    """The parts of studies that were handed to DVC, and those that are not complete, with the first reason."""

    committed: list[str] = field(default_factory=list)
    incomplete: dict[str, str] = field(default_factory=dict)


def publish(slugs: Sequence[str], preset: str, *, push: bool = False, remote: str | None = None) -> Published:
    """Verify every output and `dvc commit` the parts that are complete; optionally push them.

    Args:
        slugs: the studies.
        preset: laptop, smoke or workstation.
        push: push to DVC's remote as well, the run-cache included.
        remote: name of the remote; DVC's default where none is named.

    Raises:
        RestudyError: a preset that DVC does not hold, a live run, or DVC failed.
    """
    if preset not in PRESETS:
        raise ConfigError(
            f"preset {preset!r} is not in dvc.yaml", where="PRESET", remedy=f"known: {', '.join(PRESETS)}"
        )
    found = Published()
    with run_lock(f"restudy publish --preset {preset}"):
        write_fingerprints()
        for slug in slugs:
            for part, members in parts(slug, preset).items():
                files = {path: fingerprint(node) for node in members for path in outputs(node)}
                wrong = (f"{p}: {why}" for p, fp in files.items() if (why := verify(layout.root() / p, fp)))
                if reason := next(wrong, None):
                    found.incomplete[f"{slug}-{part}"] = reason
                else:
                    found.committed.append(f"{slug}-{part}")
        targets = [f"{pipeline_file(preset)}:{name}" for name in found.committed]
        if targets:
            _dvc("commit", "--force", *targets)
    if push and targets:
        _dvc("push", "--run-cache", *(["--remote", remote] if remote else []), *targets)
    return found


def _dvc(*arguments: str) -> None:
    """Run DVC in the project's root.

    Raises:
        RestudyError: it failed; its last line says why.
    """
    command = [sys.executable, "-m", "dvc", *arguments, "--quiet"]
    done = subprocess.run(command, cwd=layout.root(), env=environment(), capture_output=True, text=True)
    if done.returncode:
        print(done.stderr, file=sys.stderr, end="")
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines() if "ERROR" in line]
        raise RestudyError(lines[0] if lines else "failed", where=f"dvc {arguments[0]}", remedy="see `dvc doctor`")

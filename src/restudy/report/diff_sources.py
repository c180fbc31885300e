"""Where the verdicts of a run are read from: a folder, a preset, or a commit whose results DVC holds."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from restudy import layout
from restudy.errors import ConfigError
from restudy.results.tables import read_table

Rows = dict[tuple[str, str], dict[str, Any]]
"""(study, claim) -> the row of verdicts.parquet."""


@dataclass(frozen=True)
class Run:
    """The verdicts of a run, and the kernel sets that made them (empty where not recorded)."""

    rows: Rows
    kernels: frozenset[str] = frozenset()


def read_run(name: Path | str) -> Run:
    """The verdicts of a run.

    Raises:
        ConfigError: neither folder, preset nor commit, or no verdicts are stored there.
        ResultError: a file of verdicts is cut short.
    """
    text = str(name)
    folder = Path(name)
    stored = layout.root() / "results" / text
    if not isinstance(name, Path) and "/" not in text and stored.is_dir():
        folder = stored
    if folder.is_dir():
        paths = _in_folder(folder)
        if not paths:
            raise ConfigError("no verdicts.parquet in it", where=text, remedy="name a folder results/<preset>")
        return _run((path.parent.name, read_table(path)) for path in paths)
    commit, _, preset = text.partition(":")
    if not _is_commit(commit):
        raise ConfigError("neither preset, folder nor commit", where=text, remedy="see `restudy diff --help`")
    return _from_commit(commit, preset or "laptop")


def _in_folder(folder: Path) -> list[Path]:
    if (folder / "verdicts.parquet").is_file():
        return [folder / "verdicts.parquet"]
    if (folder / "results").is_dir():
        presets = sorted(p for p in (folder / "results").iterdir() if list(p.glob("*/verdicts.parquet")))
        if len(presets) > 1:
            names = ", ".join(p.name for p in presets)
            raise ConfigError(f"holds several presets ({names})", where=str(folder), remedy="name results/<preset>")
        folder = presets[0] if presets else folder
    return sorted(folder.glob("*/verdicts.parquet"))


def _run(tables: Iterable[tuple[str, pa.Table]]) -> Run:
    rows: Rows = {}
    kernels: set[str] = set()
    for study, table in tables:
        facts = json.loads((table.schema.metadata or {}).get(b"restudy", b"{}"))
        kernels.update(facts.get("kernels", []))
        for row in table.to_pylist():
            rows[str(row.get("study") or study), str(row.get("claim"))] = row
    return Run(rows, frozenset(kernels))


def _is_commit(name: str) -> bool:
    if not name or name.startswith("-"):
        return False
    command = ["git", "-C", str(layout.root()), "rev-parse", "--verify", "--quiet", "--end-of-options"]
    command.append(f"{name}^{{commit}}")
    try:
        return subprocess.run(command, capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _from_commit(commit: str, preset: str) -> Run:
    from dvc.api import DVCFileSystem
    from dvc.exceptions import DvcException

    where = f"{commit}:{preset}"
    remedy = "run `dvc pull` there, or check that commit out elsewhere and name its folder"
    try:
        files = DVCFileSystem(str(layout.root()), rev=commit)
        paths = sorted(p for p in files.find(f"results/{preset}") if Path(p).name == "verdicts.parquet")
        tables = [(Path(p).parent.name, pq.read_table(pa.BufferReader(files.read_bytes(p)))) for p in paths]
    except (DvcException, OSError, pa.ArrowException) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"its results cannot be had from DVC ({reason})", where=where, remedy=remedy) from None
    if not tables:
        raise ConfigError("that commit holds no results", where=where, remedy=remedy)
    return _run(tables)

"""Compute a study's statistics with the code of a source tree, today's or an old one, in a process of its own.

This file is also the program that runs there. An old tree may lack any module of today's, so the program imports
nothing of ours but the study's statistics and, for the hash of their code, the module that computes it.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Where the import closure is computed, in every tree there has been. Add the new place here when it moves.
CLOSURES = ("restudy.provenance.closure",)

Numbers = Mapping[str, Mapping[str, Any]]
"""Preset -> statistic -> columns of its table, or the failure as text."""


def code_hash(source: Path, slug: str) -> str:
    """Hash the code of a study's statistics as a tree's own rules do; "" where it cannot tell."""
    return str(_ask(source, slug, (), {})["code"])


def numbers(source: Path, slug: str, names: Iterable[str], folders: Mapping[str, Path]) -> Numbers:
    """Compute statistics with the code of a tree.

    Args:
        source: the folder that holds the package `restudy`.
        slug: the study.
        names: the statistics.
        folders: preset -> folder of its results tables.

    Raises:
        subprocess.CalledProcessError: the study's statistics cannot be imported there.
    """
    found: Numbers = _ask(source, slug, names, folders)["numbers"]
    return found


def _ask(source: Path, slug: str, names: Iterable[str], folders: Mapping[str, Path]) -> dict[str, Any]:
    asked = {
        "source": str(source),
        "slug": slug,
        "names": list(names),
        "folders": {preset: str(folder.resolve()) for preset, folder in folders.items()},
    }
    done = subprocess.run(
        [sys.executable, "-c", Path(__file__).read_text(encoding="utf-8"), json.dumps(asked)],
        cwd=source,
        env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Compute what was asked, inside the tree."""
    name = f"restudy.studies.{asked['slug']}.statistics"
    module = importlib.import_module(name)
    if not Path(str(module.__file__)).resolve().is_relative_to(Path(asked["source"]).resolve()):
        raise ImportError(f"{name} came from {module.__file__}, not from {asked['source']}")
    found = {preset: _statistics(module, asked["names"], Path(f)) for preset, f in asked["folders"].items()}
    return {"code": _code(name), "numbers": found}


def _code(name: str) -> str:
    for place in CLOSURES:
        try:
            return str(importlib.import_module(place).closure(name).digest)
        except ImportError:
            continue
    return ""


def _statistics(module: Any, names: Iterable[str], folder: Path) -> dict[str, Any]:
    files = (p for p in sorted(folder.glob("*.parquet")) if p.stem not in ("verdicts", "verdict_parts"))
    tables = {path.stem: pq.read_table(path) for path in files}
    return {name: _columns(module, name, tables) for name in names}


def _columns(module: Any, name: str, tables: Mapping[str, pa.Table]) -> Any:
    try:
        return getattr(module, name)(tables).to_pydict()
    except Exception as error:  # a study's code may fail in any way; whether both trees fail is compared
        return f"{type(error).__name__}: {' '.join(str(error).split())}"


if __name__ == "__main__":
    print(json.dumps(_answer(json.loads(sys.argv[1]))))

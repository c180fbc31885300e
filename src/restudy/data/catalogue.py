"""Every data set by its name: found by looking, never registered."""

from __future__ import annotations

import importlib
import os
import pkgutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import restudy.data
from restudy.data import store
from restudy.data.dataset import Dataset
from restudy.data.fetching import fetch_dataset
from restudy.errors import DataError

Root = str | os.PathLike[str] | None


@dataclass(frozen=True)
class State:
    """`missing`, `present` (every sum right) or `corrupt`; the bytes on disk; what is wrong, by file."""

    state: str
    size: int
    problems: tuple[str, ...] = ()


@cache
def _found() -> dict[str, Dataset]:
    sets: dict[str, Dataset] = {}
    for module in sorted(pkgutil.iter_modules(restudy.data.__path__), key=lambda module: module.name):
        if module.name.startswith("_"):
            continue
        declared = getattr(importlib.import_module(f"restudy.data.{module.name}"), "DATASET", None)
        if declared is None:
            continue
        if not isinstance(declared, Dataset) or declared.name != module.name:
            raise DataError(
                f"DATASET must be a Dataset named {module.name}",
                where=f"restudy/data/{module.name}.py",
                remedy="name the data set after its module",
            )
        sets[module.name] = declared
    return sets


def discover() -> dict[str, Dataset]:
    """Return name -> declaration of every data set, sorted by name; opens no data and imports no torch."""
    return dict(_found())


def dataset(name: str) -> Dataset:
    """Return the declaration of one data set; raises DataError naming those that exist."""
    sets = _found()
    if name not in sets:
        raise DataError(f"unknown data set {name!r}", remedy=f"known are {', '.join(sets)}")
    return sets[name]


def data_sum(name: str) -> str:
    """Return the sha256 over the declared sums of the set, 64 hex digits; needs no data on disk."""
    return dataset(name).data_sum


def fetch(name: str, root: Root = None, source: str | None = None) -> Path:
    """Fetch a data set unless it is there; return its file of sums. See `fetching.fetch_dataset`."""
    return fetch_dataset(dataset(name), root, source)


def check(name: str, root: Root = None) -> list[str]:
    """Hash every file of the set; return what is wrong, a line for each file; empty when all is right."""
    return list(store.problems(dataset(name), root).values())


def verify(name: str, root: Root = None) -> None:
    """Hash every file of the set; raise DataError when one is missing or has another sum."""
    found = dataset(name)
    store.raise_problems(found, store.problems(found, root), store.folder(name, root))


def state(name: str, root: Root = None) -> State:
    """Return whether the set is missing, present or corrupt (all files hashed), and its bytes on disk."""
    found, place = dataset(name), store.folder(name, root)
    wrong = store.problems(found, root)
    paths = [place / file.path for file in found.files]
    size = sum(path.stat().st_size for path in paths if path.is_file())
    if not wrong:
        return State("present", size)
    absent = all(not (place / path).exists() for path in wrong)
    return State("missing" if absent else "corrupt", size, tuple(wrong.values()))


def rows(root: Root = None) -> list[dict[str, str | int]]:
    """Return a row per data set: name, state, declared size in bytes, licence, first source, summary."""
    return [
        {
            "name": name,
            "state": state(name, root).state,
            "size": found.size,
            "licence": found.licence,
            "source": found.sources[0],
            "summary": found.summary,
        }
        for name, found in _found().items()
    ]

"""Objects of DVC's cache and of directory remotes: each is named by the MD5 of its bytes, so each can be checked.

DVC trusts an object of its cache once it is there; a disk or a careless hand can change it. Results carry a sum of
their own, so a corrupted one is never used here (`restudy restore` names it); this is how the store itself is healed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import yaml

from restudy import layout
from restudy.errors import ConfigError


def corrupted(store: Path) -> Iterator[Path]:
    """Every object of a cache or directory remote whose bytes are not what its name says.

    Raises:
        ConfigError: the folder holds no objects of DVC.
    """
    folder = store / "files" / "md5"
    if not folder.is_dir():
        raise ConfigError("no objects of DVC in it", where=str(store), remedy="name the folder of a cache or remote")
    for path in sorted(folder.glob("[0-9a-f][0-9a-f]/*")):
        name = path.parent.name + path.name.removesuffix(".dir")
        if len(name) == 32 and hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest() != name:
            yield path


def names(store: Path) -> dict[str, str]:
    """Object -> the output that this checkout's dvc.lock files store in it, folders opened where they can be read."""
    found: dict[str, str] = {}
    for lock in (layout.root() / "dvc.lock", *sorted(layout.root().glob("workflow/dvc/*/dvc.lock"))):
        stages = (yaml.safe_load(lock.read_text()) or {}).get("stages", {}) if lock.is_file() else {}
        for out in (out for stage in stages.values() for out in stage.get("outs", [])):
            found[out.get("md5", "")] = out["path"]
            if out.get("md5", "").endswith(".dir"):
                found |= {md5: f"{out['path']}/{name}" for md5, name in _members(store, out["md5"])}
    return found


def _members(store: Path, md5: str) -> list[tuple[str, str]]:
    try:
        listed = json.loads((store / "files" / "md5" / md5[:2] / md5[2:]).read_text())
        return [(entry["md5"], entry["relpath"]) for entry in listed]
    except (OSError, ValueError, KeyError, TypeError):
        return []

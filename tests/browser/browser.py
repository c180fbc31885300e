"""Debian's Chromium, driven by playwright-core; both npm packages are pinned by their sums."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / "work" / "browser"
PACKAGES = {
    "playwright-core": ("1.65.1", "6f5a60be62a4fddfbe7d10c448d8fbd54547da3358f2f8a04211440471ee863e"),
    "axe-core": ("4.14.1", "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745"),
}


def chromium() -> str:
    """The browser's path; the test is skipped, saying so, where there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    pytest.skip("no Chromium here: `apt-get install -y chromium`")


def modules() -> Path:
    """A folder with node_modules/{playwright-core,axe-core}; skipped where node or the registry is out of reach."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("no node and npm here: `apt-get install -y nodejs npm`")
    CACHE.mkdir(parents=True, exist_ok=True)
    with FileLock(CACHE / "lock"):
        for name, (version, digest) in PACKAGES.items():
            if not (CACHE / "node_modules" / name / "package.json").is_file():
                _unpack(_archive(name, version, digest), CACHE / "node_modules" / name)
    return CACHE


def _archive(name: str, version: str, digest: str) -> Path:
    path = CACHE / f"{name}-{version}.tgz"
    if not path.is_file():
        command = ["npm", "pack", "--silent", "--pack-destination", str(CACHE), f"{name}@{version}"]
        done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=180)
        if done.returncode:
            pytest.skip(f"npm cannot fetch {name}: {(done.stderr.splitlines() or ['no reason given'])[-1]}")
    if hashlib.sha256(path.read_bytes()).hexdigest() != digest:
        path.unlink()
        pytest.fail(f"{name}-{version}.tgz has another sum than pinned")
    return path


def _unpack(archive: Path, target: Path) -> None:
    part = target.with_name(f"{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    with tarfile.open(archive) as packed:
        packed.extractall(part, filter="data")
    (part / "package").rename(target)
    part.rmdir()


def peruse(folder: Path, task: dict[str, Any]) -> dict[str, Any]:
    """Have the browser do a task of peruse.mjs; what it saw."""
    given, out = folder / "task.json", folder / "seen.json"
    given.write_text(json.dumps(task | {"chromium": chromium(), "out": str(out)}))
    command = ["node", str(HERE / "peruse.mjs"), str(modules()), str(given)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(out.read_text())
    return found

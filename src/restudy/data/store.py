"""Where data sets lie on disk, and whether what lies there is what was declared."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from restudy.data.dataset import Dataset, File
from restudy.errors import DataError

MARKER = "SHA256SUMS"
_BLOCK = 1 << 20
_verified: dict[tuple[str, str], tuple[int, int, int]] = {}


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of all data sets: `root`, else $RESTUDY_DATA, else data/raw of the project."""
    given = root or os.environ.get("RESTUDY_DATA")
    return Path(given).expanduser().absolute() if given else project_root() / "data" / "raw"


def project_root() -> Path:
    """Return $RESTUDY_ROOT, else the nearest folder upwards that holds a Snakefile, else this checkout.

    The rule of `restudy.layout.root`, said again here: studies read data through this module, and an edit of
    where results lie must not change their fingerprints.
    """
    if named := os.environ.get("RESTUDY_ROOT"):
        return Path(named).resolve()
    here = Path.cwd()
    checkout = Path(__file__).resolve().parents[3]
    return next((path for path in (here, *here.parents) if (path / "Snakefile").is_file()), checkout)


def folder(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of the data set `name`, whether it exists or not."""
    return data_root(root) / name


def marker(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    """Return the file that a fetch writes last: output of the fetch rule, readable by `sha256sum -c`."""
    return folder(name, root) / MARKER


def sha256(path: Path) -> str:
    """Return the sha256 of a file's bytes as 64 hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while block := handle.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def problem(file: File, path: Path) -> str:
    """Return what is wrong with the bytes at `path` taken as `file`, or an empty string."""
    if not path.is_file():
        return f"{file.path} is missing" if not path.exists() else f"{file.path} is not a regular file"
    size = path.stat().st_size
    if size != file.size:
        return f"{file.path} has {size} bytes, {file.size} expected"
    found = sha256(path)
    return "" if found == file.sha256 else f"{file.path} has sha256 {found}, {file.sha256} expected"


def problems(dataset: Dataset, root: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Hash every file of the set; return what is wrong, by path; empty when all is right."""
    place = folder(dataset.name, root)
    try:
        found = {file.path: problem(file, place / file.path) for file in dataset.files}
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror})",
            where=f"data set {dataset.name} in {place}",
            remedy="mend its permissions or set RESTUDY_DATA to a readable folder",
        ) from error
    return {path: what for path, what in found.items() if what}


def verified(dataset: Dataset, root: str | os.PathLike[str] | None = None) -> dict[str, Path]:
    """Return path -> file on disk for every declared file, after checking the sums once per process.

    A file whose size, modification time or inode changed since is hashed again. Raises DataError, which names
    the command to type, when a file is missing or has another sum.
    """
    place = folder(dataset.name, root)
    paths = {file.path: place / file.path for file in dataset.files}
    stamps = {name: _stamp(path) for name, path in paths.items()}
    sums = {file.path: file.sha256 for file in dataset.files}
    if not all(stamp and _verified.get((str(paths[name]), sums[name])) == stamp for name, stamp in stamps.items()):
        raise_problems(dataset, problems(dataset, root), place)
        _verified.update({(str(paths[name]), sums[name]): stamp for name, stamp in stamps.items() if stamp})
    return paths


def raise_problems(dataset: Dataset, found: dict[str, str], place: Path) -> None:
    """Raise the DataError for what `problems` returned; do nothing when it is empty."""
    if not found:
        return
    missing = all(what.endswith(" is missing") for what in found.values())
    raise DataError(
        "; ".join(found.values()) if len(found) < 4 else f"{next(iter(found.values()))} and {len(found) - 1} more",
        where=f"data set {dataset.name} in {place}",
        remedy=f"{'get' if missing else 'replace'} it with `restudy data fetch {dataset.name}`",
    )


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino

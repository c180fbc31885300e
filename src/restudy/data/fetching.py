"""Fetch a data set: ask its sources in order, verify every sum, and only then put the files in place.

A fetch works in a folder of its own beside the data sets (same file system), renames verified files into
place one by one and writes the file of sums last. Killed at any moment it leaves complete verified files or
none, and no file of sums; the next fetch sweeps what it left behind and asks only for what is missing. A
lock per data set keeps two fetches apart.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock

from restudy.data.archives import take
from restudy.data.dataset import Dataset, File
from restudy.data.sources import obtain, one_line
from restudy.data.store import data_root, folder, marker, problems
from restudy.errors import DataError

log = logging.getLogger("restudy.data")


def fetch_dataset(dataset: Dataset, root: str | os.PathLike[str] | None = None, source: str | None = None) -> Path:
    """Bring the data set into its folder, if it is not there already; return the file of sums, written last.

    `source` limits the search to one source string; else $RESTUDY_DATA_<NAME> (a file or folder), when set,
    is the only one; else the declared ones are tried in order, each for the files still missing. Raises
    DataError, one line, when none works, a sum is wrong, the disk is full or the folder cannot be written.
    """
    place, sums, work = folder(dataset.name, root), marker(dataset.name, root), data_root(root) / ".fetch"
    with _disk(dataset, place):
        if _done(dataset, root) and not any(work.glob(f"{dataset.name}-*")):
            return sums  # before anything is written: the folder may be another's, read-only
        work.mkdir(parents=True, exist_ok=True)
        place.mkdir(exist_ok=True)
        with FileLock(work / f"{dataset.name}.lock"):
            _sweep(work, dataset.name)
            if _done(dataset, root):  # by a fetch that we waited for
                return sums
            wrong = problems(dataset, root)
            with tempfile.TemporaryDirectory(
                prefix=f"{dataset.name}-", dir=work, ignore_cleanup_errors=True
            ) as scratch:
                if wrong:
                    sums.unlink(missing_ok=True)
                    wanted = [file for file in dataset.files if file.path in wrong]
                    _gather(dataset, wanted, place, Path(scratch), source)
                (Path(scratch) / sums.name).write_text(dataset.sums_text)
                _place(Path(scratch) / sums.name, sums)
    return sums


def _done(dataset: Dataset, root: str | os.PathLike[str] | None) -> bool:
    sums = marker(dataset.name, root)
    return sums.is_file() and sums.read_text() == dataset.sums_text and not problems(dataset, root)


def _gather(dataset: Dataset, wanted: list[File], place: Path, scratch: Path, source: str | None) -> None:
    given = os.environ.get(f"RESTUDY_DATA_{dataset.name.upper()}")
    sources = (source,) if source else (f"file:{given}",) if given else dataset.sources
    tried: list[str] = []
    verified = scratch / "verified"
    for number, one in enumerate(sources):
        workspace = scratch / str(number)
        workspace.mkdir()
        log.info("%s: asking %s", dataset.name, one)
        try:
            found = take(obtain(one, wanted, workspace), wanted, verified)
        except DataError as error:
            _stop_if_full(error)
            tried.append(f"{one} ({error})")
            continue
        for file in found:
            _place(verified / file.path, place / file.path)
        wanted = [file for file in wanted if file not in found]
        if not wanted:
            return
        tried.append(f"{one} (does not hold {', '.join(file.path for file in wanted)})")
    names = ", ".join(file.path for file in wanted)
    raise DataError(
        f"no source gave {names}: tried {', '.join(one_line(words, 400) for words in tried)}",
        where=f"data set {dataset.name}",
        remedy=f"put {names} by hand into {place}, or type `restudy data fetch {dataset.name} --from PATH` "
        f"with the package or a folder that holds them ({dataset.homepage})",
    )


def _place(verified: Path, target: Path) -> None:
    """Move verified bytes to their name, on disk before the name is."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with verified.open("rb") as handle:
        os.fsync(handle.fileno())
    verified.replace(target)
    _sync_folder(target.parent)


def _sync_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sweep(work: Path, name: str) -> None:
    """Remove what killed fetches of this set left; the lock is held, so none of it is in use."""
    for leftover in work.glob(f"{name}-*"):
        shutil.rmtree(leftover, ignore_errors=True)


_FULL = (errno.ENOSPC, errno.EDQUOT)
_FULL_WORDS = ("No space left", "enough free space", "ENOSPC", "quota exceeded")


def _stop_if_full(error: DataError) -> None:
    if any(words in str(error) for words in _FULL_WORDS):
        raise OSError(errno.ENOSPC, "No space left on device")


@contextlib.contextmanager
def _disk(dataset: Dataset, place: Path) -> Iterator[None]:
    """Turn errors of the file system into one line."""
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        raise DataError(
            "the disk is full" if full else f"the folder cannot be used ({error.strerror or error})",
            where=f"data set {dataset.name} in {place}",
            remedy=f"{'free about ' + str(3 * dataset.size // 1_000_000 + 1) + ' MB' if full else 'mend it'} "
            "or set RESTUDY_DATA to another folder, then fetch again; nothing half-written was kept",
        ) from error

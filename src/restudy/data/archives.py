"""Take the declared files, and nothing else, out of what a source delivered.

Nothing is written under a name that an archive chose: a member's bytes are copied into a file named by the
data set, at most one byte more than declared. So no archive writes outside the folder or fills the disk.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import lzma
import shutil
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from restudy.data.dataset import File
from restudy.data.store import problem
from restudy.errors import DataError

# What readers raise on damaged bytes; the last two are zipfile's, for unknown methods and encrypted members.
_DAMAGE = (
    *(zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError),
    *(NotImplementedError, RuntimeError),
)

Member = tuple[str, IO[bytes] | None]
"""Name of a member and its bytes; None for what is no regular file."""
Members = Generator[Member, None, None]


def take(delivered: Path, wanted: Sequence[File], into: Path) -> list[File]:
    """Copy the files of `wanted` found in `delivered` into the folder `into`; return those that were found.

    `delivered` is a folder, an archive (.deb, wheel or other zip, tar in any compression), or one of the
    files itself, plain or gzipped. What is copied has its declared size and sum. Raises DataError when the
    archive is damaged, or when it holds a declared file only as a link, under an unsafe path or with bytes
    that are not the declared ones.
    """
    if delivered.is_dir():
        members = _folder(delivered)
    elif single := next((file for file in wanted if matches(delivered.name, file.name)), None):
        members = _single(delivered, single)
    elif delivered.suffix == ".deb":
        members = _deb(delivered)
    elif zipfile.is_zipfile(delivered):
        members = _zip(delivered)
    else:
        members = _tar(delivered)
    try:
        with contextlib.closing(members):
            return _copy(members, wanted, into)
    except _DAMAGE as error:
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise DataError(f"{delivered.name} is damaged or truncated: {why}") from error


def _copy(members: Iterator[Member], wanted: Sequence[File], into: Path) -> list[File]:
    found: dict[str, File] = {}
    wrong: dict[str, str] = {}
    for name, stream in members:
        file = next((file for file in wanted if file.path not in found and matches(name, file.path)), None)
        if file is None:
            continue
        if what := _unsafe(name, stream) or _copy_one(name, stream, file, into / file.path):
            wrong.setdefault(file.path, what)
            continue
        found[file.path] = file
        if len(found) == len(wanted):
            break
    if bad := [what for path, what in wrong.items() if path not in found]:
        raise DataError("; ".join(bad[:3]))
    return list(found.values())


def matches(name: str, path: str) -> bool:
    """Return whether a member's name ends in the declared path, or in the path with .gz after it."""
    wanted = PurePosixPath(path).parts
    tail = PurePosixPath(name).parts[-len(wanted) :]
    return tail in (wanted, (*wanted[:-1], f"{wanted[-1]}.gz"))


def _unsafe(name: str, stream: IO[bytes] | None) -> str:
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        return f"member {name} has an unsafe path"
    return "" if stream is not None else f"member {name} is a link or another special file"


def _copy_one(name: str, stream: IO[bytes] | None, file: File, target: Path) -> str:
    """Copy one member to `target`; return what is wrong with the bytes, after removing them, or nothing."""
    assert stream is not None
    target.parent.mkdir(parents=True, exist_ok=True)
    packed = name.endswith(".gz") and not file.name.endswith(".gz")
    left = file.size + 1
    what = "not finished"
    try:
        with stream, target.open("wb") as out:
            source = gzip.GzipFile(fileobj=stream) if packed else stream
            while left > 0 and (block := source.read(min(left, 1 << 20))):
                out.write(block)
                left -= len(block)
        what = problem(file, target) if left else f"{file.path} is longer than the {file.size} bytes declared"
    finally:
        if what:
            target.unlink(missing_ok=True)
    return what


def _folder(path: Path) -> Members:
    for member in sorted(path.rglob("*")):
        if member.is_file():
            yield member.relative_to(path).as_posix(), member.open("rb")


def _single(path: Path, file: File) -> Members:
    yield file.path + (".gz" if path.name != file.name else ""), path.open("rb")


def _zip(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = info.external_attr >> 28  # type bits of the Unix mode: 8 a regular file, 0 not recorded
            if not info.is_dir():
                yield info.filename, archive.open(info) if kind in (0, 8) else None


def _tar(path: Path) -> Members:
    with tarfile.open(path, "r:*") as archive:
        yield from _tar_members(archive)


def _tar_members(archive: tarfile.TarFile) -> Members:
    for info in archive:
        if not info.isdir():
            yield info.name, archive.extractfile(info) if info.isreg() else None


def _deb(path: Path) -> Members:
    """Read a Debian package by dpkg-deb where there is one, else by ourselves (then zstd is beyond us)."""
    if tool := shutil.which("dpkg-deb"):
        command = [tool, "--fsys-tarfile", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            try:
                with tarfile.open(fileobj=process.stdout, mode="r|") as archive:
                    yield from _tar_members(archive)
            finally:
                process.kill()
    else:
        with tarfile.open(fileobj=io.BytesIO(_ar_data(path)), mode="r:*") as archive:
            yield from _tar_members(archive)


def _ar_data(path: Path) -> bytes:
    """Return data.tar.* of an `ar` archive: a magic, then 60-byte headers before even-sized contents."""
    raw = path.read_bytes()
    at = 8
    while raw.startswith(b"!<arch>\n") and at + 60 <= len(raw):
        name, size = raw[at : at + 16].decode("ascii", "replace"), raw[at + 48 : at + 58].strip()
        if not size.isdigit():
            break
        if name.startswith("data.tar"):
            return raw[at + 60 : at + 60 + int(size)]
        at += 60 + int(size) + int(size) % 2
    raise tarfile.ReadError("no Debian package")

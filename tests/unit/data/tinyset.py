"""A tiny data set, and every kind of package that can hold it."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
import zipfile
from pathlib import Path

from restudy.data.dataset import Dataset, File

CONTENT = {"digits.bin": bytes(range(256)) * 40, "names/labels.txt": b"zero\none\n" * 50}


def declare(content: dict[str, bytes] = CONTENT, sources: tuple[str, ...] = ("deb:tiny=1",)) -> Dataset:
    files = tuple(File(name, hashlib.sha256(raw).hexdigest(), len(raw)) for name, raw in content.items())
    return Dataset(
        name="tiny",
        summary="made up",
        files=files,
        sources=sources,
        licence="CC0",
        citation="nobody",
        homepage="https://example.org/tiny",
        comparable_note="not comparable with anything",
    )


def write_zip(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, raw in members.items():
            archive.writestr(name, raw)
    return path


def write_tar(path: Path, members: dict[str, bytes], mode: str = "w:gz") -> Path:
    path.write_bytes(tar_bytes(members, mode))
    return path


def tar_bytes(members: dict[str, bytes], mode: str = "w:xz") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, raw in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return buffer.getvalue()


def write_deb(path: Path, members: dict[str, bytes]) -> Path:
    control = tar_bytes({"./control": b"Package: tiny\nVersion: 1\nArchitecture: all\n"}, "w:gz")
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": control,
        "data.tar.xz": tar_bytes({f"./{name}": raw for name, raw in members.items()}),
    }
    raw = b"!<arch>\n"
    for name, part in parts.items():
        raw += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(part):<10}`\n".encode() + part + b"\n" * (len(part) % 2)
    path.write_bytes(raw)
    return path


def packed(prefix: str = "usr/share/tiny/") -> dict[str, bytes]:
    """The content as a package holds it: one file gzipped, and files that nobody declared."""
    return {
        "README": b"not declared",
        f"{prefix}digits.bin.gz": gzip.compress(CONTENT["digits.bin"]),
        f"{prefix}names/labels.txt": CONTENT["names/labels.txt"],
        f"{prefix}other.bin": b"not declared",
    }

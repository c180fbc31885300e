from __future__ import annotations

import gzip
import os
import shutil
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.unit.data.tinyset import CONTENT, declare, packed, write_deb, write_tar, write_zip

from restudy.data.archives import take
from restudy.errors import DataError

WANTED = declare().files
KINDS = ["folder", "zip", "tar", "deb"]


def package(kind: str, folder: Path, members: dict[str, bytes]) -> Path:
    if kind == "zip":
        return write_zip(folder / "tiny.whl", members)
    if kind == "tar":
        return write_tar(folder / "tiny.tgz", members)
    if kind == "deb":
        return write_deb(folder / "tiny.deb", members)
    for name, raw in members.items():
        (folder / "unpacked" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "unpacked" / name).write_bytes(raw)
    return folder / "unpacked"


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


@pytest.mark.parametrize("kind", KINDS)
def test_takes_the_declared_files_and_no_others(kind: str, tmp_path: Path) -> None:
    found = take(package(kind, tmp_path, packed()), WANTED, tmp_path / "out")
    assert set(found) == set(WANTED)
    assert listing(tmp_path / "out") == set(CONTENT)
    assert {name: (tmp_path / "out" / name).read_bytes() for name in CONTENT} == CONTENT


def test_reads_a_deb_without_dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert len(take(write_deb(tmp_path / "tiny.deb", packed()), WANTED, tmp_path / "out")) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_member_missing_is_not_found(kind: str, tmp_path: Path) -> None:
    members = {name: raw for name, raw in packed().items() if "digits" not in name}
    found = take(package(kind, tmp_path, members), WANTED, tmp_path / "out")
    assert [file.path for file in found] == ["names/labels.txt"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", ["bit", "short", "long"])
def test_other_bytes_are_refused(kind: str, change: str, tmp_path: Path) -> None:
    raw = CONTENT["names/labels.txt"]
    other = {"bit": b"Z" + raw[1:], "short": raw[:-1], "long": raw * 1000}[change]
    members = packed() | {"usr/share/tiny/names/labels.txt": other}
    with pytest.raises(DataError, match="sha256|bytes"):
        take(package(kind, tmp_path, members), WANTED, tmp_path / "out")
    assert "names/labels.txt" not in listing(tmp_path / "out")


def test_a_same_named_member_elsewhere_does_not_hide_the_right_one(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "a.whl", {"doc/digits.bin": b"an example"} | packed())
    assert len(take(path, WANTED, tmp_path / "out")) == 2


@pytest.mark.parametrize("kind", ["zip", "tar", "deb"])
@pytest.mark.parametrize("left", [0.0, 0.02, 0.5, 0.95])
def test_truncated_archives_are_refused(kind: str, left: float, tmp_path: Path) -> None:
    noise = {"pad.bin": os.urandom(20_000), "usr/digits.bin": CONTENT["digits.bin"], "pad2.bin": os.urandom(20_000)}
    path = package(kind, tmp_path, noise)
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * left)])
    try:
        found = take(path, WANTED, tmp_path / "out")
    except DataError as error:
        assert "damaged or truncated" in str(error)
        assert "\n" not in str(error)
        found = []
    out = listing(tmp_path / "out")
    assert {file.path for file in found} <= out
    assert all((tmp_path / "out" / name).read_bytes() == CONTENT[name] for name in out)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("prefix", ["../", "../../", "usr/../../", "/tmp/"])
def test_unsafe_paths_are_refused_and_write_nowhere(kind: str, prefix: str, tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    members = packed(prefix) | {f"{prefix}evil.txt": b"evil"}
    path = package(kind, inner, members)
    with pytest.raises(DataError, match="unsafe path"):
        take(path, WANTED, inner / "out")
    assert listing(tmp_path) == {f"a/b/{path.name}"}


def test_undeclared_traversal_is_never_written(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    path = write_tar(inner / "tiny.tgz", {"../../evil.txt": b"evil"} | packed())
    take(path, WANTED, inner / "out")
    assert listing(tmp_path) == {"a/b/tiny.tgz", *(f"a/b/out/{name}" for name in CONTENT)}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_links_and_devices_in_a_tar_are_refused(kind: bytes, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(CONTENT["digits.bin"])
    with tarfile.open(tmp_path / "tiny.tgz", "w:gz") as archive:
        info = tarfile.TarInfo("usr/digits.bin")
        info.type, info.linkname = kind, str(secret)
        archive.addfile(info)
    with pytest.raises(DataError, match="link or another special file"):
        take(tmp_path / "tiny.tgz", WANTED, tmp_path / "out")
    assert listing(tmp_path) == {"secret", "tiny.tgz"}


def test_a_symlink_in_a_zip_is_refused(tmp_path: Path) -> None:
    info = zipfile.ZipInfo("usr/digits.bin")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "tiny.whl", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match="link or another special file"):
        take(tmp_path / "tiny.whl", WANTED, tmp_path / "out")


def test_a_gzip_bomb_is_cut_at_the_declared_size(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "tiny.whl", {"digits.bin.gz": gzip.compress(bytes(50_000_000))})
    with pytest.raises(DataError, match="longer than the 10240 bytes"):
        take(path, WANTED, tmp_path / "out")
    assert listing(tmp_path / "out") == set()


@pytest.mark.parametrize("name", ["digits.bin", "labels.txt"])
def test_a_single_file_is_taken_as_it_is(name: str, tmp_path: Path) -> None:
    full = next(path for path in CONTENT if path.endswith(name))
    (tmp_path / name).write_bytes(CONTENT[full])
    assert [file.path for file in take(tmp_path / name, WANTED, tmp_path / "out")] == [full]


def test_what_is_no_archive_is_named(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("<html>not found</html>")
    with pytest.raises(DataError, match="page.html is damaged or truncated"):
        take(tmp_path / "page.html", WANTED, tmp_path / "out")

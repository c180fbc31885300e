from __future__ import annotations

import importlib.util
import io
import os
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from tests.unit.data.tinyset import CONTENT, declare, packed, write_deb, write_tar

from restudy.data import sources
from restudy.data.archives import take
from restudy.data.dataset import File
from restudy.data.sources import obtain
from restudy.errors import DataError

WANTED = declare().files


def client(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:{os.environ['PATH']}")
    (folder / "work").mkdir(exist_ok=True)
    return folder / "work"


def test_apt_renews_its_lists_once_as_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deb = write_deb(tmp_path / "tiny_1_all.deb", packed())
    script = f'echo "$@" >> {tmp_path}/log\n[ $1 = update ] && touch {tmp_path}/lists && exit 0\n'
    script += f'[ -e {tmp_path}/lists ] || {{ echo "E: Unable to locate package tiny" >&2; exit 100; }}\ncp {deb} .\n'
    work = client(tmp_path, "apt-get", script, monkeypatch)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(DataError, match="E: Unable to locate package tiny"):
        obtain("deb:tiny=1", WANTED, work)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert len(take(obtain("deb:tiny=1", WANTED, work), WANTED, tmp_path / "out")) == 2
    assert (tmp_path / "log").read_text().split("\n")[1:4] == ["download tiny=1", "update", "download tiny=1"]


def test_npm_packs_without_running_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tgz = write_tar(tmp_path / "tiny-1.tgz", packed("package/"))
    work = client(tmp_path, "npm", f'echo "$@" > {tmp_path}/log; cp {tgz} .', monkeypatch)
    assert len(take(obtain("npm:@some/tiny@1", WANTED, work), WANTED, tmp_path / "out")) == 2
    assert (tmp_path / "log").read_text() == "pack @some/tiny@1 --ignore-scripts --loglevel=error\n"


def test_pip_of_the_path_stands_in_where_the_environment_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = client(tmp_path, "pip", 'echo "ERROR: no matching distribution" >&2; exit 1', monkeypatch)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DataError, match="ERROR: no matching distribution"):
        obtain("pip:tiny==1", WANTED, work)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="no pip on this machine"):
        obtain("pip:tiny==1", WANTED, work)


@pytest.mark.parametrize("source", ["deb:tiny=1", "npm:tiny@1"])
def test_absent_clients_are_named(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DataError, match="no (apt-get|npm) on this machine"):
        obtain(source, WANTED, tmp_path)


@pytest.mark.parametrize("source", ["", "deb", "deb:", "pip:--index-url=x", "ftp:x", "tiny==1"])
def test_odd_sources_are_refused(source: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no source of a known kind"):
        obtain(source, WANTED, tmp_path)


def test_words_of_a_source_never_reach_a_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = client(tmp_path, "npm", f'printf "%s" "$2" > {tmp_path}/log; exit 1', monkeypatch)
    with pytest.raises(DataError, match="npm ended with code 1"):
        obtain(f"npm:a; touch {tmp_path}/pwned", WANTED, work)
    assert (tmp_path / "log").read_text() == f"a; touch {tmp_path}/pwned"
    assert not (tmp_path / "pwned").exists()


def test_a_client_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = client(tmp_path, "npm", "exec sleep 60", monkeypatch)
    monkeypatch.setattr(sources, "TIMEOUT_SECONDS", 0.3)
    with pytest.raises(DataError, match="no answer within 0.3 s"):
        obtain("npm:tiny@1", WANTED, work)


def test_an_installed_package_must_have_the_version(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"numpy .* is installed, 0.0.1 needed"):
        obtain("installed:numpy==0.0.1", WANTED, tmp_path)


def test_an_installed_package_gives_its_files(tmp_path: Path) -> None:
    import hashlib
    from importlib.metadata import version

    import numpy

    raw = (Path(numpy.__file__).parent / "version.py").read_bytes()
    wanted = [File("numpy/version.py", hashlib.sha256(raw).hexdigest(), len(raw))]
    folder = obtain(f"installed:numpy=={version('numpy')}", wanted, tmp_path)
    assert take(folder, wanted, tmp_path / "out") == wanted


def test_addresses_are_read_plain_or_gzipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served = {f"https://example.org/d/{name.removeprefix('x/')}": raw for name, raw in packed("x/").items()}

    def urlopen(address: str, timeout: float) -> io.BytesIO:
        if address not in served:
            raise urllib.error.HTTPError(address, 404, "Not Found", None, None)  # type: ignore[arg-type]
        return io.BytesIO(served[address])

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    folder = obtain("url:https://example.org/d/", WANTED, tmp_path)
    found = take(folder, WANTED, tmp_path / "out")
    assert {file.path for file in found} == set(CONTENT)
    with pytest.raises(DataError, match="404"):
        obtain("url:https://example.org/nothing.zip", WANTED, tmp_path)
    with pytest.raises(DataError, match="only https"):
        obtain("url:http://example.org/d/", WANTED, tmp_path)

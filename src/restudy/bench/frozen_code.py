"""Find the source tree whose statistics an entry of claims.lock froze, in the history of the repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from restudy import layout
from restudy.bench.numbers import code_hash
from restudy.claims.lock import Entry
from restudy.errors import ConfigError


@contextmanager
def frozen_source(slug: str, entry: Entry, against: str | None) -> Iterator[Path]:
    """Unpack the tree whose statistics have the entry's code hash; yields the folder that holds `restudy`.

    Args:
        slug: the study.
        entry: the freeze.
        against: a git revision; without one, the commits that touched the study's claims.lock, newest first.

    Raises:
        ConfigError: no repository, an unknown revision, or none of them holds the code that was frozen.
    """
    lock = f"{slug}/claims.lock"
    asked = [against] if against else _git("log", "--format=%H", "--", str(layout.STUDIES / lock)).decode().split()
    for revision in asked:
        with TemporaryDirectory(prefix="restudy-frozen-") as folder:
            source = _unpack(revision, Path(folder))
            if _hash(source, slug) == entry.code:
                yield source
                return
    what = against or f"no commit that touched {lock}"
    raise ConfigError(
        f"{what} {'does not hold' if against else 'holds'} the statistics frozen as {entry.id}",
        where=lock,
        remedy="name the commit whose code was frozen with --against REV",
    )


def _hash(source: Path, slug: str) -> str:
    try:
        return code_hash(source, slug)
    except subprocess.CalledProcessError:
        return ""  # the study did not exist there, or could not be imported


def _unpack(revision: str, target: Path) -> Path:
    top = Path(_git("rev-parse", "--show-toplevel").decode().strip())
    source = layout.PACKAGE.parent.resolve().relative_to(top.resolve())
    content = _git("archive", revision, "--", source.as_posix(), folder=top)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(target, filter="data")
    return target / source


def _git(*arguments: str, folder: Path | None = None) -> bytes:
    try:
        return subprocess.run(["git", *arguments], cwd=folder or layout.PACKAGE, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise ConfigError("git is not installed", where="freeze", remedy="install git") from None
    except subprocess.CalledProcessError as error:
        said = (error.stderr.decode(errors="replace").splitlines() or ["failed"])[0]
        raise ConfigError(
            f"git {arguments[0]}: {said}", where="freeze", remedy="name a commit of this repository with --against REV"
        ) from None

"""What `dvc repro` would lose: it deletes a stage's outputs before it runs the stage, committed or not.

So the first stage of dvc.yaml, which always runs, gives every output a second name under work/kept (a hard link: no
bytes are copied), and each stage first brings back what is still current. A killed `dvc repro` goes on where it was,
and one more seed costs one more seed.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from restudy import layout
from restudy.bench.outputs import node_of
from restudy.errors import ResultError
from restudy.provenance.fingerprint import fingerprint
from restudy.provenance.stamp import verify


def keep(paths: Iterable[Path]) -> int:
    """Give the outputs that exist a second name under work/kept; how many there were.

    Args:
        paths: outputs, relative to the project's root.
    """
    count = 0
    for path in paths:
        full = layout.root() / path
        if full.is_file():
            count += 1
            for file in (full, layout.run_json(full)):
                if file.is_file():
                    _link(file, _kept(file))
    return count


def bring_back(paths: Iterable[Path]) -> int:
    """Put kept outputs that are missing and still current back in their place; forget the others.

    Args:
        paths: outputs, relative to the project's root.

    Returns:
        how many came back.
    """
    count = 0
    for path in paths:
        full, kept = layout.root() / path, _kept(layout.root() / path)
        if not kept.is_file():
            continue
        if not full.is_file() and verify(kept, fingerprint(node_of(path))) is None:
            count += 1
            for file in (full, layout.run_json(full)):
                if _kept(file).is_file():
                    _link(_kept(file), file)
        for file in (kept, layout.run_json(kept)):
            file.unlink(missing_ok=True)
    return count


def _kept(file: Path) -> Path:
    return layout.work("kept", *file.relative_to(layout.root()).parts)


def _link(source: Path, target: Path) -> None:
    """A second name, atomically; a copy where the file system knows no hard links."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copy2(source, temporary)
        temporary.replace(target)
        temporary.unlink(missing_ok=True)  # renaming a name onto another of the same file leaves both
    except OSError as error:
        raise ResultError(f"cannot be kept ({error.strerror})", where=str(target), remedy="check the disk") from None

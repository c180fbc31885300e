"""A copy of a preset's site that stands alone: pages, figures and tables in one folder or zip file."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from dataclasses import replace
from html import escape
from pathlib import Path
from urllib.parse import quote

from restudy import layout
from restudy.errors import ConfigError
from restudy.report import index, load

_EPOCH = (1980, 1, 1, 0, 0, 0)


def bundle(preset: str, destination: str | Path) -> Path:
    """Copy the site of a preset to a new folder, or to a zip file where the name ends in `.zip`.

    Raises:
        ConfigError: there is no site yet, or the destination is a folder with something in it.
    """
    site, target = layout.report(preset), Path(destination)
    if not (site / "index.html").is_file():
        raise ConfigError("no report yet", where=layout.relative(site), remedy=f"run `make report PRESET={preset}`")
    if target.is_dir() and any(target.iterdir()):
        raise ConfigError("not empty", where=str(target), remedy="name a new folder, or a file ending in .zip")
    files = _files(preset)
    if target.suffix == ".zip":
        _write_zip(target, files)
    else:
        for name, content in files.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                shutil.copyfile(content, path)
    return target


def _files(preset: str) -> dict[str, Path | bytes]:
    """Name in the copy -> the file or its content: the site, its figures and the merged tables."""
    root = layout.root()
    wanted = [*layout.report(preset).rglob("*"), *(root / "figures" / preset).rglob("*")]
    wanted += (root / "results" / preset).glob("*/*.parquet")
    kept = [p for p in wanted if p.is_file() and not p.name.startswith(".") and not p.name.endswith(".run.json")]
    files: dict[str, Path | bytes] = {layout.relative(p): p for p in sorted(kept)}
    start = f"report/{preset}/index.html"
    files[start] = index.html(replace(load.index(preset), others=()))
    files["index.html"] = (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>restudy: {escape(preset)}</title>'
        f'<meta http-equiv="refresh" content="0; url={quote(start)}"></head>'
        f'<body><p><a href="{quote(start)}">Report</a></p></body></html>\n'
    ).encode()
    return files


def _write_zip(target: Path, files: dict[str, Path | bytes]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".part", delete=False) as part:
        temporary = Path(part.name)
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in files.items():
                data = content if isinstance(content, bytes) else content.read_bytes()
                archive.writestr(zipfile.ZipInfo(name, _EPOCH), data, zipfile.ZIP_DEFLATED)
        temporary.chmod(0o644)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)

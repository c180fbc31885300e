"""Where things stand: the project's folders, and the path of every kind of output."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from restudy.errors import ConfigError

PACKAGE = Path(__file__).resolve().parent
STUDIES = PACKAGE / "studies"
FIGURE_FORMATS = ("svg", "png", "pdf")


@cache
def root() -> Path:
    """The project's root: `RESTUDY_ROOT`, or the nearest folder upwards that holds a Snakefile.

    Raises:
        ConfigError: when the working directory is not inside a checkout.
    """
    if named := os.environ.get("RESTUDY_ROOT"):
        return Path(named).resolve()
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "Snakefile").is_file():
            return folder
    raise ConfigError("no Snakefile here or above", where=str(here), remedy="change into the checkout of restudy")


def work(*parts: str) -> Path:
    """A path under `work/`: checkpoints, locks, logs and benchmarks of this clone."""
    return root().joinpath("work", *parts)


def results(preset: str, study: str) -> Path:
    """The folder of a study's Parquet tables at a preset."""
    return root() / "results" / preset / study


def models(preset: str, study: str) -> Path:
    """The folder of a study's trained models (safetensors) at a preset."""
    return root() / "models" / preset / study


def figures(preset: str, study: str) -> Path:
    """The folder of a study's figures at a preset."""
    return root() / "figures" / preset / study


def report(preset: str) -> Path:
    """The folder of the static site of a preset."""
    return root() / "report" / preset


def run_json(output: Path) -> Path:
    """The `.run.json` beside an output: the facts that vary from run to run; formats of one figure share it."""
    return output.with_suffix(".run.json")


def relative(path: Path) -> str:
    """The path as Snakemake and people see it, relative to the project's root where it lies inside."""
    try:
        return path.resolve().relative_to(root()).as_posix()
    except ValueError:
        return str(path)

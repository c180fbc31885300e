"""`restudy new`: a study folder that already passes the contract suite."""

from __future__ import annotations

from pathlib import Path

from restudy import layout
from restudy.catalog.study import RESERVED_SLUGS, SLUG
from restudy.errors import ConfigError

PLACEHOLDER = "my_study"


def new(slug: str) -> Path:
    """Write the folder of a new study, and its example where the project has tests; nobody edits a registry.

    Raises:
        ConfigError: not a usable slug, or the folder exists.
    """
    if not SLUG.fullmatch(slug) or slug in RESERVED_SLUGS:
        raise ConfigError(
            f"{slug!r} cannot be a slug", where="restudy new", remedy="use lower_snake_case, no rule's name"
        )
    folder = layout.STUDIES / slug
    if folder.exists():
        raise ConfigError("the folder exists", where=layout.relative(folder), remedy="choose another slug")
    folder.mkdir(parents=True)
    for source in sorted((layout.PACKAGE / "scaffold").iterdir()):
        if source.is_file():
            (folder / source.name).write_text(source.read_text().replace(PLACEHOLDER, slug))
    examples = layout.root() / "tests" / "examples"
    if examples.is_dir():
        example = layout.PACKAGE / "scaffold" / "tests" / "example.txt"
        (examples / f"{slug}.py").write_text(example.read_text().replace(PLACEHOLDER, slug))
    return folder

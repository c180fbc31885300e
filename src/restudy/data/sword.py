"""Reading the verses of a Bible module of the SWORD project; the data sets that are such modules share it."""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any

from restudy.data.dataset import Dataset
from restudy.data.store import folder, verified
from restudy.errors import ConfigError, DataError

Verses = dict[tuple[str, int, int], str]
"""(book, chapter, verse) -> text, in the order of the books; books by their English names, numbers from 1."""

_LEFT_OVER = re.compile(
    r"¶|\\nd\b"
)  # paragraph signs, and a mark of another format in 27 verses of the King James Version
# Words that a translator added often touch both neighbours in the markup alone. A Spanish pronoun behind its verb is
# written together with it (`pagar` and `la`), unless it touches the next word too.
_ADDED = re.compile(
    r"(?<=\w)((?:<[^>]*>)*<transChange[^>]*>)(?!(?:l[aeo]s?|me|te|se|nos|os)</transChange>(?![<\w]))(?=\w)"
)
_ADDED_END = re.compile(r"(?<=\w)(</transChange>(?:<[^>]*>)*)(?=\w)")
_BEFORE_POINT = re.compile(r"\s+(?=[,.;:?!)”])")


def verses(dataset: Dataset, root: str | os.PathLike[str] | None = None) -> Verses:
    """Read every verse of a data set that is one SWORD module with OSIS markup; empty verses are left out.

    Markup, notes, paragraph signs and headings go; what stands on both sides of a note or beside a word that the
    translator added is kept apart, where pysword alone would join two words ("Godcreated", "mujerde").

    Raises:
        DataError: a file is absent or altered, or the files are not one module.
        ConfigError: pysword, of the optional group `text`, is not installed.
    """
    verified(dataset, root)
    bible, cleaner = _bible(dataset, root)
    found: Verses = {}
    for books in bible.get_structure().get_books().values():
        for book in books:
            for chapter, count in enumerate(book.chapter_lengths, 1):
                for verse in range(1, count + 1):
                    raw = bible.get(books=[book.name], chapters=[chapter], verses=[verse], clean=False)
                    if text := plain(raw, cleaner):
                        found[book.name, chapter, verse] = text
    return found


def plain(raw: str, cleaner: Any) -> str:
    """The text of one verse without its OSIS markup, by pysword's cleaner; single spaces, none at the ends."""
    apart = _ADDED_END.sub(r"\1 ", _ADDED.sub(r" \1", raw.replace("<note", " <note")))
    text = _LEFT_OVER.sub(" ", cleaner.clean(apart))
    return _BEFORE_POINT.sub("", " ".join(text.split()))


def _bible(dataset: Dataset, root: str | os.PathLike[str] | None) -> tuple[Any, Any]:
    """The module that the data set is, and the cleaner of its markup."""
    try:
        from pysword.cleaner import OSISCleaner
        from pysword.modules import SwordModules
    except ImportError:
        raise ConfigError(
            "the optional group `text` is not installed (no pysword)",
            where=f"data set {dataset.name}",
            remedy="run `make setup text`",
        ) from None
    modules = SwordModules(str(folder(dataset.name, root)))
    names = list(modules.parse_modules())
    if len(names) != 1:
        raise DataError(f"{len(names)} SWORD modules, not one", where=f"data set {dataset.name}")
    bible = modules.get_bible_from_module(names[0])
    # pysword unpacks a whole book for each verse that it is asked for. Kept, a text takes 1 s instead of 30.
    bible._decompressed_text = cache(bible._decompressed_text)
    return bible, OSISCleaner()

"""The King James Version of the Bible, in English, verse by verse (standardised text of 1769)."""

from __future__ import annotations

import os

from restudy.data.dataset import Dataset, File
from restudy.data.sword import Verses, verses

_LISTED = """
mods.d/engKJV2006eb.conf e464efbf31bc4784839bb66443eae979d1b3ecfdd6ef9a37e108e53fce694a14 3149
modules/texts/ztext/engKJV2006eb/nt.bzs e7f9bc653743217cdcdf95890a708f997a03af056161d84bb540efef79e4e638 336
modules/texts/ztext/engKJV2006eb/nt.bzv 9d1daab8fb6ef43b53642cdd3276c1fa95ecfde08901bbb349be6378d1e1b972 82460
modules/texts/ztext/engKJV2006eb/nt.bzz 135b6e70af49372f3a82c5d9cc3c00278f38dbb2c12af74ea8d4b54c18d0cd56 730659
modules/texts/ztext/engKJV2006eb/ot.bzs 0d518856e8c6ceae0ca58bef944ba9a2809b5d4489cf81900853ad4af227510b 480
modules/texts/ztext/engKJV2006eb/ot.bzv b4fae54cb0b979b7f3f78fe6eaa94bad1f1d408eccb4a40410402b794b5c2f0f 241150
modules/texts/ztext/engKJV2006eb/ot.bzz 69f7e4e9b42ecef2e212ea957a388fccbeed1e3e333a38cf52e1b4064c6ce373 1985469
"""
"""Path, sha256 and size in bytes of each file of the SWORD module."""

DATASET = Dataset(
    name="king_james",
    summary="31,102 verses of the King James Version (text of 1769) in English",
    files=tuple(
        File(path, digest, int(size)) for path, digest, size in (line.split() for line in _LISTED.strip().splitlines())
    ),
    sources=("deb:sword-text-kjv=14.3-1",),
    licence="public domain (its printing is restricted in the United Kingdom)",
    citation="The Holy Bible, King James Version, text of 1769; "
    "SWORD module engKJV2006eb 14.3 (CrossWire Bible Society, eBible.org)",
    homepage="https://ebible.org/details.php?id=eng-kjv2006",
    comparable_note="not comparable with translation scores on WMT, IWSLT or any other corpus of modern language",
)


def load(root: str | os.PathLike[str] | None = None) -> Verses:
    """Return (book, chapter, verse) -> text; see `restudy.data.sword.verses`, which names the errors raised."""
    return verses(DATASET, root)

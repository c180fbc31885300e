"""The Reina-Valera Bible of 1909, in Spanish, verse by verse."""

from __future__ import annotations

import os

from restudy.data.dataset import Dataset, File
from restudy.data.sword import Verses, verses

_LISTED = """
mods.d/spaRV1909eb.conf 532faab4404b9cac206084e57c006daea0f947562e7016733466b5a7a5fb39cb 2217
modules/texts/ztext/spaRV1909eb/nt.bzs b88dda1e9ab50d158262ab141af7823269acb19c581621683298be5b6e154d58 336
modules/texts/ztext/spaRV1909eb/nt.bzv a9583ba1b4c66dfdd8bfb6a0b1833bdaa02f9e2cc3465c5a802cf19cbc2f2533 82460
modules/texts/ztext/spaRV1909eb/nt.bzz 7baf6b1e798b193315fed89d0e84e8e1a033d035316f66c78d456f5fb8c87e20 714667
modules/texts/ztext/spaRV1909eb/ot.bzs 0e39106ae15a29cef56feac683f8482be380536a1c456e006867f9fa94c0338e 480
modules/texts/ztext/spaRV1909eb/ot.bzv 0f23b1ebff5ecdd352a64feda5bb047cba27ce3624fa7b00717f763835d96e20 241150
modules/texts/ztext/spaRV1909eb/ot.bzz daae868e179e6cc884ad2c9429a9dfaf9745d61caa6dbb9da2a8b24ec3c01337 1924606
"""
"""Path, sha256 and size in bytes of each file of the SWORD module."""

DATASET = Dataset(
    name="reina_valera",
    summary="31,084 verses of the Reina-Valera Bible of 1909 in Spanish",
    files=tuple(
        File(path, digest, int(size)) for path, digest, size in (line.split() for line in _LISTED.strip().splitlines())
    ),
    sources=("deb:sword-text-sparv=2.60-1",),
    licence="public domain",
    citation="Santa Biblia, Reina-Valera 1909; SWORD module spaRV1909eb 2.60 (eBible.org)",
    homepage="https://ebible.org/details.php?id=spaRV1909",
    comparable_note="not comparable with translation scores on WMT, IWSLT or any other corpus of modern language",
)


def load(root: str | os.PathLike[str] | None = None) -> Verses:
    """Return (book, chapter, verse) -> text; see `restudy.data.sword.verses`, which names the errors raised."""
    return verses(DATASET, root)

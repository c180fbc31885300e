"""The World English Bible, in modern English, verse by verse."""

from __future__ import annotations

import os

from restudy.data.dataset import Dataset, File
from restudy.data.sword import Verses, verses

_LISTED = """
mods.d/engWEB2015eb.conf cee96a54c0240a73f6328163d454285f2947bc23449106db6c08a952e28fdcd6 3784
modules/texts/ztext/engWEB2015eb/nt.bzs bec87a360bbc6bfbcd7de513edf928ceebb428dd2baff813aebf521bb0c6cc83 372
modules/texts/ztext/engWEB2015eb/nt.bzv bb7a522d8323ccd7be462fca4dcd53c06d966c140fe260a6295e05393d259338 82480
modules/texts/ztext/engWEB2015eb/nt.bzz 5429389d9331b7a86901a73afa74f32d089cae3d5bd8dfe304b11808714a69ba 832969
modules/texts/ztext/engWEB2015eb/ot.bzs 2c16645bb829c05b20f39769e1fa23212743335143833a819f29e412c6def8ce 1140
modules/texts/ztext/engWEB2015eb/ot.bzv dbd3b762b7159c5dd4b535f75b6ab643fb62ae44f4655aff3c5098a955a1ae57 310270
modules/texts/ztext/engWEB2015eb/ot.bzz 4633066d3872f1a3e600d2d10e667a13cd6c32bf116ca971d3c8f288bc3ea453 3063793
"""
"""Path, sha256 and size in bytes of each file of the SWORD module."""

DATASET = Dataset(
    name="world_english",
    summary="37,457 verses of the World English Bible in modern English, with the deuterocanonical books",
    files=tuple(
        File(path, digest, int(size)) for path, digest, size in (line.split() for line in _LISTED.strip().splitlines())
    ),
    sources=("deb:sword-text-web=426.0-1",),
    licence="public domain (the name World English Bible is a trademark of eBible.org)",
    citation="World English Bible, 2020 stable text; SWORD module engWEB2015eb 426.0 (eBible.org)",
    homepage="https://ebible.org/web/",
    comparable_note="not comparable with translation scores on WMT, IWSLT or any other corpus of modern language",
)


def load(root: str | os.PathLike[str] | None = None) -> Verses:
    """Return (book, chapter, verse) -> text; see `restudy.data.sword.verses`, which names the errors raised."""
    return verses(DATASET, root)

"""Words spelt by pieces of which the last one of a word carries a mark (Sennrich, Haddow, Birch 2016)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from restudy.methods.text.grammar import SPECIALS

UNKNOWN = SPECIALS
END = "</w>"


def spelt(ids: Iterable[int], texts: Mapping[int, str]) -> list[str]:
    """The words that pieces spell; padding, begin and end are passed over, and so are pieces without a text.

    A last word without its end counts as a word; an unknown character stands as <unk> inside its word.
    """
    pieces = [texts.get(i, "") for i in ids if i >= UNKNOWN]
    return "".join(piece.removesuffix(END) + " " if piece.endswith(END) else piece for piece in pieces).split()

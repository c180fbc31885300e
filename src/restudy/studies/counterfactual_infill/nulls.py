"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from restudy.nulls import Names, Null, in_turn, next_seed, spoiled

from .statistics import HEURISTICS

ARM = ("method", "infiller")


def alike(table: str, column: Names, *conditions: object, **only: Any) -> Null:
    """Give each condition the rows of the one before it in the next seed: equal over all seeds, and yet different."""
    return in_turn(*(next_seed(column, given, taken, table, **only) for taken, given in pairwise(conditions)))


def heuristics_as(generative: str) -> Null:
    """Let mean, blur and noise give what a generative in-filler gives."""
    return alike("maps", ARM, *(("sdr", name) for name in (generative, *HEURISTICS)), restart=0)


BBMP = in_turn(*(alike("maps", ARM, ("sdr", name), ("bbmp", name), restart=0) for name in ("blur", "vae")))
FILLS = alike("fills", "infiller", "vae", "gan", *HEURISTICS, "zeros")
planted_nulls = {
    **dict.fromkeys(("F1", "F6", "E5"), BBMP),
    **dict.fromkeys(("F2", "F12", "E2", "E6"), heuristics_as("vae")),
    "E3": heuristics_as("gan"),
    "F3": alike("maps", ARM, ("sdr", "vae"), ("bbmp", "vae"), ("gradient", ""), restart=0),
    "F4": alike("boxes", ARM, ("random", ""), ("sdr", "vae"), ("sdr", "gan"), restart=0),
    **dict.fromkeys(("F5", "F7", "F8"), FILLS),
    "F9": spoiled("fills", 0.3, metric="hidden_excess"),
    "F10": spoiled("maps", -0.5, metric="flips_own"),
    "F11": spoiled("maps", -0.5, metric="kept_hit"),
    "F13": alike("maps", ARM, ("sdr", "gan"), ("sdr", "vae"), restart=0),
    "F14": alike("agreement", "pair", "two in-fillers", "two runs, vae", "two runs, mean"),
    "X1": spoiled("fills", 0.1, metric="leak"),
    "X4": spoiled("identities", 0.6, claim="sign"),
    "E1": spoiled("maps", 0.4, metric="flipping_area_judge", method="joint"),
    "E4": spoiled("agreement", -0.5, pair="two runs, vae"),
}

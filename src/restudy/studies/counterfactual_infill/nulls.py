"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from restudy.nulls import Null, changed, replaced, spoiled
from restudy.tables import chosen, levels, where, with_column

Rows = dict[str, Any]
"""Column -> value of the rows of a condition."""


def as_another(table: str, *pairs: tuple[Rows, Rows]) -> Null:
    """Replace the rows of each condition by those of another one in the next seed, the one after it, and so on.

    Over all seeds the conditions then have the same values, so their mean difference is 0, and yet they differ.
    """

    def take(rows: pa.Table) -> pa.Table:
        seeds = levels(rows)
        kept, copies = rows, []
        for place, (condition, source) in enumerate(pairs):
            step = (place % max(1, len(seeds) - 1) + 1) % len(seeds)
            following = dict(zip(seeds, seeds[step:] + seeds[:step], strict=True))
            copy = where(rows, **source)
            for name, value in (source | condition).items():
                copy = with_column(copy, name, [value] * len(copy))
            copies.append(with_column(copy, "seed", [following[seed] for seed in copy["seed"].to_pylist()]))
            kept = kept.filter(pa.array(~chosen(kept, **condition)))
        return pa.concat_tables([kept, *copies])

    return replaced(table, take)


def region(method: str, infiller: str) -> Rows:
    """Return what names the first run of a method with an in-filler in the table `maps`."""
    return {"method": method, "infiller": infiller, "restart": 0}


def heuristics_as(generative: str) -> Null:
    """Let mean, blur and noise give what a generative in-filler gives."""
    return as_another("maps", *((region("sdr", n), region("sdr", generative)) for n in ("mean", "blur", "noise")))


def fills_as(source: str, *names: str) -> Null:
    """Let in-fillers fill as another one does."""
    return as_another("fills", *(({"infiller": name}, {"infiller": source}) for name in names))


def lowered(metric: str) -> Null:
    """Subtract a half from a share in `maps`."""
    return changed("maps", lambda share: share - 0.5, metric=metric)


BBMP = as_another("maps", *((region("bbmp", name), region("sdr", name)) for name in ("blur", "vae")))
SAME_FILLS = fills_as("vae", "gan", "mean", "blur", "noise", "zeros")
planted_nulls = {
    "F1": BBMP,
    "F2": heuristics_as("vae"),
    "F3": as_another(
        "maps", *((region(*other), region("sdr", "vae")) for other in (("bbmp", "vae"), ("gradient", "")))
    ),
    "F4": as_another("boxes", *((region("sdr", name), region("random", "")) for name in ("vae", "gan"))),
    "F5": SAME_FILLS,
    "F6": BBMP,
    "F7": SAME_FILLS,
    "F8": SAME_FILLS,
    "F9": spoiled("fills", 0.3, metric="hidden_excess"),
    "F10": lowered("flips_own"),
    "F11": lowered("kept_hit"),
    "F12": heuristics_as("vae"),
    "F13": as_another("maps", (region("sdr", "vae"), region("sdr", "gan"))),
    "F14": as_another(
        "agreement", *(({"pair": f"two runs, {name}"}, {"pair": "two in-fillers"}) for name in ("vae", "mean"))
    ),
    "X1": spoiled("fills", 0.1, metric="leak"),
    "X4": spoiled("identities", 0.6, claim="sign"),
    "E1": spoiled("maps", 0.4, metric="flipping_area_judge", method="joint"),
    "E2": heuristics_as("vae"),
    "E3": heuristics_as("gan"),
    "E4": changed("agreement", lambda value: value - 0.5, pair="two runs, vae"),
    "E5": BBMP,
    "E6": heuristics_as("vae"),
}

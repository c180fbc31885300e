"""Planted nulls: results from which the effect of a claim was removed, on which it must not come out `reproduced`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from restudy.studies.counterfactual_infill.tidy import Tables, where, with_values

Null = Callable[[Tables], dict[str, pa.Table]]
Arm = Mapping[str, Any]


def _as_another(table: str, *pairs: tuple[Arm, Arm]) -> Null:
    """The rows of each arm replaced by those of another one in the next seed, the one after it, and so on.

    Over all seeds the arms then have the same values, so their mean difference is exactly 0, and yet they differ.
    """

    def null(tables: Tables) -> dict[str, pa.Table]:
        found = tables[table]
        seeds = sorted(set(found["seed"].to_pylist()))
        kept, copies = found, []
        for place, (arm, source) in enumerate(pairs):
            step = (place % max(1, len(seeds) - 1) + 1) % len(seeds)
            following = dict(zip(seeds, seeds[step:] + seeds[:step], strict=True))
            copy = where(found, **source)
            names = {**{key: value for key, value in source.items() if not isinstance(value, tuple)}, **arm}
            for name, value in names.items():
                copy = with_values(copy, name, [value] * len(copy))
            copies.append(with_values(copy, "seed", [following[seed] for seed in copy["seed"].to_pylist()]))
            kept = _without(kept, arm)
        return {**tables, table: pa.concat_tables([kept, *copies])}

    return null


def _without(table: pa.Table, arm: Arm) -> pa.Table:
    inside = pa.array(np.ones(len(table), dtype=bool))
    for name, value in arm.items():
        inside = pc.and_(inside, pc.equal(table[name], pa.scalar(value, table.schema.field(name).type)))
    return table.filter(pc.invert(inside))


def _shifted(table: str, amount: float, **rows: Any) -> Null:
    """A number added to the values of some rows."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        found = tables[table]
        inside = np.ones(len(found), dtype=bool)
        for name, value in rows.items():
            inside &= np.array([v == value for v in found[name].to_pylist()])
        return {**tables, table: with_values(found, "value", found["value"].to_numpy() + amount * inside)}

    return null


def _all(*nulls: Null) -> Null:
    def null(tables: Tables) -> dict[str, pa.Table]:
        found = dict(tables)
        for one in nulls:
            found = one(found)
        return found

    return null


def _map(method: str, infiller: str) -> Arm:
    return {"method": method, "infiller": infiller, "restart": 0}


def _heuristics_as(generative: str, table: str = "maps") -> Null:
    """Mean, blur and noise give what a generative in-filler gives."""
    return _as_another(table, *((_map("sdr", name), _map("sdr", generative)) for name in ("mean", "blur", "noise")))


def _fills_as(source: str, *names: str) -> Null:
    return _as_another("fills", *(({"infiller": name}, {"infiller": source}) for name in names))


_BBMP = _as_another("maps", *((_map("bbmp", name), _map("sdr", name)) for name in ("blur", "vae")))
_SAME_FILLS = _fills_as("vae", "gan", "mean", "blur", "noise", "zeros")

planted_nulls: dict[str, Null] = {
    "F1": _BBMP,
    "F2": _heuristics_as("vae"),
    "F3": _as_another(
        "maps",
        *((_map("bbmp", "vae"), _map("sdr", "vae")), (_map("gradient", ""), _map("sdr", "vae"))),
    ),
    "F4": _all(_as_another("boxes", *((_map("sdr", n), _map("random", "")) for n in ("vae", "gan")))),
    "F5": _SAME_FILLS,
    "F6": _BBMP,
    "F7": _SAME_FILLS,
    "F8": _SAME_FILLS,
    "F9": _shifted("fills", 0.3, metric="hidden_excess"),
    "F10": _shifted("maps", -0.5, metric="flips_own"),
    "F11": _shifted("maps", -0.5, metric="kept_hit"),
    "F12": _heuristics_as("vae"),
    "F13": _as_another("maps", (_map("sdr", "vae"), _map("sdr", "gan"))),
    "F14": _as_another(
        "agreement",
        ({"pair": "two runs, vae"}, {"pair": "two in-fillers"}),
        ({"pair": "two runs, mean"}, {"pair": "two in-fillers"}),
    ),
    "X1": _shifted("fills", 0.1, metric="leak"),
    "X2": _shifted("identities", 0.1, claim="objective"),
    "X3": _shifted("identities", 0.1, claim="concrete"),
    "X4": _shifted("identities", 0.6, claim="sign"),
    "X5": _shifted("identities", 0.3, claim="batch"),
    "E1": _shifted("maps", 0.4, metric="flipping_area_judge", method="joint"),
    "E2": _heuristics_as("vae"),
    "E3": _heuristics_as("gan"),
    "E4": _shifted("agreement", -0.5, pair="two runs, vae"),
    "E5": _BBMP,
    "E6": _heuristics_as("vae"),
}
"""Claim -> a function from results to results without the effect."""

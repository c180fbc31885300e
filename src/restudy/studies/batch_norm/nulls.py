"""Planted nulls that the statistics' formulas do not give: results without the effect of a claim."""

from __future__ import annotations

import pyarrow as pa

from restudy.nulls import Null, changed, in_turn, next_seed, spoiled
from restudy.tables import Tables

from .statistics import BN, FAST, NOISY, RATE, SLOW, STD, STD_NOISE


def without_effect(run: str, of: str) -> Null:
    """Give a run the rows of another run of the next seed in every table: as if the treatment did nothing."""

    def null(tables: Tables) -> dict[str, pa.Table]:
        names = [name for name, table in tables.items() if "run" in table.column_names]
        columns, arms = ("run", "arm"), [name.partition("-")[0] for name in (run, of)]
        return next_seed(columns, (run, arms[0]), (of, arms[1]), *names)(tables)

    return null


NO_BATCH_NORM = without_effect(BN, STD)
NO_NOISY = without_effect(NOISY, STD)
DRIFTING = changed("drift", lambda value: 5 * value, run=STD, metric="wasserstein")

planted_nulls = {
    "N1": NO_BATCH_NORM,
    "N2": NO_NOISY,
    "N3": without_effect(STD_NOISE, STD),
    # the covariate shift nearly gone: the cosine a tenth as far from 1
    "N4": changed("probes", lambda cosine: 1 - 0.1 * (1 - cosine), run=BN, metric="shift_cosine"),
    "N5": NO_BATCH_NORM,
    "N6": in_turn(*(without_effect(f"{norm}-{RATE}", STD) for norm in ("l1", "l2", "linf"))),
    "N7": spoiled("identities", 1e-6, check="theorem_error"),
    "N8": DRIFTING,
    "N9": NO_NOISY,
    "N10": spoiled("identities", 1e-6, check="gradient_excess"),
    "N11": NO_BATCH_NORM,
    "N12": NO_BATCH_NORM,
    "A1": NO_NOISY,
    "B1": DRIFTING,
    "C1": NO_BATCH_NORM,
    "E1": changed("identities", lambda _: 1.0, check="printed_bound_holds"),
    "E2": spoiled("identities", 1e-9, check="shift_without_lower_step"),
    "R1": NO_BATCH_NORM,
    "S1": NO_BATCH_NORM,
    "D1": without_effect(f"bn-{SLOW}", f"std-{SLOW}"),
    "D2": without_effect(f"bn-{FAST}", f"std-{FAST}"),
    "D3": without_effect(f"bn-{SLOW}", f"std-{SLOW}"),
    "D4": without_effect(f"bn-{FAST}", f"std-{FAST}"),
}

"""How fast claims are judged."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from .schema import Claim, parse_claim
from .study import judge_study

_KINDS: tuple[dict[str, object], ...] = (
    {"kind": "direction", "sesoi": 0.5},
    {"kind": "threshold", "bound": 0.2, "side": "above"},
    {"kind": "non_inferiority", "margin": 0.5},
    {"kind": "no_difference", "margin": 1.5},
)


def bench_judging(claims: int = 300, replicates: int = 10, *, aim_seconds: float = 2.0) -> dict[str, float]:
    """Judge ``claims`` claims of ``replicates`` replicates once, through ``judge_study``.

    Returns ``seconds`` (wall), ``aim_seconds``, ``ratio`` (seconds / aim, below 1 is good), ``claims`` and
    ``milliseconds_per_claim``. Importing SciPy is not counted.
    """
    rng = np.random.default_rng(0)
    judged: list[Claim] = []
    columns: dict[str, pa.Table] = {}
    for i in range(claims):
        fields = {"id": f"C{i}", "statistic": f"s{i}", "primary": i < 4, **_KINDS[i % len(_KINDS)]}
        judged.append(parse_claim(fields))
        columns[f"s{i}"] = pa.table({"replicate": np.arange(replicates), "value": rng.normal(1, 1, replicates)})
    functions = {name: (lambda tables, found=found: found) for name, found in columns.items()}
    judge_study(judged[:4], {}, functions, preset="laptop")
    start = time.perf_counter()
    judge_study(judged, {}, functions, preset="laptop")
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "aim_seconds": aim_seconds,
        "ratio": seconds / aim_seconds,
        "claims": float(claims),
        "milliseconds_per_claim": 1000 * seconds / claims,
    }


def rows() -> list[dict[str, object]]:
    """Rows for `make bench`: the aim of two seconds over what judging 300 claims took."""
    found = bench_judging()
    note = f"{found['seconds']:.2f} s, aim {found['aim_seconds']:.0f} s"
    what = "300 claims of 10 replicates judged: aim over time"
    return [{"what": what, "ratio": 1 / found["ratio"], "aim": 1.0, "note": note}]

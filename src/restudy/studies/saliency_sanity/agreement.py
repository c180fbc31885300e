"""Do the similarity metrics agree on the order of the methods? Kendall's coefficient of concordance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from restudy.studies.saliency_sanity.rule import METRICS
from restudy.studies.saliency_sanity.tidy import BySeed, Tables, similarity, where

Array = npt.NDArray[np.float64]
CONTROLS = ("noise", "edges")


def methods_of(table: pa.Table, pair: str) -> list[str]:
    """The saliency methods measured on a pair, controls left out, in the order of the table."""
    found = dict.fromkeys(where(table, pair=pair, state="top_down")["method"].to_pylist())
    return [name for name in found if name not in CONTROLS]


def rankings(tables: Tables, pair: str, *, metric: str = "") -> dict[int, dict[object, Array]]:
    """For each seed and judge the similarities of the methods, (methods,) float64, undefined methods left out.

    The judges are the four metrics, similarity averaged over the cascade from the top; with `metric` they are the
    re-draws of the logit layer under that metric.
    """
    table = tables["similarity"]
    methods = methods_of(table, pair)
    if metric:
        draws = sorted(set(where(table, pair=pair, state="top_down", depth=1)["redraw"].to_pylist()))
        choices = {draw: {"metric": metric, "depth": 1, "redraw": draw} for draw in draws}
    else:
        choices = {name: {"metric": name, "redraw": 0} for name in METRICS}
    values: dict[object, list[BySeed]] = {}
    for judge, choice in choices.items():
        rest = {k: v for k, v in choice.items() if k != "metric"}
        values[judge] = [similarity(tables, pair, m, str(choice["metric"]), "top_down", **rest) for m in methods]
    seeds = sorted({seed for found in values.values() for one in found for seed in one})
    ranked = {}
    for seed in seeds:
        matrix = np.array([[one[seed] for one in found] for found in values.values()])
        defined = ~np.isnan(matrix).any(axis=0)
        ranked[seed] = {judge: row[defined] for judge, row in zip(values, matrix, strict=True)}
    return ranked


def kendall_w_of(judges: dict[int, list[Array]]) -> BySeed:
    """Kendall's W for each seed, from the judges' values; NaN for fewer than two judges or three methods."""
    return {seed: kendall_w(found) for seed, found in judges.items()}


def kendall_w(values: Sequence[Array]) -> float:
    """Kendall's coefficient of concordance W in [0, 1] of m judges over n items (Kendall, Babington Smith 1939).

    W = 12 S / (m^2 (n^3 - n)), S the sum of squared deviations of the items' rank sums; ties get the mean rank.
    """
    count, items = len(values), len(values[0]) if values else 0
    if count < 2 or items < 3:
        return float("nan")
    sums = np.sum([_ranks(row) for row in values], axis=0)
    deviation = float(np.square(sums - sums.mean()).sum())
    return 12 * deviation / (count**2 * (items**3 - items))


def kendall_w_null(methods: int, judges: int, *, draws: int = 4000) -> Array:
    """W of judges who order the methods at random, (draws,) float64: what W is worth by chance alone."""
    generator = np.random.default_rng(0)
    orders = generator.permuted(np.tile(np.arange(methods), (draws, judges, 1)), axis=2) + 1.0
    sums = orders.sum(axis=1)
    deviation = np.square(sums - sums.mean(axis=1, keepdims=True)).sum(axis=1)
    found: Array = 12 * deviation / (judges**2 * (methods**3 - methods))
    return found


def _ranks(row: Array) -> Array:
    below = (row[:, None] > row[None, :]).sum(axis=1)
    equal = (row[:, None] == row[None, :]).sum(axis=1)
    found: Array = below + (equal + 1) / 2
    return found

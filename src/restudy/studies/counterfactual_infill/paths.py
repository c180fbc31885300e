"""Maps compared where they reach the same score or the same area, never at one penalty. numpy and pyarrow only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from restudy.tables import BySeed, Tables, where

TARGET_AREA = 0.06
"""Share of the canvas at which shapes are compared: about half of an object."""
NAN = float("nan")


def grids(
    tables: Tables, metric: str, method: str, infiller: str, *, restart: int = 0, split: str = "test"
) -> Iterator[tuple[int, Any, Any]]:
    """For each seed: penalties (L,), ascending, and the values of a metric (L, N)."""
    table = tables["maps"]
    rows = where(table, metric=metric, method=method, infiller=infiller, restart=restart, split=split)
    seeds, penalties, images, values = (rows[n].to_numpy() for n in ("seed", "penalty", "image", "value"))
    for seed in sorted(set(table["seed"].to_pylist())):
        mine = seeds == seed
        if not mine.any():
            yield seed, np.array([NAN]), np.array([[NAN]])
            continue
        order = np.lexsort((images[mine], penalties[mine]))
        known = np.unique(penalties[mine])
        yield seed, known, values[mine][order].reshape(len(known), -1)


def means(tables: Tables, metric: str, method: str, infiller: str, **more: Any) -> dict[int, Any]:
    """Means over the images for each penalty, by seed, each (L,)."""
    return {seed: values.mean(1) for seed, _, values in grids(tables, metric, method, infiller, **more)}


def area_at_score(tables: Tables, infiller: str, judge: str, *, restart: int = 0, bare: bool = False) -> BySeed:
    """Area of the deletion regions, as a share of the canvas, at which the log-odds under a judge have come down to 0.

    At 0 the class is as likely as all others together: the border that a deletion region has to cross. With `bare` the
    goal is the mean log-odds of the scenes without their objects. Areas and log-odds are means over the images at each
    penalty, joined by straight lines that begin at nothing removed and end at everything; the first crossing counts.
    """
    arms: dict[str, Any] = {"method": "sdr", "infiller": infiller, "restart": restart}
    names = ("area", f"log_odds_{judge}", "log_odds_before", "log_odds_bare")
    area, after, before, ground = (means(tables, name, **arms) for name in names)
    found: BySeed = {}
    for seed in area:
        order = np.argsort(area[seed], kind="stable")
        x = np.r_[0.0, area[seed][order], 1.0]
        y = np.r_[before[seed][0], after[seed][order], ground[seed][0]]
        found[seed] = first_crossing(x, -y, -float(ground[seed][0]) if bare else 0.0)
    return found


def first_crossing(x: Any, y: Any, target: float) -> float:
    """Where the line through (x, y), x ascending, first reaches a target from below; NaN where it never does."""
    if np.isnan(y).any() or not (y >= target).any():
        return NAN
    at = int(np.argmax(y >= target))
    share = (target - y[at - 1]) / (y[at] - y[at - 1]) if at else 0.0
    return float(x[at - 1] + share * (x[at] - x[at - 1])) if at else float(x[0])


def at_area(tables: Tables, metric: str, method: str, infiller: str, ends: tuple[float, float]) -> BySeed:
    """A metric of the regions at `TARGET_AREA`, along the penalties; `ends` are its values for nothing and for all."""
    area, value = means(tables, "area", method, infiller), means(tables, metric, method, infiller)
    found: BySeed = {}
    for seed in area:
        order = np.argsort(area[seed], kind="stable")
        x, y = np.r_[0.0, area[seed][order], 1.0], np.r_[ends[0], value[seed][order], ends[1]]
        found[seed] = float(np.interp(TARGET_AREA, x, y))
    return found


def tuned(tables: Tables, metric: str, method: str, infiller: str, *, restart: int = 0) -> dict[int, Any]:
    """Values over the test images at the penalty whose mean over the tuning images is least, by seed, each (N,)."""
    arms: dict[str, Any] = {"method": method, "infiller": infiller, "restart": restart}
    held_out = {seed: values.mean(1) for seed, _, values in grids(tables, metric, **arms, split="tune")}
    return {
        seed: values[int(np.argmin(held_out[seed]))] if not np.isnan(values).any() else np.array([NAN])
        for seed, _, values in grids(tables, metric, **arms)
    }


def tuned_iou(tables: Tables, method: str, infiller: str) -> BySeed:
    """Mean IoU with the object's box over the test images, at the penalty and threshold best on the tuning images."""
    table = where(tables["boxes"], method=method, infiller=infiller, restart=0)
    found: BySeed = {}
    for seed in sorted(set(tables["boxes"]["seed"].to_pylist())):
        mine = where(table, seed=seed)
        tune, test = (_mean_iou(where(mine, split=split)) for split in ("tune", "test"))
        found[seed] = test[max(tune, key=lambda key: (tune[key], key))] if tune else NAN
    return found


def _mean_iou(table: pa.Table) -> dict[tuple[float, float], float]:
    grouped = table.group_by(["penalty", "threshold"]).aggregate([("iou", "mean")])
    columns = (grouped[name].to_pylist() for name in ("penalty", "threshold", "iou_mean"))
    return {(penalty, threshold): iou for penalty, threshold, iou in zip(*columns, strict=True)}

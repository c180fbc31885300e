"""Statistics of the EfficientNet-Lite0 track: one number per scene. numpy and pyarrow only.

The tables are there only where the preset asks for this track; elsewhere the statistics return no rows.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from restudy.studies.relevance_evaluation.tidy import Tables, where

Statistic = Callable[[Tables], pa.Table]
EMPTY = pa.schema([("replicate", pa.string()), ("value", pa.float64()), ("cluster", pa.string())])
LRP, SENSITIVITY, DECONVOLUTION = "lrp_alpha_beta", "sensitivity", "deconvolution"
SHARE = 0.16


def areas(tables: Tables, method: str, fill: str, kind: str = "scene") -> dict[str, float]:
    """AOPC of each scene over the mean unperturbed logit of all of them."""
    order = "random" if method == "random" else "morf"
    chosen = {"kind": kind, "fill": fill, "method": method, "order": order, "score": "logit", "share": SHARE}
    rows = where(tables["photo_aopc"], **chosen)
    start = float(np.mean(rows["start"].to_numpy())) if rows.num_rows else float("nan")
    return {s: v / start for s, v in zip(rows["scene"].to_pylist(), rows["value"].to_pylist(), strict=True)}


def _paired(first: dict[str, float], second: dict[str, float], clusters: dict[str, str] | None = None) -> pa.Table:
    names = [name for name in first if name in second]
    values = [first[name] - second[name] for name in names]
    groups = [clusters[name] if clusters else name for name in names]
    return pa.table({"replicate": names, "value": values, "cluster": groups}, schema=EMPTY)


def _gap(first: str, second: str, fill: str = "uniform") -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        if "photo_aopc" not in tables:
            return EMPTY.empty_table()
        return _paired(areas(tables, first, fill), areas(tables, second, fill))

    statistic.__doc__ = f"Per scene: AOPC, share of the logit, {fill} fill: {first} minus {second}."
    return statistic


lite0_sensitivity = _gap(LRP, SENSITIVITY)
lite0_deconvolution = _gap(LRP, DECONVOLUTION)
lite0_lrp_minus_random = _gap(LRP, "random")
lite0_noise_minus_random = _gap("noise", "random")
lite0_edges_minus_sensitivity = _gap("edges", SENSITIVITY)
lite0_mean_fill = _gap(LRP, SENSITIVITY, "mean")


def lite0_crops_lrp_minus_sensitivity(tables: Tables) -> pa.Table:
    """Per plain crop, clustered by its photograph: AOPC, share of the logit, uniform fill: LRP minus sensitivity."""
    if "photo_aopc" not in tables:
        return EMPTY.empty_table()
    rows = where(tables["photo_aopc"], kind="crop")
    photo = dict(zip(rows["scene"].to_pylist(), rows["photo"].to_pylist(), strict=True))
    return _paired(areas(tables, LRP, "uniform", "crop"), areas(tables, SENSITIVITY, "uniform", "crop"), photo)


def measures(tables: Tables, method: str, metric: str) -> dict[str, float]:
    """A measure of each scene's map."""
    rows = where(tables["photo_measures"], kind="scene", method=method, metric=metric)
    return dict(zip(rows["scene"].to_pylist(), rows["value"].to_pylist(), strict=True))


def _bytes(other: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        if "photo_measures" not in tables:
            return EMPTY.empty_table()
        first, second = (measures(tables, m, "png_bytes") for m in (SENSITIVITY, other))
        names = list(first)
        values = [first[name] / second[name] for name in names]
        return pa.table({"replicate": names, "value": values, "cluster": names}, schema=EMPTY)

    statistic.__doc__ = f"Per scene: bytes of the picture, sensitivity over {other}."
    return statistic


lite0_bytes = _bytes(LRP)
lite0_noise_bytes = _bytes("noise")


def _outside(method: str) -> Statistic:
    def statistic(tables: Tables) -> pa.Table:
        if "photo_measures" not in tables:
            return EMPTY.empty_table()
        return _paired(measures(tables, method, "outside_aopc"), measures(tables, "random", "outside_aopc"))

    statistic.__doc__ = f"Per scene: AOPC (logits) of regions off the animal, ranked by {method} minus at random."
    return statistic


lite0_outside = _outside(LRP)
lite0_outside_noise = _outside("noise")

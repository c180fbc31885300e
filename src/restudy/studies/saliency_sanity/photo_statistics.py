"""Statistics of the Lite0 track: one number per photo, its crops averaged. numpy and pyarrow only.

The tables are there only where the preset asks for this track; elsewhere the statistics return no rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from restudy.studies.saliency_sanity.tidy import MAX_UNDEFINED, Tables, where

EMPTY = pa.schema([("replicate", pa.string()), ("value", pa.float64()), ("cluster", pa.string())])


def lite0_gbp_minus_gradient(tables: Tables) -> pa.Table:
    """Absolute rank correlation with the trained net's map, random logits: guided backprop minus gradient."""
    return _gap(tables, "guided_backprop", "gradient")


def lite0_guided_gradcam_minus_gradient(tables: Tables) -> pa.Table:
    """The same difference for guided GradCAM."""
    return _gap(tables, "guided_gradcam", "gradient")


def lite0_noise_minus_gradient(tables: Tables) -> pa.Table:
    """The same difference for iid noise, a map that knows no net."""
    return _gap(tables, "noise", "gradient")


def photo_means(tables: Tables, method: str, metric: str, depth: int, state: str = "top_down") -> dict[str, float]:
    """Mean similarity over crops and re-draws for each photo; NaN for all where a tenth of the maps is undefined."""
    rows = where(tables["photo_similarity"], method=method, metric=metric, depth=depth, state=state)
    photos, values = np.array(rows["photo"].to_pylist()), rows["value"].to_numpy(zero_copy_only=False)
    undefined = np.isnan(values)
    enough = len(values) > 0 and undefined.mean() <= MAX_UNDEFINED
    found = {}
    for photo in dict.fromkeys(where(tables["photo_similarity"])["photo"].to_pylist()):
        mine = values[(photos == photo) & ~undefined] if len(values) else values
        found[photo] = float(mine.mean()) if enough and len(mine) else float("nan")
    return found


def _gap(tables: Tables, method: str, other: str) -> pa.Table:
    if "photo_similarity" not in tables:
        return EMPTY.empty_table()
    first, second = (photo_means(tables, name, "spearman_abs", 1) for name in (method, other))
    values = [first[photo] - second[photo] for photo in first]
    return pa.table({"replicate": list(first), "value": values, "cluster": list(first)}, schema=EMPTY)

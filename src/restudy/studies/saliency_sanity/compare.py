"""Rows of the table `similarity`: how alike the maps of two nets are, averaged over the images of a seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from torch import Tensor

from restudy.methods.similarity import Reference, metrics, pool_channels

SIMILARITY = pa.schema(
    [("pair", pa.string()), ("seed", pa.int64()), ("against", pa.string()), ("state", pa.string())]
    + [("depth", pa.int64()), ("layer", pa.string()), ("redraw", pa.int64()), ("target", pa.string())]
    + [("method", pa.string()), ("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
    + [("images", pa.int64()), ("undefined", pa.int64())]
)
"""One row per comparison, method and metric.

`against`: what the maps are compared with: `trained` (those of the explained net), `random_net`, or `edges` (the Sobel
magnitude of the image). `state`: the net whose maps they are. `depth`, `layer`, `redraw`: which layers were drawn anew
(0 and empty where none). `target`: `fixed`, the class that the trained net predicts, or `recomputed`, the class that
the randomised net predicts. `value` is the mean over the images whose value is defined, NaN where none is; `undefined`
counts the others, and whoever reads the table decides how many he bears (see `tidy.MAX_UNDEFINED`).
"""


class References:
    """The maps of one net by method, prepared for comparison with those of many others."""

    def __init__(self, maps: Mapping[str, Tensor], mask: Tensor | None, cell: int) -> None:
        self.cell = cell
        self.mask = None if mask is None else mask.cpu().numpy()
        self._prepared = {name: self._reference(values) for name, values in maps.items()}

    def _reference(self, values: Tensor) -> Reference:
        return Reference(signed(values), mask=self.mask, cell=self.cell)

    def rows(
        self,
        where: Mapping[str, Any],
        maps: Mapping[str, Tensor],
        names: Sequence[str] | None = None,
    ) -> list[dict[str, Any]]:
        """Rows for every method of `maps` that this net has too; `where` holds the other columns."""
        chosen = names if names is not None else metrics(foreground=self.mask is not None)
        found = []
        for method, values in maps.items():
            if method in self._prepared:
                compared = self._prepared[method].compare(self._reference(values), chosen)
                found += [dict(where) | {"method": method} | summary(m, v) for m, v in compared.items()]
        return found

    def against_edges(self, where: Mapping[str, Any], maps: Mapping[str, Tensor]) -> list[dict[str, Any]]:
        """Rows of absolute rank correlation between each method's map and the edges of the image."""
        edges = self._prepared["edges"]
        names = ["spearman_abs", *(["spearman_abs_foreground"] if self.mask is not None else [])]
        found = []
        for method, values in maps.items():
            if method != "edges":
                compared = edges.compare(self._reference(values), names)
                found += [dict(where) | {"method": method} | summary(m, v) for m, v in compared.items()]
        return found


def signed(values: Tensor) -> Any:
    """Maps (N, C, H, W) as (N, H, W), channels summed so that the sign is kept."""
    return pool_channels(values, "sum")


def summary(metric: str, values: Any) -> dict[str, Any]:
    """Mean over the images with a defined value, the number of images and of undefined values."""
    missing = int(np.isnan(values).sum())
    return {
        "metric": metric,
        "value": float(np.nanmean(values)) if missing < len(values) else float("nan"),
        "unit": "1",
        "images": len(values),
        "undefined": missing,
    }

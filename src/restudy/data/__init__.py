"""Data sets: one small module each, fetched with their sums verified, never committed.

A data set module (`fashion_mnist`, `mnist5k`, `photos`, `imagenet_lite0`) declares a `DATASET` and a
`load(root=None)` that returns numpy arrays. What works on any data set by name is reached from here::

    from restudy.data import check, data_sum, discover, fetch, rows, state, verify

These names are looked up on first use, so that importing one data set brings in neither the fetching code
nor the other data sets: an edit of how bytes are fetched is then no change of a study that reads them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restudy.data.catalogue import check, data_sum, discover, fetch, rows, state, verify
    from restudy.data.dataset import Dataset, File, ImageSet
    from restudy.data.store import folder, marker

__all__ = [
    "Dataset",
    "File",
    "ImageSet",
    "check",
    "data_sum",
    "discover",
    "fetch",
    "folder",
    "marker",
    "rows",
    "state",
    "verify",
]
_HOMES = {
    "Dataset": "dataset",
    "File": "dataset",
    "ImageSet": "dataset",
    "folder": "store",
    "marker": "store",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'catalogue')}"), name)

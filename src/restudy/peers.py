"""Optional libraries that tests and `make bench` compare with."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

TORCHVISION = ("torchvision", "torchvision.models", "torchvision.models.resnet")


def import_peer(name: str) -> tuple[Any, str]:
    """Import a peer: the module and "", or None and the reason.

    zennit (and Quantus, where zennit is installed) imports two class names of torchvision, whose wheels do not match
    every build of torch; while it is imported, a stand-in with these names takes torchvision's place if there is none.
    """
    try:
        with warnings.catch_warnings(), _torchvision():
            warnings.simplefilter("ignore")
            return importlib.import_module(name), ""
    except Exception as error:  # a peer can fail in many ways at import
        return None, f"{name.split('.')[0]} cannot be imported: {error}"


@contextlib.contextmanager
def _torchvision() -> Iterator[None]:
    if importlib.util.find_spec("torchvision") is not None:
        yield
        return
    stand_ins = {part: types.ModuleType(part) for part in TORCHVISION}
    for block in ("BasicBlock", "Bottleneck"):
        setattr(stand_ins[TORCHVISION[-1]], block, type(block, (), {}))
    sys.modules.update(stand_ins)
    try:
        yield
    finally:
        for part in TORCHVISION:
            sys.modules.pop(part, None)

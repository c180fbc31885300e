"""Optional libraries that tests and `make bench` compare with."""

from __future__ import annotations

import contextlib
import importlib
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

_STAND_INS = ("torchvision", "torchvision.models", "torchvision.models.resnet")


def import_peer(name: str) -> tuple[Any, str]:
    """Import a peer: the module and "", or None and the reason.

    zennit (and Quantus, where zennit is installed) imports two class names of torchvision, whose wheels do not match
    every build of torch; while it is imported, a stand-in with these names takes torchvision's place if that fails.
    """
    try:
        with warnings.catch_warnings(), _torchvision():
            warnings.simplefilter("ignore")
            return importlib.import_module(name), ""
    except Exception as error:  # a peer can fail in many ways at import
        return None, f"{name.split('.')[0]} cannot be imported: {error}"


@contextlib.contextmanager
def _torchvision() -> Iterator[None]:
    """While this lasts `import torchvision.models.resnet` works; where torchvision itself does, nothing changes."""
    try:
        importlib.import_module("torchvision")
    except Exception:  # absent, or built for another torch
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        top, models, resnet = (types.ModuleType(name) for name in _STAND_INS)
        resnet.__dict__.update({block: type(block, (), {}) for block in ("BasicBlock", "Bottleneck")})
        top.__dict__["models"], models.__dict__["resnet"] = models, resnet
        sys.modules.update(zip(_STAND_INS, (top, models, resnet), strict=True))
        try:
            yield
        finally:
            for name in _STAND_INS:
                sys.modules.pop(name, None)
    else:
        yield

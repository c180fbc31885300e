"""zennit without torchvision, which it imports for two names and which needs a build of its own.

Quantus imports zennit where that is installed, so it needs the same.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager

_NAMES = ("torchvision", "torchvision.models", "torchvision.models.resnet")


@contextmanager
def torchvision_stand_in() -> Iterator[None]:
    """While this lasts `import torchvision.models.resnet` works; where torchvision itself does, nothing changes."""
    try:
        importlib.import_module("torchvision")
    except Exception:  # absent, or built for another torch
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        top, models, resnet = (types.ModuleType(name) for name in _NAMES)
        resnet.__dict__.update(BasicBlock=type("BasicBlock", (), {}), Bottleneck=type("Bottleneck", (), {}))
        top.__dict__["models"], models.__dict__["resnet"] = models, resnet
        sys.modules.update(zip(_NAMES, (top, models, resnet), strict=True))
        try:
            yield
        finally:
            for name in _NAMES:
                sys.modules.pop(name, None)
    else:
        yield


def load_zennit() -> str:
    """Import zennit; return why that fails, or nothing."""
    with torchvision_stand_in():
        try:
            for name in ("attribution", "composites", "rules", "layer", "types"):
                importlib.import_module(f"zennit.{name}")
        except Exception as error:  # a peer can fail in many ways at import
            return f"zennit cannot be imported: {error}"
    return ""

"""The device class, resolved before planning: it is part of the parameters and so of the fingerprint."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from restudy.errors import ConfigError

DEVICE_CLASSES = ("cpu", "cuda")


@cache
def device_class() -> str:
    """`cpu` or `cuda`, from `RESTUDY_DEVICE` (`auto` by default), without importing torch.

    `auto` takes CUDA where the NVIDIA driver shows a card and `CUDA_VISIBLE_DEVICES` hides not all of them.

    Raises:
        ConfigError: another word than auto, cpu or cuda.
    """
    wanted = os.environ.get("RESTUDY_DEVICE", "auto")
    if wanted in DEVICE_CLASSES:
        return wanted
    if wanted != "auto":
        raise ConfigError(f"{wanted!r}", where="RESTUDY_DEVICE", remedy="allowed: auto, cpu, cuda")
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    return "cuda" if not hidden and any(Path("/proc/driver/nvidia/gpus").glob("*")) else "cpu"

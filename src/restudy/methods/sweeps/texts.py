"""Numbers from the texts of a command line."""

from __future__ import annotations

import math

from restudy.errors import ConfigError


def whole_numbers(name: str, text: str) -> tuple[int, ...]:
    """Return the whole numbers of a text like `16,64,256`, sorted, each once; ConfigError for anything else."""
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise ConfigError(f"{name} {text!r}", remedy="give whole numbers with commas, e.g. 16,64,256") from None


def pair(name: str, text: str) -> tuple[float, float]:
    """Return two numbers of a text like `0.003,3`; ConfigError for anything else."""
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high)):
        raise ConfigError(f"{name} {text!r}", remedy="give two numbers with a comma, e.g. 0.003,3")
    return low, high

"""Snakemake's own records of outputs: which fingerprint an output was recorded with."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from restudy import layout

MAX_NAME = 255


def record_path(output: Path) -> Path:
    """The file in which Snakemake keeps its record of an output (its file backend, format 2)."""
    encoded = urlsafe_b64encode(output.as_posix().encode()).decode()
    chunks = [encoded[i : i + MAX_NAME - 1] for i in range(0, len(encoded), MAX_NAME - 1)]
    return (layout.root() / ".snakemake" / "metadata").joinpath(*(f"@{c}" for c in chunks[:-1]), chunks[-1])


def recorded_params(output: Path) -> list[Any] | None:
    """The params that an output was recorded with, or None without a readable record."""
    try:
        record = json.loads(record_path(output).read_text())
    except (OSError, ValueError):
        return None
    params = record.get("params")
    return params if isinstance(params, list) else None


def recorded(output: Path, fingerprint: str) -> bool:
    """Whether Snakemake's record of an output holds the fingerprint."""
    params = recorded_params(output)
    return params is not None and any(fingerprint in str(p) for p in params)

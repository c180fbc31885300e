"""Checkpoints that are whole or absent."""

from __future__ import annotations

import os
import pickle
import tempfile
from pathlib import Path
from typing import Any

import torch

from restudy.errors import ResultError


def save_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Write tensors, numbers, texts, lists and dicts atomically: temporary file, fsync, rename.

    Whoever reads the path sees the old file or the new one, never a part. ResultError if it cannot be
    written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ResultError(
            f"cannot be written: {error.strerror or error}", where=str(path), remedy="free the disk or the folder"
        ) from error


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Return the content of a checkpoint on the CPU, None if there is none; ResultError if it is damaged."""
    if not path.exists():
        return None
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError, ValueError) as error:
        raise ResultError(
            "is not a readable checkpoint", where=str(path), remedy="delete it; training starts anew"
        ) from error
    if not isinstance(content, dict):
        raise ResultError("is not a checkpoint", where=str(path), remedy="delete it; training starts anew")
    return content

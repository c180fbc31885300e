"""What the commands on a model of one's own check before they work, and how they name what fails inside that model."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError

LONGEST = 200
"""Most characters of another library's message that are shown."""


def one_line(error: BaseException) -> str:
    """Kind and text of an error in one line, cut where it is long."""
    text = " ".join(str(error).split())
    text = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def check_folder(folder: Path) -> None:
    """Raise ConfigError where results could not be written to a folder, which need not exist yet; leaves no trace."""
    remedy = "give a folder that can be written with --out"
    for place in (folder, *folder.parents):
        if not place.exists():
            continue
        if not place.is_dir():
            raise ConfigError("is a file, not a folder", where=str(place), remedy=remedy)
        try:
            with tempfile.TemporaryFile(dir=place):
                return
        except OSError as error:
            raise ConfigError(f"cannot be written ({error.strerror})", where=str(place), remedy=remedy) from None


def check_device(name: str) -> None:
    """Raise ConfigError for a device that torch does not know or that this machine does not have."""
    known = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    known += ["mps"] if torch.backends.mps.is_available() else []
    remedy = f"devices here: {', '.join(known)}"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"--device {name} is no device that torch knows", remedy=remedy) from None
    try:
        torch.empty(1, device=device).cpu()
    except Exception as error:  # torch raises RuntimeError, AssertionError, NotImplementedError, ...
        raise ConfigError(f"--device {name} cannot be used ({one_line(error)})", remedy=remedy) from None


def called_on(model: nn.Module, act: Callable[[], Any], given: Mapping[str, Any]) -> Any:
    """Return what `act` returns; an error inside it becomes a ConfigError that names the model and what it was given.

    Args:
        model: for its name. act: calls it. given: its arguments by name, for the message.
    """
    try:
        return act()
    except ConfigError:
        raise
    except Exception as error:  # whatever a user's model raises
        shapes = ", ".join(f"{name} {tuple(v.shape)} {_kind(v)}" for name, v in given.items() if isinstance(v, Tensor))
        raise ConfigError(
            f"the model fails on {shapes}: {one_line(error)}",
            where=type(model).__name__,
            remedy="check that shapes and types are those that its forward takes",
        ) from None


@contextlib.contextmanager
def watched_embeddings(model: nn.Module) -> Iterator[None]:
    """Inside, a row that an `nn.Embedding` of the model does not have raises a ConfigError with its name."""

    def hook(name: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def look(module: nn.Module, arguments: tuple[Any, ...]) -> None:
            if arguments and isinstance(arguments[0], Tensor) and isinstance(module, nn.Embedding):
                _check_rows(name, module.num_embeddings, arguments[0])

        return look

    tables = {name: module for name, module in model.named_modules() if isinstance(module, nn.Embedding)}
    handles = [module.register_forward_pre_hook(hook(name)) for name, module in tables.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _check_rows(name: str, rows: int, ids: Tensor) -> None:
    if ids.dtype not in (torch.int64, torch.int32):
        raise ConfigError(
            f"is looked up with {_kind(ids)}", where=f"embedding {name}", remedy="token ids are whole numbers"
        )
    if not ids.numel():
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= rows:
        raise ConfigError(
            f"has rows 0 to {rows - 1} and is asked for row {low if low < 0 else high}",
            where=f"embedding {name}",
            remedy="give token ids of this model's vocabulary, and sentences no longer than its table of positions",
        )


def _kind(values: Tensor) -> str:
    return str(values.dtype).removeprefix("torch.")


def as_typed(options: Mapping[str, Any]) -> dict[str, str]:
    """Options as text for a page, without those that are not set: tuples with commas, numbers without extra digits."""

    def text(value: Any) -> str:
        if isinstance(value, tuple | list):
            return ",".join(text(part) for part in value)
        return f"{value:g}" if isinstance(value, float) else str(value)

    return {name: text(value) for name, value in options.items() if value is not None and value != ()}

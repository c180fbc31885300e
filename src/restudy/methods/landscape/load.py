"""A user's model and data from `module:function` or a file."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.own_model import one_line

UNREADABLE = (
    OSError,
    ValueError,
    EOFError,
    TypeError,
    AttributeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What numpy raises on a file that is no .npz, is cut short, or is one array (.npy) under another name."""
NPZ = "give a .npz of numbers, as numpy.savez writes it"


def named(name: str) -> Callable[[], Any]:
    """Return the function that `module:function` names; the working directory is searched too.

    Raises:
        ConfigError: another form, a module that cannot be imported, no such function.
    """
    module, _, function = name.partition(":")
    if not module or not function:
        raise ConfigError(f"{name!r} is not module:function", remedy="e.g. mynets:build")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Callable[[], Any] = getattr(importlib.import_module(module), function)
    except ModuleNotFoundError as error:
        missing = (
            "check the path" if error.name == module.partition(".")[0] else f"it imports {error.name}: install that"
        )
        raise ConfigError(f"{module} cannot be imported", where=name, remedy=missing) from None
    except AttributeError as error:
        if hasattr(sys.modules.get(module), "__file__"):
            raise ConfigError(f"{module} has no {function}", where=name, remedy="name a function of it") from None
        raise ConfigError(f"{module} fails when imported ({one_line(error)})", where=name, remedy="mend it") from None
    except (Exception, SystemExit) as error:  # whatever a module of a user's does when it is imported
        raise ConfigError(f"{module} fails when imported ({one_line(error)})", where=name, remedy="mend it") from None
    if not callable(found):
        raise ConfigError(f"{name} is {type(found).__name__}", remedy="name a function")
    return found


def called(name: str) -> Any:
    """Return what the function that `module:function` names returns.

    Raises:
        ConfigError: as `named`; the function raises.
    """
    function = named(name)
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{name} raises {one_line(error)}", remedy="it is called without arguments; mend it"
        ) from None


def load_model(name: str, seed: int = 0) -> nn.Module:
    """Return the module that `module:function` builds after `torch.manual_seed(seed)`; ConfigError if it is none."""
    torch.manual_seed(seed)
    model = called(name)
    if not isinstance(model, nn.Module):
        raise ConfigError(f"{name} returns {type(model).__name__}", remedy="return a torch.nn.Module")
    return model


def load_data(name: str) -> tuple[Tensor, Tensor]:
    """Return inputs and targets from a .npz (keys `inputs`, `targets`) or from `module:function`.

    Raises:
        ConfigError: a file that is missing, unreadable or lacks a key; a function that returns something else.
    """
    if not name.endswith(".npz"):
        if ":" not in name:
            raise ConfigError(f"{name!r} is neither a .npz nor module:function", where="--data", remedy=NPZ)
        found = called(name)
        if not (isinstance(found, tuple | list) and len(found) == 2):
            raise ConfigError(f"{name} does not return (inputs, targets)", remedy="return two arrays or tensors")
        return torch.as_tensor(found[0]), torch.as_tensor(found[1])
    try:
        with np.load(name, allow_pickle=False) as arrays:
            return _as_float(torch.as_tensor(arrays["inputs"])), _as_float(torch.as_tensor(arrays["targets"]))
    except KeyError as error:
        raise ConfigError(f"no array {error}", where=name, remedy="save `inputs` and `targets`") from None
    except UNREADABLE as error:
        raise ConfigError(f"cannot be read ({type(error).__name__})", where=name, remedy=NPZ) from None


def _as_float(values: Tensor) -> Tensor:
    """Real numbers in torch's default precision, others as they are."""
    return values.to(torch.get_default_dtype()) if values.is_floating_point() else values


def numbers(text: str) -> tuple[int, ...]:
    """Return the whole numbers of a text like `0,50,100`; ConfigError for anything else."""
    try:
        return tuple(sorted({int(part) for part in text.split(",")}))
    except ValueError:
        raise ConfigError(f"--steps {text!r}", remedy="give whole numbers with commas, e.g. 0,50,100") from None

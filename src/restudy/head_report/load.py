"""A user's model and data for the report on heads: `module:function`, a folder of `transformers`, a .npz."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.landscape.load import NPZ, UNREADABLE, called
from restudy.methods.landscape.load import load_model as load_function
from restudy.own_model import one_line


def load_model(name: str, seed: int = 0) -> nn.Module:
    """Return the module that `module:function` builds, or the model in a local folder with a config.json.

    Raises:
        ConfigError: no module, no such folder, or a folder without the library `transformers`.
    """
    if ":" in name and not Path(name).exists():
        return load_function(name, seed)
    if not (Path(name) / "config.json").is_file():
        raise ConfigError(f"{name} is no folder with a config.json", remedy="give module:function or such a folder")
    try:
        import transformers
    except ImportError:
        raise ConfigError(
            "the library transformers is not installed", where=name, remedy="pip install transformers"
        ) from None
    try:
        config = transformers.AutoConfig.from_pretrained(name, local_files_only=True)
        architecture = (config.architectures or [""])[0]
        built = getattr(transformers, architecture, transformers.AutoModel)
        model = built.from_pretrained(name, local_files_only=True, attn_implementation="eager")
    except Exception as error:  # broken files, unknown kinds, weights that do not fit: transformers raises many kinds
        remedy = "give a folder as save_pretrained writes it"
        raise ConfigError(f"cannot be loaded ({one_line(error)})", where=name, remedy=remedy) from None
    if not isinstance(model, nn.Module):
        raise ConfigError(f"{architecture} is no torch model", where=name)
    return model


def load_data(name: str) -> dict[str, Tensor]:
    """Return the arrays of a .npz, or the mapping that `module:function` returns, as tensors by name.

    Raises:
        ConfigError: a file that cannot be read, a function that returns something else.
    """
    if not name.endswith(".npz"):
        if ":" not in name:
            raise ConfigError(f"{name!r} is neither a .npz nor module:function", where="--data", remedy=NPZ)
        found = called(name)
        if not isinstance(found, dict):
            raise ConfigError(
                f"{name} returns {type(found).__name__}", remedy="return a dict with `targets` and inputs"
            )
        return {str(key): _tensor(value, str(key), name) for key, value in found.items()}
    try:
        with np.load(name, allow_pickle=False) as arrays:
            read = {key: arrays[key] for key in arrays.files}
    except UNREADABLE as error:
        raise ConfigError(f"cannot be read ({type(error).__name__})", where=name, remedy=NPZ) from None
    return {key: _tensor(value, key, name) for key, value in read.items()}


def _tensor(values: Any, key: str, name: str) -> Tensor:
    if isinstance(values, np.ndarray) and values.dtype.kind not in "biufc":
        raise ConfigError(f"`{key}` holds {values.dtype}, no numbers", where=name, remedy=NPZ)
    try:
        return torch.as_tensor(values)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ConfigError(f"`{key}` is no array of numbers ({one_line(error)})", where=name, remedy=NPZ) from None

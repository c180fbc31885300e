"""Initial distributions of layers, drawn on the CPU so that every device gets the same weights."""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError

BatchNormPolicy = Literal["keep_stats", "reset_stats"]
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


def derive_seed(seed: int, *names: str | int) -> int:
    """Return a seed in [0, 2^63) of its own for each purpose, e.g. `derive_seed(3, "reinitialize", "fc1")`.

    The value is a hash (SHA-256), so seeds of different purposes are unrelated, and the same on every
    machine.
    """
    text = "/".join(str(part) for part in (seed, *names))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


@dataclass(frozen=True)
class Initializer:
    """The initial distribution of one leaf module.

    `draw(module, generator)` overwrites the parameters of a module on the CPU and takes its randomness from
    the generator alone. Without `draw` the module's own `reset_parameters` is used (torch's default).
    """

    name: str
    draw: Callable[[nn.Module, torch.Generator], None] | None = None


TORCH_DEFAULT = Initializer("torch")


def truncated_normal(std: float, bias: float) -> Initializer:
    """Return normal weights of standard deviation `std`, cut at two of them, and constant biases.

    TensorFlow's `truncated_normal`, used by Adebayo et al. 2018 with std .1 and bias .1 for the CNN.
    """

    def draw(module: nn.Module, generator: torch.Generator) -> None:
        weight, offset = _weight_and_bias(module)
        nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std, generator=generator)
        if offset is not None:
            nn.init.constant_(offset, bias)

    return Initializer(f"truncated_normal({std:g}, bias={bias:g})", draw)


def scaled_truncated_normal(gain: float) -> Initializer:
    """Return truncated normal weights of standard deviation `gain / sqrt(fan-in)`, biases zero.

    Adebayo et al. 2018 use gain 2 for the MLP.
    """

    def draw(module: nn.Module, generator: torch.Generator) -> None:
        weight, _ = _weight_and_bias(module)
        fan_in = weight[0].numel()
        inner = truncated_normal(gain / math.sqrt(fan_in), 0.0).draw
        if inner is not None:
            inner(module, generator)

    return Initializer(f"truncated_normal({gain:g}/sqrt(fan_in))", draw)


def initialize_module(
    module: nn.Module, initializer: Initializer, seed: int, *, bn_policy: BatchNormPolicy = "keep_stats"
) -> None:
    """Draw the parameters of one leaf module anew, in place, from `initializer` with `seed`.

    Batch norm: scale becomes 1 and shift 0; the running statistics stay (`keep_stats`, what TensorFlow's
    "trainable variables" means) or return to mean 0, variance 1 (`reset_stats`). Device, dtype, memory
    format and the global random state are left as they were. Raises ConfigError for a module that cannot be
    initialised.
    """
    if bn_policy not in ("keep_stats", "reset_stats"):
        raise ConfigError(f"bn_policy {bn_policy!r} is not known", remedy="allowed: keep_stats, reset_stats")
    if isinstance(module, BATCH_NORMS):
        _reset_batch_norm(module, bn_policy)
        return
    scratch = copy.deepcopy(module).to("cpu")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        if initializer.draw is not None:
            initializer.draw(scratch, generator)
        elif callable(reset := getattr(scratch, "reset_parameters", None)):
            reset()
        else:
            raise ConfigError(f"{type(module).__name__} has no initialiser", remedy="give it a reset_parameters method")
        new = dict(scratch.named_parameters())
        for name, parameter in module.named_parameters():
            parameter.copy_(new[name])


def _weight_and_bias(module: nn.Module) -> tuple[Tensor, Tensor | None]:
    weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
    if not isinstance(weight, Tensor):
        raise ConfigError(f"{type(module).__name__} has no weight to initialise")
    return weight, bias if isinstance(bias, Tensor) else None


def _reset_batch_norm(module: nn.Module, policy: BatchNormPolicy) -> None:
    with torch.no_grad():
        weight, bias = getattr(module, "weight", None), getattr(module, "bias", None)
        if isinstance(weight, Tensor) and isinstance(bias, Tensor):
            weight.fill_(1.0)
            bias.zero_()
        if policy == "reset_stats":
            getattr(module, "reset_running_stats")()  # noqa: B009 (a method of the private base class)

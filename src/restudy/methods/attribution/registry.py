"""What is known of each attribution method, and the options it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.attribution.passes import Problem


@dataclass(frozen=True)
class Option:
    """An option of a method: its default, what values it takes, and what it means."""

    name: str
    default: Any
    kinds: tuple[type, ...]
    says: str
    minimum: float | None = None
    choices: tuple[str, ...] = ()

    def check(self, method: str, value: Any) -> None:
        """Raise ConfigError unless the value is of an allowed type, in range and finite."""
        wrong = not isinstance(value, self.kinds) or (isinstance(value, bool) and bool not in self.kinds)
        if not wrong and isinstance(value, int | float) and not isinstance(value, bool):
            wrong = not math.isfinite(value) or (self.minimum is not None and value < self.minimum)
        if wrong or (self.choices and value not in self.choices):
            raise ConfigError(
                f"{self.name} is {value!r}" if not isinstance(value, Tensor) else f"{self.name} is a tensor",
                where=method,
                remedy=f"allowed: {self.allowed()}",
            )

    def allowed(self) -> str:
        """Say in words which values the option takes."""
        if self.choices:
            return ", ".join(self.choices)
        names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in self.kinds)
        return names + (f", at least {self.minimum:g}" if self.minimum is not None else "")


Compute = Callable[[Problem, Mapping[str, Any]], Tensor]


@dataclass(frozen=True)
class Method:
    """An attribution method.

    `needs` lists what a model must have: "convolution" (a convolution whose activation can be found),
    "rectifier" (every nonlinearity is a ReLU, ReLU6, clamp at zero or max-pooling). `signed`: values below
    zero can occur. `input_only`: the map does not depend on the model. `passes(options)`: forward and
    backward passes per image. `source`: the paper and section that define it. `check(problem)` raises
    NotApplicable after one forward pass.
    """

    name: str
    says: str
    source: str
    compute: Compute
    options: tuple[Option, ...] = ()
    needs: tuple[str, ...] = ()
    signed: bool = True
    input_only: bool = False
    random: bool = False
    passes: Callable[[Mapping[str, Any]], float] = lambda options: 1.0
    check: Callable[[Problem], None] | None = None

    def resolve(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options with their values; ConfigError names an unknown one or a value out of range."""
        known = {option.name: option for option in self.options}
        for name, value in given.items():
            if name not in known:
                raise ConfigError(
                    f"option {name!r} is not known",
                    where=self.name,
                    remedy=f"allowed: {', '.join([*known, 'batch_size'])}",
                )
            known[name].check(self.name, value)
        return {name: given.get(name, option.default) for name, option in known.items()}


_METHODS: dict[str, Method] = {}
_ORDER = (
    ("gradient", "gradient_x_input", "integrated_gradients", "smoothgrad", "smoothgrad_ig", "vargrad")
    + ("guided_backprop", "deconvolution", "gradcam", "guided_gradcam")
    + ("noise", "edges")
)


def register(method: Method) -> Method:
    """Add a method; ConfigError if its name is taken."""
    if method.name in _METHODS:
        raise ConfigError(f"method {method.name!r} is registered already")
    _METHODS[method.name] = method
    return method


def get_method(name: str) -> Method:
    """Return the method with this name; ConfigError lists the names that exist."""
    if name not in _METHODS:
        raise ConfigError(f"method {name!r} is not known", remedy=f"methods: {', '.join(registered())}")
    return _METHODS[name]


def registered() -> dict[str, Method]:
    """Return all methods by name: those of the saliency paper in its order, then the others as they came."""
    return {name: _METHODS[name] for name in dict.fromkeys((*_ORDER, *_METHODS)) if name in _METHODS}


RANDOMNESS = (
    Option("seed", 0, (int,), "seed of the noise, drawn on the CPU so that all devices agree"),
    Option("generator", None, (torch.Generator, type(None)), "CPU generator to draw from instead of the seed"),
)


def generator_of(options: Mapping[str, Any]) -> torch.Generator:
    """Return the given CPU generator, or a new one with the given seed."""
    generator = options["generator"]
    if isinstance(generator, torch.Generator):
        return generator
    return torch.Generator().manual_seed(options["seed"])

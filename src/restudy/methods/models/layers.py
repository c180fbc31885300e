"""Which parts of a model can be re-initialised, from the logits down to the input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.models.initializers import BATCH_NORMS, TORCH_DEFAULT, Initializer


@dataclass(frozen=True)
class Layer:
    """A step of the randomisation: one module or a block of modules.

    `modules` are the dotted names of the leaf modules; `initializers` gives the initial distribution of each
    (torch's own where a name is missing).
    """

    name: str
    modules: tuple[str, ...]
    initializers: dict[str, Initializer] = field(default_factory=dict)

    def initializer(self, module: str) -> Initializer:
        """Return the initial distribution of the leaf module with this dotted name."""
        return self.initializers.get(module, TORCH_DEFAULT)


def layers_top_down(model: nn.Module, example: Tensor | None = None) -> list[Layer]:
    """Return the re-initialisable layers of a model, from the logits to the input.

    A model that has a method `layers_top_down` answers itself. Any other model: every leaf module that has
    parameters and `reset_parameters`, in reverse order of execution on `example` (a batch of inputs), or in
    reverse order of registration without one; a batch norm joins the layer that runs before it. Raises
    ConfigError if nothing can be re-initialised, or if parameters would be left out.
    """
    own = getattr(model, "layers_top_down", None)
    if callable(own):
        layers: list[Layer] = own()
        return layers
    leaves = {
        name: module
        for name, module in model.named_modules()
        if callable(getattr(module, "reset_parameters", None)) and next(module.parameters(), None) is not None
    }
    covered = {id(parameter) for module in leaves.values() for parameter in module.parameters()}
    missing = [name for name, parameter in model.named_parameters() if id(parameter) not in covered]
    if missing or not leaves:
        raise ConfigError(
            f"parameters without an initialiser: {', '.join(missing) or 'the model has none'}",
            where=type(model).__name__,
            remedy="give the model a method layers_top_down() that returns restudy.methods.models.Layer objects",
        )
    groups: list[list[str]] = []
    for name in _execution_order(model, leaves, example) if example is not None else list(leaves):
        if groups and isinstance(leaves[name], BATCH_NORMS):
            groups[-1].append(name)
        else:
            groups.append([name])
    return [Layer(group[0], tuple(group)) for group in reversed(groups)]


def find_layer(model: nn.Module, name: str) -> Layer:
    """Return the layer with this name; ConfigError lists the names that exist."""
    layers = layers_top_down(model)
    for layer in layers:
        if layer.name == name:
            return layer
    raise ConfigError(
        f"layer {name!r} is not in the model", remedy=f"layers: {', '.join(layer.name for layer in layers)}"
    )


def _execution_order(model: nn.Module, leaves: dict[str, nn.Module], example: Tensor) -> list[str]:
    order: list[str] = []

    def note(name: str) -> Any:
        def hook(*_: object) -> None:
            if name not in order:
                order.append(name)

        return hook

    handles = [module.register_forward_hook(note(name)) for name, module in leaves.items()]
    states = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad():
            model(example)
    finally:
        for handle in handles:
            handle.remove()
        for module, training in states.items():
            module.training = training
    unused = [name for name in leaves if name not in order]
    return unused + order

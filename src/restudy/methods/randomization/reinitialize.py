"""Draw layers of a trained model anew, one after another or one alone."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Literal

import torch
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.models import Layer, derive_seed, find_layer, initialize_module, layers_top_down
from restudy.methods.models.initializers import BatchNormPolicy

Order = Literal["top_down", "bottom_up"]


def reinitialize(model: nn.Module, layer: str | Layer, seed: int, *, bn_policy: BatchNormPolicy = "keep_stats") -> None:
    """Overwrite one layer with a new draw from its own initial distribution, in place.

    Every module of the layer gets a seed of its own, derived from `seed` and its name, so that two layers
    never share numbers and the draw does not depend on what was drawn before. `bn_policy`: see
    `restudy.methods.models.initialize_module`. The draw differs from the one a model was built with under the same
    seed.
    """
    found = find_layer(model, layer) if isinstance(layer, str) else layer
    for name in found.modules:
        initialize_module(
            model.get_submodule(name),
            found.initializer(name),
            derive_seed(seed, "reinitialize", name),
            bn_policy=bn_policy,
        )


def cascade(
    model: nn.Module,
    *,
    seed: int,
    order: Order = "top_down",
    bn_policy: BatchNormPolicy = "keep_stats",
    layers: Sequence[Layer] | None = None,
    copies: bool = False,
) -> Iterator[tuple[str, nn.Module]]:
    """Randomise the layers cumulatively; after each one yield its name and the model.

    `top_down` runs from the logits to the input (Adebayo et al. 2018, section 3.1), `bottom_up` the other
    way. The given model is never changed. The yielded model is one working copy that the next step changes
    further; `copies=True` yields a model of its own each time. `layers` limits or replaces
    `layers_top_down(model)`.
    """
    working = copy.deepcopy(model)
    for layer in _ordered(model, order, layers):
        reinitialize(working, layer, seed, bn_policy=bn_policy)
        yield layer.name, copy.deepcopy(working) if copies else working


def independent(
    model: nn.Module,
    *,
    seed: int,
    bn_policy: BatchNormPolicy = "keep_stats",
    layers: Sequence[Layer] | None = None,
    copies: bool = False,
) -> Iterator[tuple[str, nn.Module]]:
    """Randomise one layer at a time, all others as trained (section 3.2); arguments as in `cascade`."""
    working = copy.deepcopy(model)
    for layer in _ordered(model, "top_down", layers):
        trained = {name: copy.deepcopy(model.get_submodule(name).state_dict()) for name in layer.modules}
        reinitialize(working, layer, seed, bn_policy=bn_policy)
        yield layer.name, copy.deepcopy(working) if copies else working
        with torch.no_grad():
            for name, state in trained.items():
                working.get_submodule(name).load_state_dict(state)


def _ordered(model: nn.Module, order: str, layers: Sequence[Layer] | None) -> list[Layer]:
    if order not in ("top_down", "bottom_up"):
        raise ConfigError(f"order {order!r} is not known", remedy="allowed: top_down, bottom_up")
    found = list(layers) if layers is not None else layers_top_down(model)
    return found if order == "top_down" else found[::-1]

"""Which nets the trained one is compared with: sets of layers drawn anew, and the roles that each set plays."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch import nn

from restudy.methods.models import Layer, derive_seed, layers_top_down
from restudy.methods.models.initializers import BatchNormPolicy
from restudy.methods.randomization import reinitialize


@dataclass(frozen=True)
class Role:
    """What a randomised net is an example of.

    `state`: `top_down` and `bottom_up` (cumulative), `independent` (one layer alone). `depth`: number of layers drawn
    anew, or in the independent order the layer's place from the top. `layer`: the layer drawn last.
    """

    state: str
    depth: int
    layer: str


@dataclass(frozen=True)
class Step:
    """One randomised net to measure: the layers drawn anew, the number of the draw, its roles."""

    layers: tuple[Layer, ...]
    redraw: int
    roles: tuple[Role, ...]


def steps(layers: Sequence[Layer], *, orders: Sequence[str], top_redraws: int, full_redraws: int) -> Iterator[Step]:
    """Every randomised net of the model-parameter test, each set of layers once although it plays several roles.

    Args:
        layers: from the logits to the input.
        orders: of `top_down`, `bottom_up`, `independent`.
        top_redraws: draws of the topmost layer alone. full_redraws: draws of the whole net.
    """
    roles: dict[frozenset[str], list[Role]] = {}
    count = len(layers)
    for order in orders:
        for place in range(1, count + 1):
            part, last = _part(layers, order, place)
            roles.setdefault(frozenset(layer.name for layer in part), []).append(Role(order, place, last.name))
    for names, found in roles.items():
        members = tuple(layer for layer in layers if layer.name in names)
        draws = top_redraws if names == {layers[0].name} else full_redraws if len(names) == count else 1
        for redraw in range(draws):
            yield Step(members, redraw, tuple(found))


def randomized(model: nn.Module, step: Step, seed: int, *, bn_policy: BatchNormPolicy = "keep_stats") -> nn.Module:
    """A copy of the model with the step's layers drawn from the distribution they were built with.

    Every layer has a seed of its own, and a layer gets the same draw in every set that holds it.
    """
    net = copy.deepcopy(model)
    for layer in step.layers:
        reinitialize(net, layer, derive_seed(seed, "redraw", step.redraw), bn_policy=bn_policy)
    return net.eval()


def top_down_layers(model: nn.Module, blocks: Sequence[str] = ()) -> list[Layer]:
    """The layers of a model from the logits to the input, joined into fewer steps that end at the named layers."""
    layers = layers_top_down(model)
    if not blocks:
        return layers
    joined: list[Layer] = []
    members: list[Layer] = []
    for layer in layers:
        members.append(layer)
        if layer.name in blocks or layer is layers[-1]:
            modules = tuple(name for member in members for name in member.modules)
            draws = {name: member.initializer(name) for member in members for name in member.modules}
            joined.append(Layer(layer.name, modules, draws))
            members = []
    return joined


def _part(layers: Sequence[Layer], order: str, place: int) -> tuple[Sequence[Layer], Layer]:
    if order == "top_down":
        return layers[:place], layers[place - 1]
    if order == "bottom_up":
        return layers[-place:], layers[-place]
    return [layers[place - 1]], layers[place - 1]

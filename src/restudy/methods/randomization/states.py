"""The model-parameter test: attributions of every method on every randomised state of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.attribution import attribute_many, input_only
from restudy.methods.attribution.passes import DEFAULT_BATCH_SIZE
from restudy.methods.models import Layer
from restudy.methods.models.initializers import BatchNormPolicy
from restudy.methods.randomization.reinitialize import cascade, independent

TestOrder = Literal["top_down", "bottom_up", "independent"]


@dataclass(frozen=True)
class State:
    """One state of the model and its attributions.

    `index` 0 and `layer` "original" is the trained model; step i has randomised i layers (or, in the
    independent order, the i-th layer alone). `maps[method]` has the shape (N, C, H, W) and the dtype of the
    inputs. `logits`
    (N, classes) are those of this state, if they were asked for.
    """

    order: str
    index: int
    layer: str
    maps: dict[str, Tensor]
    logits: Tensor | None = None


def randomization_test(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    order: TestOrder = "top_down",
    seed: int,
    bn_policy: BatchNormPolicy = "keep_stats",
    layers: Sequence[Layer] | None = None,
    batch_size: int | None = None,
    include_original: bool = True,
    with_logits: bool = False,
) -> Iterator[State]:
    """Yield the attributions of all methods on the trained model and then on each randomised state.

    The explained class stays `target` (N,), int64, in all states: taking the class anew from a randomised
    network is a known mistake. Noise of SmoothGrad and its kin is the same in all states (common random
    numbers). Methods share their passes (`restudy.methods.attribution.attribute_many`); maps that depend on the
    input alone are computed once. `methods` is a sequence of names or a mapping from name to options.
    Memory: one state at a time.
    """
    options = {name: dict(methods[name]) if isinstance(methods, Mapping) else {} for name in methods}
    constant = [name for name in options if input_only(name)]
    fixed = attribute_many(model, inputs, target, {name: options.pop(name) for name in constant})

    def state(index: int, layer: str, current: nn.Module) -> State:
        maps = attribute_many(current, inputs, target, options, batch_size=batch_size)
        ordered = {name: maps[name] if name in maps else fixed[name] for name in methods}
        logits = _logits(current, inputs, batch_size) if with_logits else None
        return State(order, index, layer, ordered, logits)

    if include_original:
        yield state(0, "original", model)
    if order == "independent":
        states = independent(model, seed=seed, bn_policy=bn_policy, layers=layers)
    elif order in ("top_down", "bottom_up"):
        states = cascade(model, order=order, seed=seed, bn_policy=bn_policy, layers=layers)
    else:
        raise ConfigError(f"order {order!r} is not known", remedy="allowed: top_down, bottom_up, independent")
    for index, (layer, current) in enumerate(states, start=1):
        yield state(index, layer, current)


def _logits(model: nn.Module, inputs: Tensor, batch_size: int | None) -> Tensor:
    modes = {module: module.training for module in model.modules()}
    try:
        model.eval()
        with torch.no_grad():
            size = batch_size or DEFAULT_BATCH_SIZE
            return torch.cat([model(inputs[start : start + size]) for start in range(0, len(inputs), size)])
    finally:
        for module, training in modes.items():
            module.training = training

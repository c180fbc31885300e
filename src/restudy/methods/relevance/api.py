"""Run relevance methods, and those of `restudy.methods.attribution`, on a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods import attribution
from restudy.methods.attribution.passes import NotApplicable, Problem, untouched
from restudy.methods.attribution.registry import Method
from restudy.methods.relevance.methods import METHODS

POOLS = ("sum", "abs_sum", "l2", "linf")


def methods() -> dict[str, Method]:
    """Return all methods by name: those of this package, then those of `restudy.methods.attribution`."""
    return {**METHODS, **attribution.methods()}


def attribute(
    model: nn.Module, inputs: Tensor, target: Tensor, method: str, *, batch_size: int | None = None, **options: Any
) -> Tensor:
    """Return the relevance of the inputs for a class's logit, (N, C, H, W), signed, neither pooled nor scaled.

    Arguments, result and errors are those of `restudy.methods.attribution.attribute`, which computes every
    method that this package does not add.
    """
    return attribute_many(model, inputs, target, {method: options}, batch_size=batch_size)[method]


def attribute_many(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    methods: Sequence[str] | Mapping[str, Mapping[str, Any]],
    *,
    batch_size: int | None = None,
) -> dict[str, Tensor]:
    """Return the maps of several methods, name to (N, C, H, W); passes are shared where they can be."""
    wanted = {name: dict(methods[name]) if isinstance(methods, Mapping) else {} for name in methods}
    own = {name: METHODS[name].resolve(options) for name, options in wanted.items() if name in METHODS}
    found = {}
    if own:
        with untouched(model):
            problem = Problem(model, inputs, target, batch_size)
            found = {
                name: METHODS[name].compute(problem, options).detach().to(inputs.dtype).contiguous()
                for name, options in own.items()
            }
    others = {name: options for name, options in wanted.items() if name not in own}
    if others:
        found |= attribution.attribute_many(model, inputs, target, others, batch_size=batch_size)
    return {name: found[name] for name in wanted}


def applicable(model: nn.Module, method: str, inputs: Tensor) -> tuple[bool, str]:
    """Say whether a method is defined for a model, and if not, why; one of the inputs (N, C, H, W) runs through it."""
    if method not in METHODS:
        return attribution.applicable(model, method, inputs)
    first = inputs[:1]
    try:
        attribute(model, first, torch.zeros(1, dtype=torch.int64, device=inputs.device), method)
    except NotApplicable as refusal:
        return False, refusal.what
    return True, ""


@dataclass(frozen=True)
class Heatmap:
    """One number a pixel: a method, how its channels are pooled (`sum` keeps the sign), and its options."""

    method: str
    pool: str
    options: Mapping[str, Any] = field(default_factory=dict)


HEATMAPS: dict[str, Heatmap] = {
    "sensitivity": Heatmap("gradient", "l2"),
    "sensitivity_linf": Heatmap("gradient", "linf"),
    "deconvolution": Heatmap("deconvolution", "l2"),
    "deconvolution_linf": Heatmap("deconvolution", "linf"),
    "deconvolution_no_switches": Heatmap("deconvolution_no_switches", "l2"),
    "lrp_epsilon": Heatmap("lrp_epsilon", "sum"),
    "lrp_alpha_beta": Heatmap("lrp_alpha_beta", "sum"),
    "guided_backprop": Heatmap("guided_backprop", "l2"),
    "edges": Heatmap("edges", "l2"),
}
"""Heatmaps as Samek et al. 2017 make them: norms of the derivative, sums of relevance. Every other method of
`methods()` is pooled by `sum`."""


def heatmap(name: str) -> Heatmap:
    """Return how a heatmap is made; ConfigError lists the names that exist."""
    if name in HEATMAPS:
        return HEATMAPS[name]
    if name not in methods():
        known = ", ".join(dict.fromkeys((*HEATMAPS, *methods())))
        raise ConfigError(f"heatmap {name!r} is not known", remedy=f"heatmaps: {known}")
    return Heatmap(name, "sum")


def heatmaps(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    names: Sequence[str] | Mapping[str, Heatmap],
    *,
    batch_size: int | None = None,
) -> dict[str, Tensor]:
    """Return heatmaps, name to (N, H, W), dtype and device of the inputs.

    `names`: of `HEATMAPS` or of methods, or a mapping from names of the caller's choice to `Heatmap`s. Heatmaps that
    differ by their pooling share the method's passes.
    """
    wanted = dict(names) if isinstance(names, Mapping) else {name: heatmap(name) for name in names}
    shared: dict[str, Mapping[str, Any]] = {}
    single = {}
    for name, how in wanted.items():
        if shared.setdefault(how.method, how.options) != how.options:
            single[name] = attribute(model, inputs, target, how.method, batch_size=batch_size, **how.options)
    maps = attribute_many(model, inputs, target, shared, batch_size=batch_size)
    return {name: pooled(single.get(name, maps[how.method]), how.pool) for name, how in wanted.items()}


def pooled(maps: Tensor, how: str) -> Tensor:
    """Reduce (N, C, H, W) to (N, H, W): `sum` (keeps the sign), `abs_sum`, `l2` or `linf` over the channels."""
    if how not in POOLS:
        raise ConfigError(f"pooling {how!r} is not known", remedy=f"allowed: {', '.join(POOLS)}")
    if how == "sum":
        return maps.sum(1)
    if how == "abs_sum":
        return maps.abs().sum(1)
    return maps.square().sum(1).sqrt() if how == "l2" else maps.abs().amax(1)

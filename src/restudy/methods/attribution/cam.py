"""GradCAM and guided GradCAM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, Node, get_gradient_edge

from restudy.errors import ConfigError
from restudy.methods.attribution.backprop import check_rectifiers, guided_backprop
from restudy.methods.attribution.graph import as_rectifier, operation, recorded
from restudy.methods.attribution.passes import Forward, NotApplicable, Problem
from restudy.methods.attribution.registry import Method, Option, register

# Operations that may stand between a convolution and its activation.
_BETWEEN = frozenset(
    ["NativeBatchNorm", "CudnnBatchNorm", "MiopenBatchNorm", "Add", "Cat", "MaxPool2DWithIndices"]
    + ["AvgPool2D", "ToCopy", "Clone", "Alias", "BackwardHookFunction"]
)


@dataclass
class Activation:
    """The feature maps that GradCAM reads, (B, K, h, w), and where in the graph they were put out."""

    value: Tensor
    edge: GradientEdge


def class_activation(problem: Problem, options: Mapping[str, Any]) -> Tensor:
    """Return GradCAM at the size of its layer, (N, 1, h, w), not below zero.

    w_k = spatial mean of d logit / d A_k, map = ReLU(sum_k w_k A_k) (Selvaraju et al. 2017, eq. 1, 2).
    """

    def compute() -> Tensor:
        parts = []
        for points, target in problem.parts(problem.inputs, problem.target):
            with _watched(problem.model, options["layer"]) as seen:
                forward = Forward(problem.model, points, target)
            activation = _named(seen, options["layer"]) if options["layer"] else _last_activation(forward.score)
            (gradient,) = torch.autograd.grad(forward.score, [activation.edge])
            weights = gradient.mean((2, 3), keepdim=True)
            parts.append((weights * activation.value).sum(1, keepdim=True).relu())
        return torch.cat(parts)

    result: Tensor = problem.remember(("gradcam", options["layer"]), compute)
    return result


def resized(problem: Problem, options: Mapping[str, Any]) -> Tensor:
    """Return GradCAM resized to the inputs, (N, 1, H, W); bilinear, corners not aligned."""
    low = class_activation(problem, options)
    size = problem.inputs.shape[2:]
    if options["resize"] == "nearest":
        return F.interpolate(low, size, mode="nearest")
    return F.interpolate(low, size, mode="bilinear", align_corners=False)


def _last_activation(score: Tensor) -> Activation:
    """Find the activation of the convolution that ran last: the rectifier that follows it."""
    nodes = recorded(score)
    convolutions = [node for node in nodes if operation(node).endswith("Convolution")]
    if not convolutions:
        raise NotApplicable("the model has no convolution", where="gradcam")
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for parent, _ in node.next_functions:
            if parent is not None:
                users.setdefault(parent, []).append(node)
    node = max(convolutions, key=lambda found: found._sequence_nr())
    while len(following := users.get(node, [])) == 1:
        node = following[0]
        if (rectifier := as_rectifier(node)) is not None:
            return Activation(_four_dimensional(rectifier.output()), GradientEdge(node, 0))
        if operation(node) not in _BETWEEN:
            break
    raise NotApplicable(
        "no ReLU follows the last convolution",
        where="gradcam",
        remedy="name the module whose output to read: layer='...'",
    )


@contextmanager
def _watched(model: nn.Module, layer: str | None) -> Iterator[list[Activation]]:
    """Note the outputs of the named module while the block runs."""
    seen: list[Activation] = []
    if layer is None:
        yield seen
        return
    modules = dict(model.named_modules(remove_duplicate=False))
    if layer not in modules:
        raise ConfigError(f"layer {layer!r} is not in the model", where="gradcam", remedy=_suggestion(modules))

    def note(_module: nn.Module, _inputs: object, output: object) -> None:
        if not isinstance(output, Tensor) or not output.requires_grad:
            raise NotApplicable(f"layer {layer!r} puts out nothing that depends on the inputs", where="gradcam")
        # A copy: an in-place activation may follow. The edge still means the module's own output.
        seen.append(Activation(output.detach().clone(), get_gradient_edge(output)))

    handle = modules[layer].register_forward_hook(note)
    try:
        yield seen
    finally:
        handle.remove()


def _named(seen: list[Activation], layer: str) -> Activation:
    if len(seen) != 1:
        raise NotApplicable(
            f"layer {layer!r} runs {len(seen)} times in one pass",
            where="gradcam",
            remedy="name a layer that runs once, or leave layer out",
        )
    return Activation(_four_dimensional(seen[0].value), seen[0].edge)


def _four_dimensional(value: Tensor) -> Tensor:
    if value.dim() != 4:
        raise NotApplicable(f"the layer puts out {tuple(value.shape)}, not (N, K, h, w)", where="gradcam")
    return value


def _suggestion(modules: Mapping[str, nn.Module]) -> str:
    names = [name for name, module in modules.items() if name and not list(module.children())]
    return f"modules: {', '.join(names[-12:])}"


def _check_convolution(problem: Problem) -> None:
    _last_activation(Forward(problem.model, problem.inputs, problem.target).score)


def _check_both(problem: Problem) -> None:
    check_rectifiers(problem)
    _check_convolution(problem)


_OPTIONS = (
    Option(
        "layer",
        None,
        (str, type(None)),
        "module whose output is read; default: the last convolution's activation",
    ),
    Option("resize", "bilinear", (str,), "interpolation to the input's size", choices=("bilinear", "nearest")),
)

register(
    Method(
        "gradcam",
        "feature maps weighted by their mean gradient, positive part, resized, same in all channels",
        "Selvaraju et al. 2017, arXiv:1610.02391, section 3",
        lambda problem, options: resized(problem, options).expand_as(problem.inputs),
        options=_OPTIONS,
        needs=("convolution",),
        signed=False,
        check=_check_convolution,
    )
)
register(
    Method(
        "guided_gradcam",
        "guided backpropagation times resized GradCAM",
        "Selvaraju et al. 2017, arXiv:1610.02391, section 3.2",
        lambda problem, options: guided_backprop(problem) * resized(problem, options),
        options=_OPTIONS,
        needs=("convolution", "rectifier"),
        passes=lambda options: 2.0,
        check=_check_both,
    )
)

"""Run attribution methods on a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn

# These modules register their methods when they are imported.
from restudy.methods.attribution import backprop, cam, controls, gradients, noisy  # noqa: F401
from restudy.methods.attribution.graph import unsupported_modules
from restudy.methods.attribution.passes import NotApplicable, Problem, untouched
from restudy.methods.attribution.registry import Method, get_method, registered


def attribute(
    model: nn.Module,
    inputs: Tensor,
    target: Tensor,
    method: str,
    *,
    batch_size: int | None = None,
    **options: Any,
) -> Tensor:
    """Return the attribution of a class's logit to the inputs.

    Args:
        model: maps (N, C, H, W) to logits (N, classes). It runs in evaluation mode, whatever its mode is;
        modes,
            parameters, gradients, `requires_grad` flags and hooks come back unchanged.
        inputs: (N, C, H, W), floating point, finite, on the model's device.
        target: (N,) int64, the class explained for each input; never chosen here.
        method: a name from `methods()`.
        batch_size: most images in one pass (default 64); bounds memory, not the result.
        options: those of the method, e.g. `steps`, `samples`, `seed`, `layer`; see `methods()[name].options`.

    Returns:
        (N, C, H, W), dtype and device of the inputs, signed, neither pooled nor scaled.

    Raises:
        ConfigError: unknown method or option, a value out of range, arguments that do not fit together.
        NotApplicable: the method is not defined for this model; the message says why.

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
    """Return the attributions of several methods, name to (N, C, H, W), sharing passes where they can.

    `methods` is a sequence of names or a mapping from name to options. Gradient and gradient x input share
    one pass, SmoothGrad and VarGrad their noisy passes (same samples, spread and seed), guided GradCAM
    those of its two factors. Arguments and errors as in `attribute`.
    """
    chosen = [
        (get_method(name), get_method(name).resolve(methods[name] if isinstance(methods, Mapping) else {}))
        for name in methods
    ]
    with untouched(model):
        problem = Problem(model, inputs, target, batch_size)
        return {method.name: _finish(method.compute(problem, options), inputs) for method, options in chosen}


def applicable(model: nn.Module, method: str, inputs: Tensor | None = None) -> tuple[bool, str]:
    """Say whether a method is defined for a model, and if not, why.

    Without inputs the modules are looked at, which can miss what stands in the model's own code; with inputs
    (N, C, H, W) one of them runs through the model and the answer is that of `attribute`.
    """
    found = get_method(method)
    try:
        if inputs is None or found.check is None:
            _check_modules(model, found)
        else:
            with untouched(model):
                first = inputs[:1]
                found.check(Problem(model, first, first.new_zeros(1).long()))
    except NotApplicable as refusal:
        return False, refusal.what
    return True, ""


def methods() -> dict[str, Method]:
    """Return all attribution methods by name, with what is known of each."""
    return registered()


def input_only(method: str) -> bool:
    """Say whether the maps of a method depend on the input alone, never on the model."""
    return get_method(method).input_only


def _check_modules(model: nn.Module, method: Method) -> None:
    if "convolution" in method.needs and not any(isinstance(module, nn.Conv2d) for module in model.modules()):
        raise NotApplicable("the model has no convolution", where=method.name)
    if "rectifier" in method.needs and (found := unsupported_modules(model)):
        raise NotApplicable(f"no rule for {', '.join(found)}", where=method.name)


def _finish(result: Tensor, inputs: Tensor) -> Tensor:
    return result.detach().to(inputs.dtype).contiguous()

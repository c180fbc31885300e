"""Forward and backward passes through a model that is left exactly as it was."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError, RestudyError
from restudy.methods.attribution.stem import find_stem

DEFAULT_BATCH_SIZE = 64
"""Images in one pass: beyond it a CPU core gains nothing (measured 32 to 128 alike on a small CNN)."""


class NotApplicable(RestudyError):
    """A method that is not defined for a model; the message names the method and the reason."""


@contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Run the model in evaluation mode without parameter gradients; restore every flag afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        model.eval()
        for parameter, _ in flags:
            parameter.requires_grad_(False)
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for parameter, flag in flags:
            parameter.requires_grad_(flag)
        for module, training in modes:
            module.training = training


class Forward:
    """One forward pass: `leaf` (B, C, H, W) is what gradients refer to, `score` the sum of the logits."""

    def __init__(self, model: nn.Module, points: Tensor, target: Tensor) -> None:
        self.leaf = points.detach().clone().requires_grad_()
        logits = model(self.leaf.clone())  # a copy: a model may start with an in-place operation
        self.score = _target_logits(logits, target).sum()

    def gradient(self) -> Tensor:
        """Return d score / d leaf; frees the graph."""
        if (stem := find_stem(self.score, self.leaf)) is not None:
            (above,) = torch.autograd.grad(self.score, [stem.edge])
            return stem.input_gradient(above, (self.leaf.shape[2], self.leaf.shape[3]))
        (result,) = torch.autograd.grad(self.score, self.leaf)
        return result


class Problem:
    """A model, inputs (N, C, H, W) and classes (N,), with what methods have already computed for them.

    `remember` lets methods share passes: gradient and gradient x input, SmoothGrad and VarGrad.
    """

    def __init__(self, model: nn.Module, inputs: Tensor, target: Tensor, batch_size: int | None = None) -> None:
        check_inputs(model, inputs, target, batch_size)
        # Copies: tensors made in inference mode cannot take part in a backward pass.
        self.model, self.inputs = model, inputs.detach().clone()
        self.target = target.to(inputs.device, copy=True)
        self.batch_size = batch_size or DEFAULT_BATCH_SIZE
        self._memo: dict[Hashable, Any] = {}

    def remember(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return what `compute` returned the first time it was asked for with this key."""
        if key not in self._memo:
            self._memo[key] = compute()
        return self._memo[key]

    def per_batch(self, points: Tensor, target: Tensor, compute: Callable[[Forward], Tensor]) -> Tensor:
        """Concatenate what `compute` makes of forward passes over at most `batch_size` points each."""
        parts = self.parts(points, target)
        return torch.cat([compute(Forward(self.model, part, goal)).detach() for part, goal in parts])

    def parts(self, points: Tensor, target: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Split points (M, C, H, W) and classes (M,) into parts of at most `batch_size`."""
        for start in range(0, len(points), self.batch_size):
            stop = start + self.batch_size
            yield points[start:stop], target[start:stop]

    def gradients(self, points: Tensor, target: Tensor) -> Tensor:
        """Return d logit / d input at points (M, C, H, W) for classes (M,), same shape and dtype."""
        return self.per_batch(points, target, Forward.gradient)


def check_inputs(model: nn.Module, inputs: Tensor, target: Tensor, batch_size: int | None) -> None:
    """Raise ConfigError, saying what was expected, unless the arguments fit together."""

    def refuse(what: str, remedy: str) -> ConfigError:
        return ConfigError(what, where="attribute", remedy=remedy)

    if inputs.dim() != 4 or inputs.shape[0] == 0 or not inputs.is_floating_point():
        raise refuse(
            f"inputs have shape {tuple(inputs.shape)} and dtype {inputs.dtype}",
            "give floats (N, C, H, W), N >= 1",
        )
    if not bool(torch.isfinite(inputs).all()):
        raise refuse("inputs hold values that are not finite", "remove NaN and infinity")
    if target.shape != inputs.shape[:1] or target.dtype != torch.int64:
        raise refuse(
            f"target has shape {tuple(target.shape)} and dtype {target.dtype}",
            f"give one class for each input: int64 ({inputs.shape[0]},)",
        )
    if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
        raise refuse(f"batch_size is {batch_size!r}", "give an integer of at least 1")
    for parameter in model.parameters():
        if parameter.is_floating_point() and (parameter.dtype, parameter.device) != (
            inputs.dtype,
            inputs.device,
        ):
            raise refuse(
                f"inputs: {inputs.dtype} on {inputs.device}, model: {parameter.dtype} on {parameter.device}",
                "move one to the other's dtype and device",
            )
    for name, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is None:
            raise NotApplicable(
                f"{name} normalises by the batch, so that an input's attribution would depend on the others",
                where="attribute",
                remedy="use batch norm with running statistics",
            )


def _target_logits(logits: object, target: Tensor) -> Tensor:
    if not isinstance(logits, Tensor) or logits.dim() != 2 or logits.shape[0] != target.shape[0]:
        shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
        raise ConfigError(
            f"the model returns {shape}",
            where="attribute",
            remedy=f"it must return logits ({len(target)}, classes)",
        )
    classes = logits.shape[1]
    if int(target.min()) < 0 or int(target.max()) >= classes:
        raise ConfigError(
            f"target holds {int(target.min())} to {int(target.max())}",
            where="attribute",
            remedy=f"the model has classes 0 to {classes - 1}",
        )
    if not logits.requires_grad:
        raise NotApplicable("the logits do not depend on the inputs by differentiable operations", where="attribute")
    return logits.gather(1, target[:, None])

"""Runs a model while a rule takes the place of the gradient of every operation.

The model's own code runs; a `TorchFunctionMode` sees every call of torch in it, so functional, in-place and reused
activations, residual sums and pools of any kind are covered whatever module they stand in. A batch norm is folded into
the convolution before it on the way. An operation without a rule is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from restudy.methods.attribution.passes import NotApplicable
from restudy.methods.relevance.rules import (
    Affine,
    AlphaBetaRule,
    NoSwitches,
    Rule,
    convolution,
    matrix,
    reduced,
    scaling,
    transposed,
)  # fmt: skip

Back = Callable[[Tensor], tuple[Tensor | None, ...]]

_NAMES = """
    view reshape flatten unflatten permute transpose t movedim swapaxes squeeze unsqueeze contiguous clone to float
    double type expand expand_as __getitem__ chunk split tensor_split unbind cat concat stack pad narrow select
    index_select dropout dropout2d identity detach channel_shuffle pixel_shuffle pixel_unshuffle flip roll
    requires_grad_ view_as reshape_as feature_dropout alpha_dropout
    """
STRUCTURE = frozenset(_NAMES.split())
"""Operations that copy or move values: relevance goes back where the value came from, as a gradient does."""
MAX_POOLS = frozenset(
    ("max_pool2d", "_max_pool2d", "max_pool2d_with_indices", "amax")
    + ("adaptive_max_pool2d", "_adaptive_max_pool2d", "adaptive_max_pool2d_with_indices")
)
AVERAGES = frozenset(("avg_pool2d", "adaptive_avg_pool2d", "mean", "sum", "interpolate", "upsample"))
SUMS: Mapping[str, float] = {
    "add": 1.0, "__add__": 1.0, "__radd__": 1.0, "__iadd__": 1.0, "add_": 1.0, "sub": -1.0, "__sub__": -1.0,
    "__isub__": -1.0, "sub_": -1.0, "subtract": -1.0,
}  # fmt: skip
PRODUCTS = frozenset(
    ("mul", "__mul__", "__rmul__", "__imul__", "mul_", "multiply")
    + ("div", "__truediv__", "__itruediv__", "div_", "divide")
)
RECTIFIERS = frozenset(
    ("relu", "relu_", "relu6", "hardtanh", "hardtanh_", "threshold", "threshold_", "_threshold")
    + ("clamp", "clamp_", "clamp_min", "clamp_min_", "clip", "clip_")
)
_TOLERANCE = 1e-3


class _Replaced(torch.autograd.Function):
    """An output that was computed already, with a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, back: Back, output: list[Tensor], *inputs: Tensor) -> Tensor:
        """Return the output; `inputs` are what it depends on."""
        ctx.back = back
        return output.pop()

    @staticmethod
    def backward(ctx: Any, relevance: Tensor) -> Any:
        """Return what the rule hands to each input."""
        return (None, None, *ctx.back(relevance))


class Tracer(TorchFunctionMode):
    """Inside this context torch calls on tensors that depend on the input hand back what the rule says."""

    def __init__(self, rule: Rule | NoSwitches, method: str) -> None:
        super().__init__()
        self.rule, self.method = rule, method
        self._from: dict[int, tuple[Tensor, Tensor, Affine]] = {}

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        inputs = [value for value in _flat((args, given)) if value.requires_grad]
        name = getattr(func, "__name__", "")
        if not inputs or name in ("__get__", "__set__"):
            return func(*args, **given)
        handler = self._handler(name)
        if handler is not None:
            return handler(name, func, args, given)
        result = func(*args, **given)
        if any(value.requires_grad for value in _flat((result,))) and name not in STRUCTURE:
            raise NotApplicable(
                f"no rule for the operation {name}",
                where=self.method,
                remedy="it is defined for linear operations, ReLU, ReLU6, pooling, batch norm and sums",
            )
        return result

    def _handler(self, name: str) -> Callable[[str, Any, Any, Any], Tensor] | None:
        if name in RECTIFIERS:
            return self._rectifier
        if name in MAX_POOLS:
            return self._max_pool
        if isinstance(self.rule, NoSwitches):
            return self._plain if name in {*SUMS, *PRODUCTS, *AVERAGES, "conv2d", "linear", "batch_norm"} else None
        found: dict[str, Any] = {"conv2d": self._convolution, "linear": self._matrix, "batch_norm": self._batch_norm}
        if name in AVERAGES:
            return self._average
        if name in SUMS:
            return self._sum
        return self._product if name in PRODUCTS else found.get(name)

    def _plain(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        if name in PRODUCTS and sum(v.requires_grad for v in _flat((args, given))) > 1:
            raise self._refusal("a product of two activations")
        result: Tensor = func(*args, **given)
        return result

    def _refusal(self, what: str) -> NotApplicable:
        return NotApplicable(f"no rule for {what}", where=self.method)

    def _rectifier(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        x, low, high = _bounds(name, args, given)
        if low != 0.0 or high <= 0.0:
            raise self._refusal(f"{name} from {low} to {high}")
        output = x.detach().clamp(0.0, high)
        return _replace(lambda relevance: (self.rule.rectifier(relevance),), output, x)

    def _max_pool(self, name: str, func: Any, args: Any, given: Any) -> Any:
        if not isinstance(self.rule, NoSwitches):
            return func(*args, **given)
        if "adaptive" in name or name == "amax":
            raise self._refusal(f"{name} without switches")
        x, size, stride, padding = _pooling(args, given)
        with torch.no_grad():
            output = func(x.detach(), *args[1:], **given)
        back = lambda gradient: (transposed(lambda v: F.avg_pool2d(v, size, stride, padding), x, gradient),)  # noqa: E731
        if isinstance(output, tuple):
            return _replace(back, output[0], x), output[1]
        return _replace(back, output, x)

    def _average(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        x, rest = args[0], args[1:]
        if name in ("interpolate", "upsample") and given.get("mode", "nearest") not in ("nearest", "bilinear", "area"):
            raise self._refusal(f"interpolation of mode {given.get('mode')}")
        return self._by_share("average", lambda v: func(v, *rest, **given), x)

    def _by_share(self, what: str, op: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        rule = self._rule()
        with torch.no_grad():
            output, source = op(x.detach()), x.detach()

        def back(relevance: Tensor) -> tuple[Tensor, ...]:
            found = (rule.average(op, source, output, relevance),)
            rule.note(what, relevance, found)
            return found

        return _replace(back, output, x)

    def _sum(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        first, second = args[0], args[1] if len(args) > 1 else given["other"]
        sign = SUMS[name] * given.get("alpha", 1)
        terms = [t for t in (first, second) if isinstance(t, Tensor) and t.requires_grad]
        rule = self._rule()
        with torch.no_grad():
            parts = [_detached(first), _detached(second) * sign if sign != 1 else _detached(second)]
            output = parts[0] + parts[1]
        flows = [p for p, t in zip(parts, (first, second), strict=True) if isinstance(t, Tensor) and t.requires_grad]

        def back(relevance: Tensor) -> tuple[Tensor, ...]:
            found = rule.addition(tuple(flows), output, relevance)
            rule.note("sum" if len(flows) > 1 else "constant", relevance, found)
            return found

        return _replace(back, output, *terms)

    def _product(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        first, second = args[0], args[1] if len(args) > 1 else given["other"]
        flows = [t for t in (first, second) if isinstance(t, Tensor) and t.requires_grad]
        if len(flows) != 1 or ("div" in name and flows[0] is not first) or given.get("rounding_mode"):
            raise self._refusal("a product or quotient of two activations")
        with torch.no_grad():
            a, b = _detached(first), _detached(second)
            output = a / b if "div" in name else a * b
        # One input for each output: relevance stays where it is.
        return _replace(lambda relevance: (reduced(relevance, flows[0]),), output, flows[0])

    def _convolution(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        x, weight, bias, stride, padding, dilation, groups = _conv_arguments(args, given)
        if isinstance(padding, str) or x.dim() != 4 or weight.requires_grad:
            raise self._refusal("a convolution of this form")
        op = convolution(weight.detach(), _maybe(bias), stride, padding, dilation, groups)
        with torch.no_grad():
            output = func(x.detach(), weight, bias, stride, padding, dilation, groups)
        found = self._affine("convolution", op, output, x)
        self._from[id(found)] = (found, x, op)
        return found

    def _matrix(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        x, weight, bias = (*args, *(given.get(n) for n in ("input", "weight", "bias")[len(args) :]))[:3]
        if weight.requires_grad:
            raise self._refusal("a product of two activations")
        with torch.no_grad():
            output = func(x.detach(), weight, bias)
        return self._affine("linear", matrix(weight.detach(), _maybe(bias)), output, x)

    def _batch_norm(self, name: str, func: Any, args: Any, given: Any) -> Tensor:
        names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
        values = dict(zip(names, args, strict=False)) | given
        x, mean, variance = values["input"], values["running_mean"], values["running_var"]
        if values.get("training") or mean is None or variance is None:
            raise self._refusal("batch norm with the batch's own statistics")
        gain = torch.rsqrt(variance + values.get("eps", 1e-5))
        gain = gain * values["weight"].detach() if values.get("weight") is not None else gain
        shift = -mean * gain + (values["bias"].detach() if values.get("bias") is not None else 0.0)
        with torch.no_grad():
            output = func(x.detach(), *args[1:], **{n: v for n, v in given.items() if n != "input"})
        shape = (1, -1, *(1,) * (x.dim() - 2))
        kept = self._from.pop(id(x), None)
        if kept is None:
            return self._affine("batch norm", scaling(gain.view(shape), shift.view(shape)), output, x)
        _, source, before = kept
        bias = shift.view(shape) + (0.0 if before.bias is None else before.bias * gain.view(shape))
        folded = Affine(before.forward, before.backward, before.weight * gain.view(-1, 1, 1, 1), bias)
        return self._affine("convolution", folded, output, source)

    def _affine(self, what: str, op: Affine, output: Tensor, x: Tensor) -> Tensor:
        rule, source, kept = self._rule(), x.detach(), output.detach()

        def back(relevance: Tensor) -> tuple[Tensor, ...]:
            found = (rule.affine(op, source, kept, relevance),)
            rule.note(what, relevance, found)
            if rule.steps is not None and isinstance(rule, AlphaBetaRule):
                mixed, handed = rule.split(op, source, relevance)
                rule.steps[-1].mixed_in = mixed.flatten(1).sum(1)
                rule.steps[-1].mixed_out = handed.flatten(1).sum(1)
            return found

        return _replace(back, output, x)

    def _rule(self) -> Rule:
        assert isinstance(self.rule, Rule)
        return self.rule


def propagate(model: nn.Module, inputs: Tensor, target: Tensor, rule: Rule | NoSwitches, method: str) -> Tensor:
    """Return what arrives at the inputs (N, C, H, W) when the target logits (N,) are propagated by a rule.

    Relevance starts as the logit itself; deconvolution (`NoSwitches`) starts as a gradient does, with 1. The model must
    be in evaluation mode, its parameters without gradients (`restudy.methods.attribution.passes.untouched`).

    Raises:
        NotApplicable: an operation that has no rule, or a model whose own code escapes the tracing.
    """
    with torch.no_grad():
        plain = model(inputs[:1].clone())
    leaf = inputs.detach().clone().requires_grad_()
    tracer = Tracer(rule, method)
    with tracer:
        logits = model(leaf.clone())
    if not isinstance(logits, Tensor) or logits.dim() != 2 or not logits.requires_grad:
        raise NotApplicable("the model does not return logits (N, classes) that depend on the inputs", where=method)
    gap = (logits[:1].detach() - plain).abs().max()
    if not bool(gap <= _TOLERANCE * plain.abs().max().clamp(min=1.0)):
        raise NotApplicable(
            "the model changes tensors in place, or draws random numbers, in a way that cannot be followed",
            where=method,
        )
    score = logits.gather(1, target[:, None])
    start = torch.ones_like(score) if isinstance(rule, NoSwitches) else score.detach()
    (found,) = torch.autograd.grad(score, leaf, start)
    return found


def _replace(back: Back, output: Tensor, *inputs: Tensor) -> Tensor:
    found: Tensor = _Replaced.apply(back, [output], *inputs)  # type: ignore[no-untyped-call]
    return found


def _flat(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _flat(value)
        elif isinstance(value, dict):
            yield from _flat(value.values())


def _detached(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _maybe(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.detach()


def _pair(value: Any) -> tuple[int, int]:
    found = tuple(value) if isinstance(value, list | tuple) else (value,)
    return (int(found[0]), int(found[-1]))


def _conv_arguments(args: Any, given: Any) -> tuple[Any, ...]:
    names = ("input", "weight", "bias", "stride", "padding", "dilation", "groups")
    defaults = {"bias": None, "stride": 1, "padding": 0, "dilation": 1, "groups": 1}
    values = defaults | dict(zip(names, args, strict=False)) | given
    padding = values["padding"]
    if padding == "valid":
        padding = 0
    if padding == "same":
        sides = [d * (k - 1) for d, k in zip(_pair(values["dilation"]), values["weight"].shape[2:], strict=True)]
        padding = [side // 2 for side in sides] if not any(side % 2 for side in sides) else padding
    kept = padding if isinstance(padding, str) else _pair(padding)
    return (values["input"], values["weight"], values["bias"], _pair(values["stride"]), kept,
            _pair(values["dilation"]), values["groups"])  # fmt: skip


def _pooling(args: Any, given: Any) -> tuple[Any, Any, Any, Any]:
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    values = (
        {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False} | dict(zip(names, args, strict=False)) | given
    )
    if _pair(values["dilation"]) != (1, 1) or values["ceil_mode"]:
        raise NotApplicable("no rule for a pool with dilation or ceil_mode", where="deconvolution_no_switches")
    return values["input"], values["kernel_size"], values["stride"] or values["kernel_size"], values["padding"]


def _bounds(name: str, args: Any, given: Any) -> tuple[Tensor, float, float]:
    x = args[0] if args else given["input"]
    if name.startswith("relu"):
        return x, 0.0, 6.0 if name == "relu6" else torch.inf
    first, second = {"hardtanh": ("min_val", "max_val"), "threshold": ("threshold", "value")}.get(
        name.strip("_"), ("min", "max")
    )
    low = args[1] if len(args) > 1 else given.get(first, -1.0 if name.startswith("hardtanh") else None)
    high = args[2] if len(args) > 2 else given.get(second, 1.0 if name.startswith("hardtanh") else None)
    if name.strip("_") == "threshold":
        return x, float(low), torch.inf if high == 0 else -torch.inf
    fixed = [-torch.inf if low is None else low, torch.inf if high is None else high]
    if any(isinstance(bound, Tensor) for bound in fixed):
        return x, torch.nan, torch.nan
    return x, float(fixed[0]), float(fixed[1])

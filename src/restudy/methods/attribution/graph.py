"""Reads the graph that autograd recorded: which operations a model applied; changes their gradient.

Looking at modules misses functional, in-place and reused activations; the recorded graph shows every
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from restudy.methods.attribution.passes import NotApplicable

_NAMES = """
    AccumulateGrad Clone Alias Contiguous Convolution MkldnnConvolution CudnnConvolution Linear MkldnnLinear
    Addmm Mm Mv Bmm Baddbmm Add Sub Rsub Neg Mul Div
    T Transpose Permute View UnsafeView ReshapeAlias AsStrided Squeeze Unsqueeze Expand Repeat Cat Stack
    Select Slice Split SplitWithSizes Unbind Narrow Gather IndexSelect Flip Roll
    Sum Mean AvgPool2D AdaptiveAvgPool2D MkldnnAdaptiveAvgPool2D
    NativeBatchNorm CudnnBatchNorm MiopenBatchNorm ConstantPadNd ReflectionPad2D ReplicationPad2D
    UpsampleNearest2D UpsampleBilinear2D PixelShuffle PixelUnshuffle ToCopy BackwardHookFunction
    """
LINEAR = frozenset(_NAMES.split())
MAX_POOLS = frozenset(["MaxPool2DWithIndices", "AdaptiveMaxPool2D", "MaxPool3DWithIndices"])
_MATRIX_OPERANDS = {"Mm": (0, 1), "Mv": (0, 1), "Bmm": (0, 1), "Addmm": (1, 2), "Baddbmm": (1, 2)}

_OTHER_ACTIVATIONS = (
    nn.ELU, nn.SELU, nn.CELU, nn.GELU, nn.SiLU, nn.Mish, nn.Sigmoid, nn.Tanh, nn.Softmax, nn.LogSoftmax,
    nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.Softplus, nn.Softsign, nn.Hardswish, nn.Hardsigmoid, nn.Hardshrink,
    nn.Softshrink, nn.Tanhshrink, nn.LogSigmoid, nn.Threshold, nn.GLU, nn.MultiheadAttention, nn.LayerNorm,
    nn.GroupNorm, nn.InstanceNorm2d, nn.LocalResponseNorm,
)  # fmt: skip


def operation(node: Node) -> str:
    """Return the name of the forward operation, e.g. "Relu" for ReluBackward0."""
    return node.name().rsplit("::", 1)[-1].split("Backward")[0]


def recorded(score: Tensor) -> list[Node]:
    """Return all nodes behind a tensor, each once, those nearest to it first (no order beyond that)."""
    found: dict[Node, None] = {}
    waiting = [score.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found[node] = None
            waiting.extend(parent for parent, _ in node.next_functions)
    return list(found)


@dataclass(frozen=True)
class Rectifier:
    """A ReLU in any spelling: `low` is 0, `high` infinity or the upper clamp (6 for ReLU6)."""

    node: Node
    high: float

    def output(self) -> Tensor:
        """Return the activation that the operation put out."""
        if operation(self.node) == "Relu":
            return _saved(self.node, "result").detach()
        return _saved(self.node, "self").detach().clamp(0.0, self.high)

    def gate(self) -> Tensor | None:
        """Return where 0 < input < high, or None where autograd applies just that gate."""
        if operation(self.node) in ("Relu", "Hardtanh"):
            return None
        value = _saved(self.node, "self")
        return (value > 0) & (value < self.high)


def as_rectifier(node: Node) -> Rectifier | None:
    """Return the node as a rectifier, or None if it is something else."""
    name = operation(node)
    if name == "Relu":
        return Rectifier(node, torch.inf)
    bounds = {"Hardtanh": ("min_val", "max_val"), "Clamp": ("min", "max"), "ClampMin": ("min", "")}.get(name)
    if bounds is None:
        return None
    low, high = (getattr(node, f"_saved_{bound}", None) if bound else None for bound in bounds)
    if low is None or isinstance(low, Tensor) or isinstance(high, Tensor) or float(low) != 0.0:
        return None
    top = torch.inf if high is None else float(high)
    return Rectifier(node, top) if top > 0 else None


def rectifiers(score: Tensor, model: nn.Module, method: str) -> list[Rectifier]:
    """Return the rectifiers behind a score; NotApplicable if any other nonlinear operation stands there."""
    owned = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    found: list[Rectifier] = []
    unknown: dict[str, None] = {}
    for node in recorded(score):
        if (rectifier := as_rectifier(node)) is not None:
            found.append(rectifier)
        elif not _is_linear(node, owned):
            unknown[operation(node)] = None
    if unknown:
        raise NotApplicable(
            f"no rule for the operation {', '.join(unknown)}",
            where=method,
            remedy="it is defined for linear operations, ReLU, ReLU6 and max-pooling only",
        )
    return found


def override(found: Sequence[Rectifier], rule: Callable[[Rectifier, Tensor, Tensor], Tensor]) -> None:
    """Replace the gradient of rectifiers by `rule(rectifier, gradient of its input, gradient of its output)`.

    The change lasts as long as the recorded graph, which one backward pass uses up.
    """

    def hook_for(rectifier: Rectifier) -> Callable[..., tuple[Tensor | None, ...]]:
        def hook(below: tuple[Tensor, ...], above: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
            return (rule(rectifier, below[0], above[0]), *below[1:])

        return hook

    for rectifier in found:
        rectifier.node.register_hook(hook_for(rectifier))


def unsupported_modules(model: nn.Module) -> list[str]:
    """Return names of modules (with class) that are nonlinear and neither rectifiers nor max-pools."""
    return [
        f"{name} ({type(module).__name__})"
        for name, module in model.named_modules()
        if isinstance(module, _OTHER_ACTIVATIONS)
    ]


def _is_linear(node: Node, owned: set[int]) -> bool:
    name = operation(node)
    if name in MAX_POOLS:
        return True
    if name not in LINEAR:
        return False
    depends = [parent is not None for parent, _ in node.next_functions]
    if name in _MATRIX_OPERANDS:
        return sum(depends[index] for index in _MATRIX_OPERANDS[name]) == 1
    if name.endswith(("Convolution", "Linear")):
        return not any(depends[1:])
    if name.endswith("BatchNorm"):
        return not getattr(node, "_saved_training", False) and not any(depends[1:])
    if name == "Mul":
        return sum(depends) == 1 and _constant(_saved(node, "other" if depends[0] else "self"), owned)
    if name == "Div":
        return not any(depends[1:]) and _constant(_saved(node, "other"), owned)
    return True


def _constant(factor: Tensor, owned: set[int]) -> bool:
    """Say whether a factor is a number or belongs to the model: x * (x > 0) is a ReLU in disguise."""
    return factor.dim() == 0 or factor.untyped_storage().data_ptr() in owned


def _saved(node: Node, name: str) -> Tensor:
    value = getattr(node, f"_saved_{name}")
    if not isinstance(value, Tensor):
        raise NotApplicable(f"{node.name()} does not keep its {name}", where="attribute")
    return value

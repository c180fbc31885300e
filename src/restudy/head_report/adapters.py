"""The attention modules of any torch model: what they are, their weights, how a head is shut and removed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from restudy.head_report.removal import PrunedAttention, shrink_projections

Store = Callable[[str, Tensor], None]
"""Called with a module's name and its weights (B, H, T, S) at every forward pass."""


@dataclass(frozen=True)
class Attention:
    """One attention module.

    Attributes:
        name: where it stands in the model. module: it. heads: how many heads. out: the output projection, whose columns
            belong to the heads in order. kind: `torch` (nn.MultiheadAttention) or `projections` (transformers).
    """

    name: str
    module: nn.Module
    heads: int
    out: nn.Linear
    kind: str

    def columns(self) -> Tensor:
        """The output projection by head, a view (d_model, H, d_head)."""
        return self.out.weight.view(self.out.weight.shape[0], self.heads, -1)


def find_attention(model: nn.Module) -> tuple[list[Attention], dict[str, str]]:
    """Attention modules that can be handled, and those that cannot: name -> why not."""
    modules = dict(model.named_modules())
    found: list[Attention] = []
    refused: dict[str, str] = {}
    for name, module in modules.items():
        if isinstance(module, nn.MultiheadAttention):
            if reason := _refusal(module):
                refused[name] = reason
            else:
                found.append(Attention(name, module, module.num_heads, module.out_proj, "torch"))
        elif (parts := _projections(name, module, modules)) is not None:
            found.append(Attention(name, module, parts[0], parts[1], "projections"))
    known = [a.name for a in found] + list(refused)
    for name, module in modules.items():
        inside = any(k == name or k.startswith(f"{name}.") or name.startswith(f"{k}.") for k in known if k)
        if "attention" in type(module).__name__.lower() and not inside and name:
            refused[name] = f"{type(module).__name__} is no attention that is known here"
    return found, {n: r for n, r in refused.items() if not any(n.startswith(f"{o}.") for o in refused)}


def _refusal(module: nn.MultiheadAttention) -> str:
    if not module._qkv_same_embed_dim:
        return "keys or values have a width of their own"
    if module.bias_k is not None or module.add_zero_attn:
        return "it adds keys of its own"
    return ""


def _projections(name: str, module: nn.Module, modules: dict[str, nn.Module]) -> tuple[int, nn.Linear] | None:
    """Heads and output projection of an attention of `transformers`: Marian, BART and T5's kin, or BERT's."""
    for names, out in ((("q_proj", "k_proj", "v_proj"), "out_proj"), (("query", "key", "value"), None)):
        if not all(isinstance(getattr(module, n, None), nn.Linear) for n in names):
            continue
        heads = getattr(module, "num_heads", None) or getattr(module, "num_attention_heads", None)
        parent = modules.get(name.rpartition(".")[0])
        last = getattr(module, out, None) if out else getattr(getattr(parent, "output", None), "dense", None)
        if isinstance(heads, int) and isinstance(last, nn.Linear):
            return heads, last
    return None


@contextmanager
def observing(attentions: list[Attention], store: Store) -> Iterator[None]:
    """Inside, every forward pass hands the weights of every head to `store`."""
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    undo: list[Callable[[], None]] = []
    try:
        for attention in attentions:
            undo.append(_watch(attention, store))
        yield
    finally:
        for act in undo:
            act()
        torch.backends.mha.set_fastpath_enabled(fast)


def _watch(attention: Attention, store: Store) -> Callable[[], None]:
    module = attention.module
    if attention.kind == "projections":

        def hook(_: nn.Module, __: Any, output: Any) -> None:
            if isinstance(output, tuple) and len(output) > 1 and isinstance(output[1], Tensor):
                store(attention.name, output[1].detach())

        return module.register_forward_hook(hook).remove
    original = module.forward
    signature = inspect.signature(original)

    def forward(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor | None]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        asked, mean = bound.arguments["need_weights"], bound.arguments["average_attn_weights"]
        bound.arguments |= {"need_weights": True, "average_attn_weights": False}
        output, weights = original(*bound.args, **bound.kwargs)
        store(attention.name, weights.detach())
        return output, (weights.mean(1) if mean else weights) if asked else None

    module.forward = forward
    return lambda: module.__dict__.pop("forward", None)


@contextmanager
def shut(attention: Attention, heads: list[int]) -> Iterator[None]:
    """Inside, these heads contribute nothing: their columns of the output projection are 0."""
    with torch.no_grad():
        kept = attention.out.weight.detach().clone()
        attention.columns()[:, heads] = 0.0
    try:
        yield
    finally:
        with torch.no_grad():
            attention.out.weight.copy_(kept)


def remove_heads(model: nn.Module, kept: dict[str, list[int]]) -> None:
    """Leave only these heads in each named attention module, in smaller matrices, in place.

    Args:
        model: as `find_attention` found it. kept: name -> heads that stay, in rising order; modules that are not named
            stay whole.
    """
    for attention in find_attention(model)[0]:
        heads = kept.get(attention.name)
        if heads is None or len(heads) == attention.heads:
            continue
        if isinstance(attention.module, nn.MultiheadAttention):
            parent, _, leaf = attention.name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, PrunedAttention(attention.module, heads))
            for module in model.modules():
                if isinstance(module, nn.TransformerEncoder):
                    module.use_nested_tensor = False  # its nested tensors are made for torch's own attention
        else:
            shrink_projections(attention.module, attention.out, attention.heads, heads)

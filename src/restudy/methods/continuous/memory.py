"""Memory that a forward pass keeps for its backward pass, counted tensor by tensor instead of read from the system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def saved_bytes(run: Callable[[], Any], backward: bool = False) -> int:
    """Bytes of the tensors that autograd saves while `run()` computes; a tensor saved twice counts twice.

    With `backward`, `run` returns a scalar whose backward pass is made under the count as well: the adjoint method
    differentiates the field locally in every evaluation, and the largest of those graphs belongs to its memory. The
    result is then the bytes alive at the worst moment, which a saved tensor leaves when its graph is freed.
    """
    alive = peak = 0

    class _Kept:
        """Counts while autograd holds it."""

        def __init__(self, tensor: Tensor) -> None:
            nonlocal alive, peak
            # Detached: an operation's own output would otherwise hold its graph, and the graph it.
            self.tensor, self.bytes = tensor.detach(), tensor.numel() * tensor.element_size()
            alive += self.bytes
            peak = max(peak, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= self.bytes

    with torch.autograd.graph.saved_tensors_hooks(_Kept, lambda kept: kept.tensor):
        result = run()
        if backward:
            result.backward()
    return peak

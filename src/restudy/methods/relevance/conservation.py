"""Does relevance keep its total? From layer to layer, and from the logit to the pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.attribution.passes import check_inputs, untouched
from restudy.methods.relevance.methods import METHODS, RULES
from restudy.methods.relevance.rules import Step
from restudy.methods.relevance.tracing import propagate


@dataclass(frozen=True)
class Conservation:
    """Totals of one propagation: the logits (N,), the relevance (N, C, H, W), every operation from the top down."""

    logits: Tensor
    relevance: Tensor
    steps: tuple[Step, ...]

    def gap(self) -> Tensor:
        """Return |sum of relevance - logit| / |logit|, (N,)."""
        return (self.relevance.flatten(1).sum(1) - self.logits).abs() / self.logits.abs()

    def layer_gaps(self, *, mixed: bool = False) -> Tensor:
        """Return |handed on - arrived| / |arrived| for every operation, (operations, N).

        `mixed`: of the relevance at neurons with contributions of both signs, where the alpha-beta rule conserves it,
        relative to the logit; an operation that does not split by sign keeps its plain value.
        """
        rows = []
        for step in self.steps:
            if mixed and step.mixed_in is not None and step.mixed_out is not None:
                rows.append((step.mixed_out - step.mixed_in).abs() / self.logits.abs())
            else:
                rows.append((step.handed_on - step.arrived).abs() / step.arrived.abs())
        return torch.stack(rows)

    def one_sided_share(self) -> Tensor:
        """Return the largest share over the layers of relevance at neurons with contributions of one sign, (N,)."""
        parts = [1 - s.mixed_in / s.arrived for s in self.steps if s.mixed_in is not None]
        return torch.stack(parts).abs().amax(0) if parts else torch.zeros_like(self.logits)


def conservation(
    model: nn.Module, inputs: Tensor, target: Tensor, method: str, options: Mapping[str, Any] | None = None
) -> Conservation:
    """Propagate by `lrp_epsilon` or `lrp_alpha_beta` and keep the totals of every operation.

    Arguments as in `restudy.methods.attribution.attribute`. Biases take a share: models without them keep totals.
    """
    if method not in RULES:
        raise ConfigError(f"method {method!r} propagates no relevance", remedy=f"allowed: {', '.join(RULES)}")
    check_inputs(model, inputs, target, None)
    rule = RULES[method](METHODS[method].resolve(options or {}))
    rule.steps = []
    with untouched(model):
        found = propagate(model, inputs, target, rule, method).detach()
        with torch.no_grad():
            logits = model(inputs).gather(1, target[:, None])[:, 0]
    return Conservation(logits, found, tuple(rule.steps))

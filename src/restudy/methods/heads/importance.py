"""Importance of heads: the loss without a head (ablation), and the slope of the loss at its gate (Michel 2019)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.methods.transformer import Transformer
from restudy.methods.transformer.model import Gates

Pair = tuple[Tensor, Tensor]
"""Source int64 (B, S) with EOS, target int64 (B, T) with BOS and EOS; both padded."""


def token_losses(model: Transformer, pair: Pair, gates: Gates | None = None) -> Tensor:
    """Cross-entropy in nats of every target token after BOS, (B, T - 1), 0 at padding."""
    source, target = pair
    logits = model(source, target[:, :-1], gates)
    padding = model.shape.padding
    return F.cross_entropy(logits.transpose(1, 2), target[:, 1:], ignore_index=padding, reduction="none")


@torch.no_grad()
def sentence_losses(model: Transformer, pairs: Iterable[Pair], gates: Gates | None = None) -> tuple[Tensor, Tensor]:
    """Sum of the cross-entropy (nats) and number of tokens of every sentence, float64 (N,) each."""
    sums, counts = [], []
    for pair in pairs:
        sums.append(token_losses(model, pair, gates).double().sum(1).cpu())
        counts.append((pair[1][:, 1:] != model.shape.padding).double().sum(1).cpu())
    return torch.cat(sums), torch.cat(counts)


def cross_entropy(model: Transformer, pairs: Iterable[Pair], gates: Gates | None = None) -> float:
    """Cross-entropy in nats per target token."""
    sums, counts = sentence_losses(model, pairs, gates)
    return float(sums.sum() / counts.sum())


def ablation(model: Transformer, pairs: list[Pair], kind: str = "encoder") -> Tensor:
    """Rise of the cross-entropy (nats per token) when one head alone is shut, float64 (layers, H).

    Source sentences are encoded anew for each head, so the model must be in evaluation mode.
    """
    base = cross_entropy(model, pairs)
    gates = model.open_gates(kind)
    found = torch.zeros(gates[kind].shape, dtype=torch.float64)
    for layer in range(found.shape[0]):
        for head in range(found.shape[1]):
            gates[kind][layer, head] = 0.0
            found[layer, head] = cross_entropy(model, pairs, gates) - base
            gates[kind][layer, head] = 1.0
    return found


def gradient_importance(model: Transformer, pairs: Iterable[Pair], kind: str = "encoder") -> Tensor:
    """Mean over batches of |d loss / d gate| at open gates (Michel, Levy, Neubig 2019), float64 (layers, H).

    The loss is the cross-entropy per token of a batch.
    """
    total, batches = torch.zeros(model.open_gates(kind)[kind].shape, dtype=torch.float64), 0
    for pair in pairs:
        gates = {k: g.requires_grad_() for k, g in model.open_gates(kind).items()}
        losses = token_losses(model, pair, gates)
        mean = losses.sum() / (pair[1][:, 1:] != model.shape.padding).sum()
        (slope,) = torch.autograd.grad(mean, gates[kind])
        total += slope.abs().double().cpu()
        batches += 1
    return total / max(batches, 1)

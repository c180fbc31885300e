"""Greedy and beam decoding with a cache of keys and values."""

from __future__ import annotations

import torch
from torch import Tensor

from restudy.methods.transformer.model import Gates, Transformer


@torch.no_grad()
def greedy(
    model: Transformer,
    source: Tensor,
    *,
    bos: int,
    eos: int,
    longest: int,
    gates: Gates | None = None,
    cached: bool = True,
) -> list[list[int]]:
    """The likeliest token at every step.

    Args:
        model: in evaluation mode. source: int64 (B, S), padded. bos, eos: ids. longest: most tokens of a translation.
        gates: as in `Transformer`. cached: False computes the whole prefix anew at every step (for comparison).

    Returns:
        One list of token ids for each sentence, without BOS and EOS.
    """
    memory, mask = model.encode(source, gates)
    caches = model.start(memory) if cached else []
    found = torch.full((len(source), longest + 1), bos, dtype=torch.int64, device=source.device)
    ended = torch.zeros(len(source), dtype=torch.bool, device=source.device)
    for position in range(longest):
        if cached:
            logits = model.step(found[:, position], caches, mask, position, gates)
        else:
            logits = model.logits(model.decode(found[:, : position + 1], memory, mask, gates)[:, -1])
        chosen = logits.argmax(1).masked_fill(ended, eos)
        found[:, position + 1] = chosen
        ended |= chosen == eos
        if bool(ended.all()):
            break
    return [_until(row, eos) for row in found[:, 1 : position + 2].tolist()]


@torch.no_grad()
def beam(
    model: Transformer, source: Tensor, *, bos: int, eos: int, longest: int, width: int = 4, alpha: float = 0.6,
    gates: Gates | None = None,
) -> list[list[int]]:  # fmt: skip
    """Beam search; finished hypotheses compete by log-probability / ((5 + length) / 6)^alpha (Wu and others 2016).

    Args:
        width: hypotheses kept. alpha: 0 compares plain log-probabilities. Others as in `greedy`.

    Returns:
        One list of token ids for each sentence, without BOS and EOS.
    """
    batch, device = len(source), source.device
    memory, mask = model.encode(source, gates)
    rows = torch.arange(batch, device=device).repeat_interleave(width)
    caches = [cache.select(rows) for cache in model.start(memory)]
    mask = mask if mask is None else mask[rows]
    scores = torch.full((batch, width), -torch.inf, device=device)
    scores[:, 0] = 0.0
    found = torch.full((batch * width, 1), bos, dtype=torch.int64, device=device)
    best: list[tuple[float, list[int]]] = [(-float("inf"), []) for _ in range(batch)]
    for position in range(longest):
        step = torch.log_softmax(model.step(found[:, -1], caches, mask, position, gates), 1)
        total = (scores.view(-1, 1) + step).view(batch, -1)
        values, places = total.topk(2 * width, dim=1)
        origin, tokens = places // step.shape[1], places % step.shape[1]
        penalty = ((5 + position + 1) / 6) ** alpha
        ends = tokens == eos
        for b, k in (ends & (torch.arange(2 * width, device=device) < width)).nonzero().tolist():
            value = float(values[b, k]) / penalty
            if value > best[b][0]:
                best[b] = (value, found[b * width + int(origin[b, k])].tolist()[1:])
        values = values.masked_fill(ends, -torch.inf)
        scores, kept = values.topk(width, dim=1)
        rows = (torch.arange(batch, device=device).unsqueeze(1) * width + origin.gather(1, kept)).view(-1)
        found = torch.cat([found[rows], tokens.gather(1, kept).view(-1, 1)], 1)
        caches = [cache.select(rows) for cache in caches]
        last = ((5 + longest) / 6) ** alpha
        if all(float(scores[b, 0]) / last <= best[b][0] for b in range(batch)):
            break
    for b in range(batch):
        if best[b][0] == -float("inf"):
            best[b] = (0.0, found[b * width].tolist()[1:])
    return [tokens for _, tokens in best]


def _until(tokens: list[int], eos: int) -> list[int]:
    return tokens[: tokens.index(eos)] if eos in tokens else tokens

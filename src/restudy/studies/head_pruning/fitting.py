"""Training of one arm: deterministic, resumable at every checkpoint to the same bits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import RestudyError, ResultError
from restudy.methods.models import derive_seed
from restudy.methods.pruning import HeadGates, probability_open
from restudy.methods.training import load_checkpoint, save_checkpoint
from restudy.methods.transformer import Transformer

Pair = tuple[Tensor, Tensor]
CHUNK = 50
"""Random states of dropout and gates begin anew every so many steps, so a resumed run sees the same ones."""
CHECKPOINT_EVERY = 400


@dataclass(frozen=True)
class Recipe:
    """How an arm is trained; stands in every checkpoint.

    Attributes:
        arm, seed: names of the run. steps: optimiser steps. first_step: where in the order of the data it begins.
        learning_rate: peak of Adam's, reached after `warmup` steps, then linearly to 0. trained: all parameters, or the
            encoder and the source embedding (the decoder is frozen). penalty: lambda, nats per open head. gate_rate:
            constant step size of log_alpha. smoothing: label smoothing.
    """

    arm: str
    seed: int
    steps: int
    learning_rate: float
    warmup: int
    first_step: int = 0
    trained: Literal["all", "encoder"] = "all"
    penalty: float = 0.0
    gate_rate: float = 0.05
    smoothing: float = 0.1

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        rise = min(1.0, (step + 1) / max(self.warmup, 1))
        fall = (self.steps - step) / max(self.steps - self.warmup, 1)
        return self.learning_rate * min(rise, fall)


@dataclass(frozen=True)
class Record:
    """Loss of a batch (nats, smoothed, with the penalty) after `step` steps, and P(g = 0) of the gates by kind."""

    step: int
    loss: float
    shut: dict[str, list[list[float]]]


def fit(
    model: Transformer,
    batches: Sequence[Pair],
    recipe: Recipe,
    gates: HeadGates | None = None,
    checkpoint: Path | None = None,
    watch: Callable[[Record], None] | None = None,
) -> list[Record]:
    """Train a model (and its gates) in place; it is left in evaluation mode.

    Args:
        batches: source and target of every batch; an epoch sees all in an order drawn from seed and epoch.
        gates: sampled anew for every step, with an L0 penalty. checkpoint: file written every 400 steps and at the end.
        watch: called with every new record.

    Returns:
        A record after every 100 steps and the last.

    Raises:
        RestudyError: the loss is not finite. ResultError: a checkpoint of another run.
    """
    parameters = _trained(model, recipe)
    groups: list[dict[str, object]] = [{"params": parameters, "lr": recipe.learning_rate}]
    if gates is not None:
        groups.append({"params": list(gates.parameters()), "lr": recipe.gate_rate})
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.98), eps=1e-9, fused=True)
    state: dict[str, nn.Module | torch.optim.Optimizer] = {"model": model, "optimizer": optimizer}
    state |= {"gates": gates} if gates is not None else {}
    step, records = _load(checkpoint, recipe, state)
    model.train()
    with torch.random.fork_rng(devices=[]):
        noise = torch.Generator()
        while step < recipe.steps:
            if step % CHUNK == 0:
                torch.manual_seed(derive_seed(recipe.seed, "dropout", recipe.first_step + step))
                noise.manual_seed(derive_seed(recipe.seed, "gates", recipe.first_step + step))
            optimizer.param_groups[0]["lr"] = recipe.rate(step)
            pair = batches[_batch(recipe.first_step + step, len(batches), recipe.seed)]
            loss = _loss(model, pair, recipe, gates, noise)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
            optimizer.step()
            step += 1
            if step % 100 == 0 or step == recipe.steps:
                value = float(loss.detach())
                if not math.isfinite(value):
                    raise RestudyError(f"{recipe.arm} diverged at step {step}", remedy="lower its learning rate")
                records.append(Record(step, value, _shut(gates)))
                if watch is not None:
                    watch(records[-1])
            if checkpoint is not None and (step % CHECKPOINT_EVERY == 0 or step == recipe.steps):
                content: dict[str, Any] = {name: part.state_dict() for name, part in state.items()}
                content |= {"recipe": asdict(recipe), "step": step, "records": [asdict(r) for r in records]}
                save_checkpoint(checkpoint, content)
    model.requires_grad_(True).eval()
    return records


def _loss(model: Transformer, pair: Pair, recipe: Recipe, gates: HeadGates | None, noise: torch.Generator) -> Tensor:
    """Smoothed cross-entropy per target token, plus lambda times the expected number of open gates."""
    source, target = pair
    drawn = gates.sample(noise) if gates is not None else None
    memory, mask = model.encode(source, drawn)
    wanted = target[:, 1:]
    hidden = model.decode(target[:, :-1], memory, mask, drawn)[wanted != model.shape.padding]
    wanted = wanted[wanted != model.shape.padding]
    loss = F.cross_entropy(model.logits(hidden), wanted, label_smoothing=recipe.smoothing)
    return loss if gates is None else loss + recipe.penalty * gates.penalty()


def _trained(model: Transformer, recipe: Recipe) -> list[nn.Parameter]:
    if recipe.trained == "all":
        return list(model.parameters())
    model.requires_grad_(False)
    parts: list[nn.Module] = [model.source_embedding, model.encoder_layers, model.encoder_norm]
    chosen = [parameter for part in parts for parameter in part.parameters()]
    for parameter in chosen:
        parameter.requires_grad_(True)
    return chosen


_ORDERS: dict[tuple[int, int, int], list[int]] = {}


def _batch(step: int, count: int, seed: int) -> int:
    """Which batch a step sees."""
    key = (seed, step // count, count)
    if key not in _ORDERS:
        _ORDERS.clear()
        generator = torch.Generator().manual_seed(derive_seed(seed, "order", step // count))
        _ORDERS[key] = torch.randperm(count, generator=generator).tolist()
    return _ORDERS[key][step % count]


def _shut(gates: HeadGates | None) -> dict[str, list[list[float]]]:
    if gates is None:
        return {}
    return {kind: (1 - probability_open(a.detach(), gates.law)).tolist() for kind, a in gates.log_alpha.items()}


def _load(
    path: Path | None, recipe: Recipe, state: dict[str, nn.Module | torch.optim.Optimizer]
) -> tuple[int, list[Record]]:
    content = load_checkpoint(path) if path is not None else None
    if content is None:
        return 0, []
    if content["recipe"] != asdict(recipe):
        raise ResultError("the checkpoint is of another run", where=str(path), remedy="delete it")
    for name, part in state.items():
        part.load_state_dict(content[name])
    return int(content["step"]), [Record(**record) for record in content["records"]]

"""Stages `train` and `prune`, and the same on real text: unpruned models, L0 gates, and what pruned ones must beat."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.errors import RestudyError
from restudy.methods.heads import confidence, cross_entropy
from restudy.methods.models import derive_seed
from restudy.methods.pruning import HeadGates, keep_highest, probability_open, random_mask
from restudy.methods.text.batches import Pair
from restudy.methods.training import Resumable, keep_freed_memory
from restudy.methods.transformer import Transformer, remove_heads

from .measure import token_mean, translation_quality
from .models import Row, Run, named, runs

if TYPE_CHECKING:
    from restudy.tracking.live import LiveCurves

CHUNK = 50
"""Random states of dropout and gates begin anew every so many steps, so a resumed run sees the same ones."""


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


def fit(
    model: Transformer,
    batches: Sequence[Pair],
    recipe: Recipe,
    gates: HeadGates | None = None,
    checkpoint: Path | None = None,
    live: LiveCurves | None = None,
) -> list[Row]:
    """Train a model (and its gates) in place; it is left in evaluation mode.

    Args:
        batches: source and target of every batch; an epoch sees all in an order drawn from seed and epoch.
        gates: sampled anew for every step, with an L0 penalty. checkpoint: file written every 400 steps and at the end.

    Returns:
        After every 100 steps and the last: `step`, `loss` of a batch (nats, smoothed, with the penalty), and `shut`,
        P(g = 0) of the gates by kind.

    Raises:
        RestudyError: the loss is not finite. ResultError: a checkpoint of another run.
    """
    parameters = _trained(model, recipe)
    groups: list[dict[str, Any]] = [{"params": parameters, "lr": recipe.learning_rate}]
    records: list[Row] = []
    parts: dict[str, Any] = {"model": model, "records": records}
    if gates is not None:
        groups.append({"params": list(gates.parameters()), "lr": recipe.gate_rate})
        parts["gates"] = gates
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.98), eps=1e-9, fused=True)
    run = Resumable(checkpoint, recipe, live, optimizer=optimizer, **parts)
    noise = torch.Generator()
    model.train()
    with torch.random.fork_rng(devices=[]):
        for chunk in run.units(math.ceil(recipe.steps / CHUNK), every=8):
            steps = range(chunk * CHUNK, min((chunk + 1) * CHUNK, recipe.steps))
            torch.manual_seed(derive_seed(recipe.seed, "dropout", recipe.first_step + steps.start))
            noise.manual_seed(derive_seed(recipe.seed, "gates", recipe.first_step + steps.start))
            for step in steps:
                optimizer.param_groups[0]["lr"] = recipe.rate(step)
                epoch, place = divmod(recipe.first_step + step, len(batches))
                loss = _loss(model, batches[_order(recipe.seed, epoch, len(batches))[place]], recipe, gates, noise)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
                optimizer.step()
            if steps.stop % 100 == 0 or steps.stop == recipe.steps:
                value = float(loss.detach())
                if not math.isfinite(value):
                    raise RestudyError(f"{recipe.arm} diverged at step {steps.stop}", remedy="lower its learning rate")
                records.append({"step": steps.stop, "loss": value, "shut": _shut(gates)})
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


@lru_cache(maxsize=1)
def _order(seed: int, epoch: int, count: int) -> list[int]:
    generator = torch.Generator().manual_seed(derive_seed(seed, "order", epoch))
    return torch.randperm(count, generator=generator).tolist()


def _shut(gates: HeadGates | None) -> dict[str, list[list[float]]]:
    if gates is None:
        return {}
    return {kind: (1 - probability_open(a.detach(), gates.law)).tolist() for kind, a in gates.log_alpha.items()}


def train(
    context: Context,
    *,
    seeds: Sequence[int],
    track: str,
    arms: Sequence[str],
    sentences: int,
    held_out: int,
    batch_tokens: int,
    d_model: int,
    heads: int,
    d_ff: int,
    encoder_layers: int,
    decoder_layers: int,
    dropout: float,
    max_distance: int,
    steps: int,
    learning_rate: float,
    warmup: int,
) -> Outputs:
    """Train the arms of every seed, on a language of its own or on the real text.

    Returns the tables `setup` (one row for each seed: what later stages build the same data and models from) and
    `training` (loss of one batch, smoothed), and the tensors `models`; those of track `text` have names that start
    with `text_`.
    """
    keep_freed_memory()
    setup: Row = {"track": track, "sentences": sentences, "held_out": held_out, "batch_tokens": batch_tokens}
    setup |= {"d_model": d_model, "heads": heads, "d_ff": d_ff, "encoder_layers": encoder_layers}
    setup |= {"decoder_layers": decoder_layers, "dropout": dropout, "max_distance": max_distance}
    setup |= {"steps": steps, "learning_rate": learning_rate, "warmup": warmup}
    curves: list[Row] = []
    tensors: dict[str, Tensor] = {}
    for seed in seeds:
        run = Run(context, track, {"seed": seed} | setup)
        for arm in arms:
            model, recipe = run.build(arm), Recipe(arm, seed, steps, learning_rate, warmup)
            path = context.checkpoints / f"s{seed}-{arm}.pt"
            records = fit(model, run.batches, recipe, checkpoint=path, live=context.live(seed))
            curves += [{"seed": seed, "arm": arm, "step": r["step"], "loss_nats": r["loss"]} for r in records]
            tensors |= {f"s{seed}.{arm}.{name}": value.cpu() for name, value in model.state_dict().items()}
    return named(track, setup=[{"seed": seed} | setup for seed in seeds], training=curves, models=tensors)


def prune(
    context: Context,
    *,
    seeds: Sequence[int],
    track: str,
    penalties: Sequence[float],
    penalty_all: float | None,
    steps: int,
    learning_rate: float,
    gate_rate: float,
    random_masks: int,
    random_tuned: int,
    scratch: bool,
) -> Outputs:
    """Prune encoder heads at every lambda of `penalties`, all heads at `penalty_all`; train what they are judged by.

    Without `penalty_all` the arm `all` is left out.

    Arms of `scores`: `l0` (the pruned model, heads really removed; tuned False: its mask on the unpruned model),
    `l0_soft` (with deterministic gates in place of 0 and 1), `open` (as many steps with all gates at 1), `random` and
    `confidence` (as many heads chosen at random, or by confidence; with and without as many steps), `scratch` (the
    same heads from new random weights, all steps), `all` (gates on every head, everything trained).

    Returns `gates`, `gate_paths` (P(g = 0) over training), `scores`, and the tensors `pruned` (the models under their
    gates, before removal).
    """
    keep_freed_memory()
    tables: dict[str, list[Row]] = {"gates": [], "gate_paths": [], "scores": []}
    tensors: dict[str, Tensor] = {}
    for run in runs(context, track, seeds):
        # All arms but scratch go on from the trained model, on the batches that come next.
        recipe = Recipe("open", run.seed, steps, learning_rate, 50, run.setup["steps"], "encoder", gate_rate=gate_rate)
        own = _Pruning(run, run.trained("relative"), recipe, tables)
        ones = copy.deepcopy(own.model)
        own.fit(ones, "open")
        own.score("open", ones, kept=own.model.open_gates("encoder")["encoder"].numel())
        for penalty in penalties:
            tensors |= dict(own.encoder(penalty, random_masks, random_tuned, scratch))
        if penalty_all is not None:
            own.all_heads(penalty_all)
    return named(track, **tables, pruned=tensors)


@dataclass
class _Pruning:
    """One seed: its unpruned model, how it is trained on, and the tables to which its arms add rows."""

    run: Run
    model: Transformer
    recipe: Recipe
    tables: dict[str, list[Row]]
    pairs: list[Pair] = field(init=False)

    def __post_init__(self) -> None:
        self.pairs = self.run.moved(self.run.data.pairs())

    def fit(self, model: Transformer, arm: str, gates: HeadGates | None = None, **changes: Any) -> list[Row]:
        """Train a model, with a checkpoint of its own."""
        recipe = replace(self.recipe, arm=arm, **changes)
        context = self.run.context
        path = context.checkpoints / f"s{recipe.seed}-{arm}-{recipe.penalty:g}.pt"
        return fit(model, self.run.batches, recipe, gates, path, context.live(recipe.seed))

    def score(
        self, arm: str, model: Transformer, *, kept: int, penalty: float = 0.0, mask: int = 0, tuned: bool = True,
        translate: bool = True, gates: Mapping[str, Tensor] | None = None,
    ) -> None:  # fmt: skip
        """Cross-entropy and, where asked, BLEU of a model on all held-out sentences."""
        found = {"cross_entropy": (cross_entropy(model, self.pairs, gates), "nats")}
        if translate:
            found |= translation_quality(model, self.run.data, self.pairs, gates)
        row = {"seed": self.run.seed, "arm": arm, "penalty": penalty, "mask": mask, "tuned": tuned, "kept": kept}
        for metric, (value, unit) in found.items():
            self.tables["scores"].append(row | {"metric": metric, "value": value, "unit": unit})

    def encoder(
        self, penalty: float, random_masks: int, random_tuned: int, scratch: bool
    ) -> Iterator[tuple[str, Tensor]]:
        """L0 gates on the encoder's heads, then masks of as many heads; yields the tensors of the pruned model."""
        seed, setup = self.run.seed, self.run.setup
        model = copy.deepcopy(self.model)
        gates = self.gated(model, "encoder", penalty, "encoder")
        mask = gates.binary()["encoder"].cpu()
        kept = int(mask.sum())
        self.score("l0_soft", model, kept=kept, penalty=penalty, translate=False, gates=gates.deterministic())
        self.score("l0", remove_heads(model, {"encoder": mask.bool()}), kept=kept, penalty=penalty)
        self.masked("l0", mask, penalty, tuned=False)
        generator = torch.Generator().manual_seed(derive_seed(seed, "masks"))
        for number in range(random_masks):
            drawn = random_mask((mask.shape[0], mask.shape[1]), kept, generator)
            self.masked("random", drawn, penalty, number=number, tuned=False)
            if number < random_tuned:
                self.masked("random", drawn, penalty, number=number, tuned=True)
        sure = keep_highest(token_mean(confidence, self.model, self.run.data.held_out), kept)
        for tuned in (False, True):
            self.masked("confidence", sure, penalty, tuned=tuned)
        if scratch:
            anew = remove_heads(self.run.build("relative", "scratch"), {"encoder": mask.bool()})
            own = {name: setup[name] for name in ("learning_rate", "warmup")}
            own |= {"steps": setup["steps"] + self.recipe.steps, "first_step": 0, "trained": "all"}
            self.fit(anew, "scratch", penalty=penalty, **own)
            self.score("scratch", anew, kept=kept, penalty=penalty)
        for name, value in model.state_dict().items():
            yield f"s{seed}.{penalty:g}.{name}", value.cpu()

    def masked(self, arm: str, mask: Tensor, penalty: float, *, number: int = 0, tuned: bool) -> None:
        """The unpruned model without the other heads, as it is or after as many steps as pruning takes."""
        model = remove_heads(self.model, {"encoder": mask.bool()})
        if tuned:
            self.fit(model, f"{arm}-{number}", penalty=penalty)
        kept = int(mask.sum())
        self.score(arm, model, kept=kept, penalty=penalty, mask=number, tuned=tuned, translate=tuned)

    def all_heads(self, penalty: float) -> None:
        """Gates on all heads, every parameter trained."""
        model = copy.deepcopy(self.model)
        gates = self.gated(model, "all", penalty, "encoder", "decoder", "cross", trained="all")
        keep = {kind: gate.cpu().bool() for kind, gate in gates.binary().items()}
        kept = sum(int(mask.sum()) for mask in keep.values())
        self.score("all", remove_heads(model, keep), kept=kept, penalty=penalty)

    def gated(self, model: Transformer, arm: str, penalty: float, *kinds: str, **changes: Any) -> HeadGates:
        """Train a model with gates; their final state and their way there become rows."""
        shapes = {kind: (len(gate), gate.shape[1]) for kind, gate in model.open_gates(*kinds).items()}
        gates = HeadGates(shapes).to(self.run.context.device)
        records = self.fit(model, arm, gates, penalty=penalty, **changes)
        test = gates.deterministic()
        for kind, log_alpha in gates.log_alpha.items():
            for (layer, head), value in np.ndenumerate(log_alpha.detach().cpu().numpy()):
                place = {"seed": self.run.seed, "arm": arm, "penalty": penalty}
                place |= {"kind": kind, "layer": layer, "head": head}
                values = {"log_alpha": float(value), "gate": float(test[kind][layer, head])}
                self.tables["gates"].append(place | values)
                paths = ((record["step"], record["shut"][kind][layer][head]) for record in records)
                self.tables["gate_paths"] += [place | {"step": step, "shut": shut} for step, shut in paths]
        return gates

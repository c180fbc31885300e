"""Stages `prune` and `text_prune`: L0 gates on a trained model, and every arm that a pruned model is compared with."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.heads import cross_entropy
from restudy.methods.models import derive_seed
from restudy.methods.pruning import HeadGates, keep_highest, random_mask
from restudy.methods.training import keep_freed_memory
from restudy.methods.transformer import Transformer, remove_heads
from restudy.studies.head_pruning.corpus import Corpus, Pair
from restudy.studies.head_pruning.fitting import Recipe, Record, fit
from restudy.studies.head_pruning.quality import mean_confidence, translation_quality
from restudy.studies.head_pruning.tidy import GATE_PATHS, GATES, SCORES
from restudy.studies.head_pruning.track import Row, Setup, Track
from restudy.studies.head_pruning.train import build, moved, trained


@dataclass
class _Run:
    """One seed: its data, its unpruned model, and the rows that its arms add."""

    context: Context
    setup: Setup
    data: Corpus
    batches: list[Pair]
    model: Transformer
    pairs: list[Pair]
    steps: int
    learning_rate: float
    gate_rate: float
    scores: list[Row] = field(default_factory=list)
    gates: list[Row] = field(default_factory=list)
    paths: list[Row] = field(default_factory=list)

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.setup["seed"])

    def recipe(self, arm: str, **changes: Any) -> Recipe:
        """Going on from the trained model, for as many steps as pruning takes, on the batches that come next."""
        first = int(self.setup["steps"])
        given: Row = {"steps": self.steps, "learning_rate": self.learning_rate, "warmup": 50, "first_step": first}
        given |= {"trained": "encoder", "gate_rate": self.gate_rate}
        return Recipe(arm, self.seed, **(given | changes))

    def fit(self, model: Transformer, recipe: Recipe, gates: HeadGates | None = None) -> list[Record]:
        """Train with a checkpoint of its own."""
        path = self.context.checkpoints / f"s{self.seed}-{recipe.arm}-{recipe.penalty:g}.pt"
        return fit(model, self.batches, recipe, gates, path)

    def score(
        self, arm: str, model: Transformer, *, kept: int, penalty: float = 0.0, mask: int = 0, tuned: bool = True,
        translate: bool = True, gates: Mapping[str, Tensor] | None = None,
    ) -> None:  # fmt: skip
        """Cross-entropy and, where asked, BLEU of a model on all held-out sentences."""
        found = {"cross_entropy": (cross_entropy(model, self.pairs, gates), "nats")}
        if translate:
            found |= translation_quality(model, self.data, self.pairs, gates)
        for metric, (value, unit) in found.items():
            row = {"seed": self.seed, "arm": arm, "penalty": penalty, "mask": mask, "tuned": tuned, "kept": kept}
            self.scores.append(row | {"metric": metric, "value": value, "unit": unit})


def prune_heads(
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
    place = Track(context, track)
    tables: dict[str, list[Row]] = {"gates": [], "gate_paths": [], "scores": []}
    tensors: dict[str, Tensor] = {}
    for setup in place.setups(seeds):
        data = place.corpus(setup)
        model = trained(place, setup, data, "relative")
        batches, pairs = moved(data.batches, context.device), moved(data.pairs(), context.device)
        run = _Run(context, setup, data, batches, model, pairs, steps, learning_rate, gate_rate)
        ones = copy.deepcopy(model)
        run.fit(ones, run.recipe("open"))
        run.score("open", ones, kept=model.open_gates("encoder")["encoder"].numel())
        for penalty in penalties:
            tensors |= dict(_encoder_arms(run, penalty, random_masks, random_tuned, scratch))
        if penalty_all is not None:
            _all_heads(run, penalty_all)
        for name, rows in (("gates", run.gates), ("gate_paths", run.paths), ("scores", run.scores)):
            tables[name] += rows
    schemas = {"gates": GATES, "gate_paths": GATE_PATHS, "scores": SCORES}
    return place.outputs(tables, schemas) | {f"{place.prefix}pruned": tensors}


def _encoder_arms(
    run: _Run, penalty: float, random_masks: int, random_tuned: int, scratch: bool
) -> Iterator[tuple[str, Tensor]]:
    """L0 gates on the encoder's heads, then masks of as many heads; yields the tensors of the pruned model."""
    model = copy.deepcopy(run.model)
    gates = _gated(run, model, "encoder", penalty, ("encoder",))
    mask = gates.binary()["encoder"].cpu()
    kept = int(mask.sum())
    run.score("l0_soft", model, kept=kept, penalty=penalty, translate=False, gates=gates.deterministic())
    smaller = remove_heads(model, {"encoder": mask.bool()})
    run.score("l0", smaller, kept=kept, penalty=penalty)
    _masked(run, "l0", mask, penalty, tuned=False)
    generator = torch.Generator().manual_seed(derive_seed(run.seed, "masks"))
    for number in range(random_masks):
        drawn = random_mask((mask.shape[0], mask.shape[1]), kept, generator)
        _masked(run, "random", drawn, penalty, number=number, tuned=False)
        if number < random_tuned:
            _masked(run, "random", drawn, penalty, number=number, tuned=True)
    sure = keep_highest(mean_confidence(run.model, run.pairs), kept)
    for tuned in (False, True):
        _masked(run, "confidence", sure, penalty, tuned=tuned)
    if scratch:
        anew = remove_heads(build(run.setup, run.data, "relative", "scratch"), {"encoder": mask.bool()})
        anew.to(run.context.device)
        own = {"steps": int(run.setup["steps"]) + run.steps, "learning_rate": float(run.setup["learning_rate"])}
        own |= {"warmup": int(run.setup["warmup"]), "first_step": 0}
        run.fit(anew, run.recipe("scratch", trained="all", penalty=penalty, **own))
        run.score("scratch", anew, kept=kept, penalty=penalty)
    for name, value in model.state_dict().items():
        yield f"s{run.seed}.{penalty:g}.{name}", value.cpu()


def _masked(run: _Run, arm: str, mask: Tensor, penalty: float, *, number: int = 0, tuned: bool) -> None:
    """The unpruned model without the other heads, as it is or after as many steps as pruning takes."""
    model = remove_heads(run.model, {"encoder": mask.bool()})
    if tuned:
        run.fit(model, run.recipe(f"{arm}-{number}", penalty=penalty))
    kept = int(mask.sum())
    run.score(arm, model, kept=kept, penalty=penalty, mask=number, tuned=tuned, translate=tuned)


def _all_heads(run: _Run, penalty: float) -> None:
    """Gates on all heads, every parameter trained."""
    model = copy.deepcopy(run.model)
    gates = _gated(run, model, "all", penalty, ("encoder", "decoder", "cross"), trained="all")
    keep = {kind: gate.cpu().bool() for kind, gate in gates.binary().items()}
    smaller = remove_heads(model, keep)
    run.score("all", smaller, kept=sum(int(mask.sum()) for mask in keep.values()), penalty=penalty)


def _gated(
    run: _Run, model: Transformer, arm: str, penalty: float, kinds: tuple[str, ...], **changes: Any
) -> HeadGates:
    """Train a model with gates; their final state and their way there become rows."""
    shapes = {kind: (len(g), g.shape[1]) for kind, g in model.open_gates(*kinds).items()}
    gates = HeadGates(shapes).to(run.context.device)
    records = run.fit(model, run.recipe(arm, penalty=penalty, **changes), gates)
    where = {"seed": run.seed, "arm": arm, "penalty": penalty}
    test = gates.deterministic()
    for kind, log_alpha in gates.log_alpha.items():
        for layer, head in _places(log_alpha):
            place = where | {"kind": kind, "layer": layer, "head": head}
            values = {"log_alpha": float(log_alpha.detach()[layer, head]), "gate": float(test[kind][layer, head])}
            run.gates.append(place | values)
            run.paths += [place | {"step": r.step, "shut": r.shut[kind][layer][head]} for r in records]
    return gates


def _places(values: Tensor) -> list[tuple[int, int]]:
    return [(layer, head) for layer in range(values.shape[0]) for head in range(values.shape[1])]

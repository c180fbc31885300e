"""Stages `train` and `text_train`: the unpruned models, with relative positions and with sinusoids alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.methods.transformer import Shape, Transformer
from restudy.studies.head_pruning.corpus import Corpus, Pair
from restudy.studies.head_pruning.fitting import Recipe, fit
from restudy.studies.head_pruning.tidy import SETUP, TRAINING
from restudy.studies.head_pruning.track import Row, Setup, Track


def train_models(
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
    `training` (seed, arm, step, loss_nats of one batch, smoothed), and the tensors `models`; those of track `text`
    have names that start with `text_`.
    """
    keep_freed_memory()
    place = Track(context, track)
    sizes = {"sentences": sentences, "held_out": held_out, "batch_tokens": batch_tokens, "d_model": d_model}
    sizes |= {"heads": heads, "d_ff": d_ff, "encoder_layers": encoder_layers, "decoder_layers": decoder_layers}
    rest = {"dropout": dropout, "steps": steps, "max_distance": max_distance}
    rest |= {"learning_rate": learning_rate, "warmup": warmup}
    rows: list[Row] = [{"seed": seed, "track": track} | sizes | rest for seed in seeds]
    curves: list[Row] = []
    tensors: dict[str, Tensor] = {}
    for setup in rows:
        seed = int(setup["seed"])
        data = place.corpus(setup)
        for arm in arms:
            model = build(setup, data, arm).to(context.device)
            recipe = Recipe(arm, seed, steps, learning_rate, warmup)
            path = context.checkpoints / f"s{seed}-{arm}.pt"
            records = fit(model, moved(data.batches, context.device), recipe, checkpoint=path)
            curves += [{"seed": seed, "arm": arm, "step": r.step, "loss_nats": r.loss} for r in records]
            tensors |= {f"s{seed}.{arm}.{name}": value.cpu() for name, value in model.state_dict().items()}
    found: dict[str, Any] = place.outputs({"setup": rows, "training": curves}, {"setup": SETUP, "training": TRAINING})
    return found | {f"{place.prefix}models": tensors}


def moved(pairs: Sequence[Pair], device: str | torch.device) -> list[Pair]:
    """Batches on a device."""
    return [(source.to(device), target.to(device)) for source, target in pairs]


def build(setup: Setup, data: Corpus, arm: str, purpose: str = "model") -> Transformer:
    """An untrained model of a seed; arms of one seed share every weight that both have."""
    shape = Shape(
        data.source_size, data.target_size, d_model=int(setup["d_model"]), heads=int(setup["heads"]),
        d_ff=int(setup["d_ff"]), encoder_layers=int(setup["encoder_layers"]),
        decoder_layers=int(setup["decoder_layers"]), dropout=float(setup["dropout"]),
        max_distance=int(setup["max_distance"]),
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(int(setup["seed"]), purpose))
        model = Transformer(shape)
    if arm == "sinusoid":
        for kind in ("encoder", "decoder"):
            for attention in model.attentions(kind):
                attention.register_parameter("relative", None)
                attention.max_distance = None
    return model.eval()


def trained(place: Track, setup: Setup, data: Corpus, arm: str) -> Transformer:
    """A model of the stage `train` with its weights."""
    model = build(setup, data, arm)
    model.load_state_dict(place.weights("models", f"s{int(setup['seed'])}.{arm}."))
    return model.to(place.context.device).eval()

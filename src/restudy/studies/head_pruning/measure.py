"""Stages `measure` and `text_measure`: what heads do and how much they matter; trained, untrained and pruned models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from restudy.bench.context import Context, Outputs
from restudy.methods.heads import ablation, cross_entropy, gradient_importance, head_relevance, sentence_losses
from restudy.methods.training import keep_freed_memory
from restudy.methods.transformer import Transformer
from restudy.studies.head_pruning.corpus import Corpus, Pair, padded
from restudy.studies.head_pruning.quality import mean_confidence, shuffled_bleu, translation_quality
from restudy.studies.head_pruning.rare import rare_rows
from restudy.studies.head_pruning.roles import mean_entropy, position_rows, relation_baselines, relation_rows
from restudy.studies.head_pruning.tidy import BASELINES, HEADS, POSITIONS, QUALITY, RARE, RELATIONS
from restudy.studies.head_pruning.track import Row, Track
from restudy.studies.head_pruning.train import build, moved, trained

RELEVANCE_BATCH = 20


def measure_heads(
    context: Context, *, seeds: Sequence[int], track: str, sentences: int, relevance_sentences: int
) -> Outputs:
    """Confidence, roles, relevance, ablation and gradients of the encoder heads.

    Args:
        sentences: held-out sentences for roles and importance. relevance_sentences: of these, for relevance.

    Models (column `arm`): those that were trained, `untrained` (relative, as drawn), and `pruned` (roles only, under
    the binary gates of the middle lambda). Returns `heads`, `quality`, `positions`, `relations` and `baselines` (the
    constant offsets that a syntactic head must beat); for real text `text_rare` too (looks at the rarest tokens).
    """
    keep_freed_memory()
    place = Track(context, track)
    schemas = {"heads": HEADS, "quality": QUALITY, "positions": POSITIONS, "relations": RELATIONS}
    schemas |= {"baselines": BASELINES} | ({"rare": RARE} if track == "text" else {})
    tables: dict[str, list[Row]] = {name: [] for name in schemas}
    for setup in place.setups(seeds):
        seed = int(setup["seed"])
        data = place.corpus(setup)
        chosen = data.held_out[:sentences]
        tables["baselines"] += relation_baselines(seed, chosen)
        models = {arm: trained(place, setup, data, arm) for arm in place.arms()}
        models["untrained"] = build(setup, data, "relative").to(context.device)
        for arm, model in models.items():
            tables["heads"] += list(_head_rows(seed, arm, model, data, sentences, relevance_sentences))
            tables["quality"] += list(_quality_rows(seed, arm, model, data, sentences))
            tables["positions"] += position_rows(seed, arm, model, chosen)
            tables["relations"] += relation_rows(seed, arm, model, chosen)
            if track == "text":
                tables["rare"] += rare_rows(seed, arm, model, chosen, data.source_counts)
        pruned, gates = _pruned(place, seed, models["untrained"])
        tables["positions"] += position_rows(seed, "pruned", pruned, chosen, gates)
        tables["relations"] += relation_rows(seed, "pruned", pruned, chosen, gates)
    return place.outputs(tables, schemas)


def _pairs(model: Transformer, data: Corpus, count: int | None) -> list[Pair]:
    return moved(data.pairs(count), model.target_embedding.weight.device)


def _head_rows(
    seed: int, arm: str, model: Transformer, data: Corpus, sentences: int, relevance_sentences: int
) -> Iterator[Row]:
    pairs = _pairs(model, data, sentences)
    found = {
        "confidence": (mean_confidence(model, pairs), "1"),
        "entropy": (mean_entropy(model, pairs), "1"),
        "ablation": (ablation(model, pairs), "nats"),
        "gradient": (gradient_importance(model, pairs), "nats"),
    }
    kinds = {"encoder": found}
    for kind, shares in _relevance(model, data, relevance_sentences).items():
        kinds.setdefault(kind, {})["relevance"] = (shares, "1")
    for kind, metrics in kinds.items():
        for metric, (values, unit) in metrics.items():
            for layer, row in enumerate(values.tolist()):
                for head, value in enumerate(row):
                    place = {"seed": seed, "arm": arm, "kind": kind, "layer": layer, "head": head}
                    yield place | {"metric": metric, "value": value, "unit": unit}


def _relevance(model: Transformer, data: Corpus, sentences: int) -> dict[str, torch.Tensor]:
    """Mean over sentences of the heads' shares in the relevance of their layer, by kind (layers, H)."""
    device = model.target_embedding.weight.device
    sentences = min(sentences, len(data.held_out))
    sums: dict[str, torch.Tensor] = {}
    for start in range(0, sentences, RELEVANCE_BATCH):
        source, target = (
            part.to(device) for part in padded(data.held_out[start : min(start + RELEVANCE_BATCH, sentences)])
        )
        for kind, layers in head_relevance(model, source, target[:, :-1]).heads.items():
            shares = torch.stack([layers[number].double().sum(0) for number in sorted(layers)])
            sums[kind] = sums[kind] + shares if kind in sums else shares
    return {kind: total / sentences for kind, total in sums.items()}


def _quality_rows(seed: int, arm: str, model: Transformer, data: Corpus, sentences: int) -> Iterator[Row]:
    """Cross-entropy, its standard error over sentences, that without encoder heads; BLEU, and shuffled BLEU."""
    pairs = _pairs(model, data, None)
    sums, counts = sentence_losses(model, _pairs(model, data, sentences))
    shut = {"encoder": torch.zeros_like(model.open_gates("encoder")["encoder"])}
    found = {
        "cross_entropy": (cross_entropy(model, pairs), "nats"),
        "standard_error": (float((sums / counts).std() / len(sums) ** 0.5), "nats"),
        "without_encoder_heads": (cross_entropy(model, pairs, shut), "nats"),
        "shuffled_bleu": (shuffled_bleu(data), "BLEU"),
    }
    if arm != "untrained":
        found |= translation_quality(model, data, pairs)
    for metric, (value, unit) in found.items():
        yield {"seed": seed, "arm": arm, "metric": metric, "value": value, "unit": unit}


def _pruned(place: Track, seed: int, like: Transformer) -> tuple[Transformer, dict[str, torch.Tensor]]:
    """The model pruned at the middle lambda, and its binary gates."""
    rows = [row for row in place.table("gates").to_pylist() if row["seed"] == seed and row["arm"] == "encoder"]
    known = sorted({row["penalty"] for row in rows})
    penalty = known[len(known) // 2]
    gates = torch.zeros_like(like.open_gates("encoder")["encoder"])
    for row in rows:
        if row["penalty"] == penalty:
            gates[row["layer"], row["head"]] = float(row["gate"] > 0.5)
    # Behind "s0.1." stands a parameter's name, or the rest of "s0.1.5.".
    found = place.weights("pruned", f"s{seed}.{penalty:g}.")
    like.load_state_dict({name: value for name, value in found.items() if not name[0].isdigit()})
    return like.eval(), {"encoder": gates}

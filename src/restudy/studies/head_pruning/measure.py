"""Stages `measure` and `text_measure`: what heads do and how much they matter; trained, untrained and pruned models.

A head is chosen on one half of the sentences and scored on the other, so that the best of many heads is not flattered:
counts of positions and relations are kept by half.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.heads import (
    ablation,
    confidence,
    cross_entropy,
    encoder_attention,
    entropy,
    gradient_importance,
    head_relevance,
    offset_hits,
    rare_hits,
    sentence_losses,
    word_scores,
)
from restudy.methods.heads.observe import Array, Observed
from restudy.methods.models import derive_seed
from restudy.methods.text import RELATIONS, Sentence, corpus_bleu
from restudy.methods.text.batches import Pair, padded
from restudy.methods.text.grammar import BOS, EOS, SPECIALS
from restudy.methods.training import keep_freed_memory
from restudy.methods.transformer import Transformer, greedy
from restudy.tables import levels, where

from .models import EVALUATION_BATCH, Corpus, Row, Run, named, runs

Gates = Mapping[str, Tensor]
OFFSETS = range(-5, 6)
RELEVANCE_BATCH = 20
LONGEST = 40
"""Most tokens of a translation; the longest reference of either track has fewer."""
COMMON = 500
"""Rare tokens are looked for in sentences with a token outside the so many most frequent ones."""


def measure(context: Context, *, seeds: Sequence[int], track: str, sentences: int, relevance_sentences: int) -> Outputs:
    """Confidence, roles, relevance, ablation and gradients of the encoder heads.

    Args:
        sentences: held-out sentences for roles and importance. relevance_sentences: of these, for relevance.

    Models (column `arm`): those that were trained, `untrained` (relative, as drawn), and `pruned` (roles only, under
    the binary gates of the middle lambda). Returns `heads`, `quality`, `positions`, `relations` and `baselines` (the
    constant offsets that a syntactic head must beat); for real text `text_rare` too (looks at the rarest tokens).
    """
    keep_freed_memory()
    tables: dict[str, list[Row]] = {name: [] for name in ("heads", "quality", "positions", "relations", "baselines")}
    tables |= {"rare": []} if track == "text" else {}
    for run in runs(context, track, seeds):
        chosen = run.data.held_out[:sentences]
        questions = list(asked(run.seed, chosen))
        tables["baselines"] += [{"seed": run.seed} | row for row in relation_baselines(questions)]
        models = {arm: run.trained(arm) for arm in levels(run.table("training"), "arm")}
        models["untrained"] = run.build("relative")
        pruned, gates = _pruned(run)
        for arm, model in [*models.items(), ("pruned", pruned)]:
            own = gates if arm == "pruned" else None
            found = {
                "positions": position_rows(model, chosen, own),
                "relations": relation_rows(model, chosen, questions, own),
            }
            if arm != "pruned":
                found["heads"] = _head_rows(model, run, sentences, relevance_sentences)
                found["quality"] = _quality_rows(model, run, sentences, translated=arm != "untrained")
                if track == "text":
                    found["rare"] = rare_rows(run.seed, model, chosen, run.data.source_counts)
            for name, rows in found.items():
                tables[name] += [{"seed": run.seed, "arm": arm} | row for row in rows]
    return named(track, **tables)


def _pruned(run: Run) -> tuple[Transformer, dict[str, Tensor]]:
    """The model pruned at the middle lambda, and its binary gates."""
    rows = where(run.table("gates"), seed=run.seed, arm="encoder")
    penalties = levels(rows, "penalty")
    penalty = penalties[len(penalties) // 2]
    model = run.build("relative")
    gates = torch.zeros_like(model.open_gates("encoder")["encoder"])
    for row in where(rows, penalty=penalty).to_pylist():
        gates[row["layer"], row["head"]] = float(row["gate"] > 0.5)
    # Behind "s0.1." stands a parameter's name, or the rest of "s0.1.5.".
    found = run.weights("pruned", f"s{run.seed}.{penalty:g}.")
    model.load_state_dict({name: value for name, value in found.items() if not name[0].isdigit()})
    return model, {"encoder": gates}


def _head_rows(model: Transformer, run: Run, sentences: int, relevance_sentences: int) -> Iterator[Row]:
    chosen, pairs = run.data.held_out[:sentences], run.moved(run.data.pairs(sentences))
    found = {
        ("encoder", "confidence", "1"): token_mean(confidence, model, chosen),
        ("encoder", "entropy", "1"): token_mean(entropy, model, chosen),
        ("encoder", "ablation", "nats"): ablation(model, pairs),
        ("encoder", "gradient", "nats"): gradient_importance(model, pairs),
    }
    for kind, shares in _relevance(model, run.data.held_out[:relevance_sentences]).items():
        found[kind, "relevance", "1"] = shares
    for (kind, metric, unit), values in found.items():
        for (layer, head), value in np.ndenumerate(values.numpy()):
            yield {"kind": kind, "layer": layer, "head": head, "metric": metric, "value": float(value), "unit": unit}


def _relevance(model: Transformer, sentences: Sequence[Sentence]) -> dict[str, Tensor]:
    """Mean over sentences of the heads' shares in the relevance of their layer, by kind (layers, H)."""
    device = model.target_embedding.weight.device
    sums: dict[str, Tensor] = {}
    for start in range(0, len(sentences), RELEVANCE_BATCH):
        source, target = padded(sentences[start : start + RELEVANCE_BATCH])
        for kind, layers in head_relevance(model, source.to(device), target[:, :-1].to(device)).heads.items():
            shares = torch.stack([layers[number].double().sum(0) for number in sorted(layers)])
            sums[kind] = sums[kind] + shares if kind in sums else shares
    return {kind: (total / len(sentences)).cpu() for kind, total in sums.items()}


def _quality_rows(model: Transformer, run: Run, sentences: int, translated: bool) -> Iterator[Row]:
    """Cross-entropy, its standard error over sentences, that without encoder heads; BLEU, and shuffled BLEU."""
    pairs = run.moved(run.data.pairs())
    sums, counts = sentence_losses(model, run.moved(run.data.pairs(sentences)))
    shut = {"encoder": torch.zeros_like(model.open_gates("encoder")["encoder"])}
    wanted = [run.data.spell(sentence.target) for sentence in run.data.held_out]
    found = {
        "cross_entropy": (cross_entropy(model, pairs), "nats"),
        "standard_error": (float((sums / counts).std() / len(sums) ** 0.5), "nats"),
        "without_encoder_heads": (cross_entropy(model, pairs, shut), "nats"),
        # References against those of other sentences: what knowing the language alone gives.
        "shuffled_bleu": (corpus_bleu([*wanted[1:], wanted[0]], wanted), "BLEU"),
    }
    if translated:
        found |= translation_quality(model, run.data, pairs)
    for metric, (value, unit) in found.items():
        yield {"metric": metric, "value": value, "unit": unit}


def translation_quality(
    model: Transformer, data: Corpus, pairs: Sequence[Pair], gates: Gates | None = None
) -> dict[str, tuple[float, str]]:
    """Metric -> value and unit: `bleu` (0 to 100, greedy) and `sentence_accuracy`, over all held-out sentences."""
    found = [
        data.spell(row)
        for source, _ in pairs
        for row in greedy(model, source, bos=BOS, eos=EOS, longest=LONGEST, gates=gates)
    ]
    wanted = [data.spell(sentence.target) for sentence in data.held_out]
    right = sum(a == b for a, b in zip(found, wanted, strict=True)) / len(wanted)
    return {"bleu": (corpus_bleu(found, wanted), "BLEU"), "sentence_accuracy": (right, "1")}


def observed(
    model: Transformer, sentences: Sequence[Sentence], gates: Gates | None = None
) -> Iterator[tuple[Tensor, Tensor, Observed]]:
    """Yield source tokens (B, S), lengths without EOS (B,) and what encoder heads do, 100 sentences at a time."""
    for start in range(0, len(sentences), EVALUATION_BATCH):
        source = padded(sentences[start : start + EVALUATION_BATCH])[0].to(model.target_embedding.weight.device)
        yield source, (source != model.shape.padding).sum(1) - 1, encoder_attention(model, source, gates)


def token_mean(
    total: Callable[[Tensor, Tensor], tuple[Array, int]], model: Transformer, sentences: Sequence[Sentence]
) -> Tensor:
    """Mean over tokens of the encoder heads' confidence or entropy, (layers, H); EOS is left out."""
    sums, queries = torch.zeros(1), 0
    for _, lengths, seen in observed(model, sentences):
        found = [total(weights, lengths) for weights in seen.weights]
        sums = sums + torch.stack([torch.from_numpy(values) for values, _ in found])
        queries += found[0][1]
    return sums / queries


def position_rows(model: Transformer, sentences: Sequence[Sentence], gates: Gates | None = None) -> Iterator[Row]:
    """How often each head's largest score stands at each offset; by weights, and by weights times contributions."""
    for half in (0, 1):
        hits: dict[tuple[int, str, int], Array] = {}
        counts: Counter[int] = Counter()
        for _, lengths, seen in observed(model, sentences[half::2], gates):
            for layer, (weights, norms) in enumerate(zip(seen.weights, seen.norms, strict=True)):
                for weighting, scores in (("weight", weights), ("norm", weights * norms.unsqueeze(2))):
                    for offset in OFFSETS:
                        own, fits = offset_hits(scores, lengths, offset)
                        hits[layer, weighting, offset] = hits.get((layer, weighting, offset), 0.0) + own.sum(0)
                        counts[offset] += int(fits.sum()) if (layer, weighting) == (0, "weight") else 0
        for (layer, weighting, offset), values in hits.items():
            for head, value in enumerate(values):
                place = {"weighting": weighting, "layer": layer, "head": head, "half": half, "offset": offset}
                yield place | {"hits": float(value), "count": float(counts[offset])}


Key = tuple[str, str, str, int]
"""Trees, relation, direction, half of the sentences."""
Question = tuple[Key, int, int]
"""The word that looks, and the word at which it should."""


def asked(seed: int, sentences: Sequence[Sentence]) -> Iterator[list[Question]]:
    """Yield the questions about each sentence: along its relations, and along those of permuted words (the control)."""
    generator = np.random.default_rng(derive_seed(seed, "permuted trees"))
    for number, sentence in enumerate(sentences):
        found: list[Question] = []
        permuted = generator.permutation(len(sentence.words)).tolist()
        for trees, names in (("given", range(len(permuted))), ("permuted", permuted)):
            for relation, *ends in sentence.relations:
                head, dependent = (names[end] for end in ends)
                for direction, a, b in (("to_dependent", head, dependent), ("to_head", dependent, head)):
                    found.append(((trees, RELATIONS[relation], direction, number % 2), a, b))
        yield found


def relation_rows(
    model: Transformer, sentences: Sequence[Sentence], questions: list[list[Question]], gates: Gates | None = None
) -> Iterator[Row]:
    """How often each head's largest word score stands on the word in a relation, in given and in permuted trees."""
    hits: dict[tuple[Key, int], Array] = {}
    both = zip(sentences, questions, strict=True)
    for source, _, seen in observed(model, sentences, gates):
        layers = [weights.double().cpu().numpy() for weights in seen.weights]
        for row, (sentence, own) in zip(range(len(source)), both, strict=False):
            for layer, weights in enumerate(layers):
                best = word_scores(weights[row], sentence.words).argmax(2)  # (H, W)
                for key, a, b in own:
                    hits[key, layer] = hits.get((key, layer), 0.0) + (best[:, a] == b)
    counts = Counter(key for own in questions for key, _, _ in own)
    for (key, layer), values in hits.items():
        for head, value in enumerate(values):
            numbers = {"layer": layer, "head": head, "hits": float(value), "count": float(counts[key])}
            yield dict(zip(("trees", "relation", "direction", "half"), key, strict=True)) | numbers


def relation_baselines(questions: list[list[Question]]) -> Iterator[Row]:
    """How often the related word stands at each offset in words, by half."""
    hits = Counter((key, b - a) for own in questions for key, a, b in own)
    counts = Counter(key for own in questions for key, _, _ in own)
    for (key, offset), hit in sorted(hits.items()):
        numbers = {"offset": offset, "hits": float(hit), "count": float(counts[key])}
        yield dict(zip(("trees", "relation", "direction", "half"), key, strict=True)) | numbers


def rare_rows(seed: int, model: Transformer, sentences: Sequence[Sentence], counts: Sequence[int]) -> Iterator[Row]:
    """How often each head looks at the rarest token, or one of the two rarest (section 5.3); EOS left out.

    Args:
        counts: occurrences of each source token in training; ties go to the smaller token.

    `expected` is what a head that looks anywhere would have. The column `frequencies` says whether counts stand as they
    were counted or `permuted` over the tokens, which is the control.
    """
    generator = np.random.default_rng(derive_seed(seed, "permuted frequencies"))
    permuted = [*counts[:SPECIALS], *generator.permutation(np.array(counts[SPECIALS:])).tolist()]
    for frequencies, own in (("counted", counts), ("permuted", permuted)):
        rank = ranks(own)
        chosen = [s for s in sentences if int(rank[list(s.source)].max()) >= COMMON]
        hits: dict[tuple[int, int], Array] = defaultdict(lambda: np.zeros(1))
        expected: Counter[int] = Counter()
        queries = 0
        for source, lengths, seen in observed(model, chosen):
            inside = torch.arange(source.shape[1], device=source.device) < lengths.unsqueeze(1)
            places = rank.to(source.device)[source].masked_fill(~inside, -1)
            queries += int(lengths.sum())
            for within in (1, 2):
                for layer, weights in enumerate(seen.weights):
                    looked, rare = rare_hits(weights, places, within)
                    hits[within, layer] = hits[within, layer] + looked.sum(0)
                expected[within] += int(rare.sum())
        for (within, layer), values in sorted(hits.items()):
            place = {"frequencies": frequencies, "layer": layer, "within": within}
            for head, value in enumerate(values):
                numbers = {"hits": float(value), "count": float(queries), "expected": float(expected[within])}
                yield place | {"head": head} | numbers


def ranks(counts: Sequence[int]) -> Tensor:
    """Rank of each token by falling count, int64; 0 is the most frequent one."""
    return torch.from_numpy(np.argsort(np.argsort(-np.array(counts), kind="stable")))

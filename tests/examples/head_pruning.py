"""Results in which every claim of the study holds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tests.examples import Row, cases, declared, grid, long

SEEDS, LAYERS, HEADS = 6, 3, 8
PENALTIES = (0.005, 0.01, 0.02)
PLACES = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
RELATIONS = [(r, d) for r in ("nsubj", "dobj", "amod", "advmod") for d in ("to_dependent", "to_head")]
POSITIONAL = {(0, 0): -1, (1, 1): 1}
SYNTACTIC = {(2, 0): RELATIONS[0], (2, 1): RELATIONS[2], (2, 2): RELATIONS[4], (1, 3): RELATIONS[6]}
RARE = (0, 0)
KEPT = {*POSITIONAL, *SYNTACTIC, (0, 4), (0, 5), (1, 6), (2, 7)}
CHECKS = {
    "torch attention": 1e-7, "sum over heads": 1e-15, "gate 0 and deletion": 0.0, "removal": 1e-15, "gate mean": 0.4,
    "gate variance": 0.3, "P(open)": 0.2, "P(one)": 0.3, "P(below .3)": 0.1, "test-time gate": 0.0,
    "relevance conserved": 1e-12, "relevance shares": 1e-12,
}  # fmt: skip
# arm, tuned -> cross-entropy, BLEU (None: not translated)
SCORES: dict[tuple[str, bool], tuple[float, float | None]] = {
    ("l0", True): (0.130, 95.6),
    ("l0_soft", True): (0.1302, None),
    ("l0", False): (0.18, None),
    ("scratch", True): (0.16, 94.5),
    ("random", True): (0.20, 93.0),
    ("random", False): (0.45, None),
    ("confidence", True): (0.19, 93.5),
    ("confidence", False): (0.40, None),
}
QUALITY = {
    "cross_entropy": 0.12,
    "standard_error": 0.006,
    "without_encoder_heads": 1.9,
    "shuffled_bleu": 3.0,
    "bleu": 95.8,
}
SPARED = {("H6", "gates"): "read for the names of the penalties only"}


def heads_of(**axes: object) -> Iterator[tuple[tuple[int, int], Row]]:
    """Every head of every combination of the axes: its place, and the columns that name it."""
    for where in grid(**axes, place=PLACES):  # type: ignore[arg-type]
        layer, head = where.pop("place")
        yield (layer, head), where | {"layer": layer, "head": head}


def gates() -> Iterator[Row]:
    generator = np.random.default_rng(0)
    for place, where in heads_of(seed=range(SEEDS), penalty=PENALTIES):
        kept = place in KEPT
        numbers = {"log_alpha": (4 if kept else -5) + generator.normal(0, 0.3)}
        numbers["gate"] = abs(float(kept) - generator.uniform(0, 0.02))
        yield where | {"arm": "encoder", "kind": "encoder"} | numbers
    for seed in range(SEEDS):
        for kind, layers, left in (("encoder", 3, 2), ("decoder", 2, 5), ("cross", 2, 6)):
            for where in grid(layer=range(layers), head=range(HEADS)):
                kept = where["head"] < left + int(seed % 3 == where["layer"])
                numbers = {"log_alpha": 4.0 if kept else -4.0, "gate": abs(float(kept) - generator.uniform(0, 0.02))}
                yield {"seed": seed, "arm": "all", "penalty": 0.03, "kind": kind} | where | numbers


def scores() -> Iterator[Row]:
    generator = np.random.default_rng(1)
    for seed in range(SEEDS):
        found = [("open", True, 0.0, 24, (0.115, 95.7)), ("all", True, 0.03, 26, (0.14, 95.0))]
        found += [(arm, tuned, p, 10, v) for p in PENALTIES for (arm, tuned), v in SCORES.items()]
        shared = generator.normal(0, 0.1)
        for arm, tuned, penalty, kept, (loss, bleu) in found:
            where = {"seed": seed, "arm": arm, "penalty": penalty, "mask": 0, "tuned": tuned, "kept": kept}
            yield from long(where, {"cross_entropy": loss + generator.normal(0, 0.0003)}, "nats")
            if bleu is not None:
                yield from long(where, {"bleu": bleu + shared + generator.normal(0, 0.05)}, "BLEU")


def heads() -> Iterator[Row]:
    generator = np.random.default_rng(2)
    for (_, head), where in heads_of(seed=range(SEEDS), arm=("relative", "sinusoid", "untrained")):
        weight = 6.0 / (1 + head) ** 1.5 if where["arm"] == "relative" else 1.0
        size = weight * generator.uniform(0.8, 1.2)
        a, b, c = generator.uniform(0.75, 1.25, 3)
        found = {"relevance": a * size / 20, "ablation": b * size / 100, "gradient": c * size / 50, "entropy": 0.5}
        found["confidence"] = min(0.95, 0.15 * size + 0.02 * generator.random())
        yield from long(where | {"kind": "encoder"}, found)


def quality() -> Iterator[Row]:
    generator = np.random.default_rng(3)
    for where in grid(seed=range(SEEDS), arm=("relative", "sinusoid", "untrained")):
        yield from long(where, {name: value * generator.uniform(0.99, 1.01) for name, value in QUALITY.items()})


def positions() -> Iterator[Row]:
    generator = np.random.default_rng(4)
    arms = ("relative", "sinusoid", "untrained", "pruned")
    for place, where in heads_of(seed=range(SEEDS), arm=arms, weighting=("weight", "norm")):
        for rest in grid(half=(0, 1), offset=range(-5, 6)):
            special = where["arm"] in ("relative", "pruned") and POSITIONAL.get(place) == rest["offset"]
            hits = float(round(1000 * (0.96 if special else 0.1) + generator.normal(0, 5)))
            yield where | rest | {"count": 1000.0, "hits": hits}


def relations() -> Iterator[Row]:
    generator = np.random.default_rng(5)
    arms = ("relative", "sinusoid", "untrained", "pruned")
    for place, where in heads_of(seed=range(SEEDS), arm=arms, trees=("given", "permuted"), pair=RELATIONS):
        relation, direction = pair = where.pop("pair")
        real = SYNTACTIC.get(place) == pair and where["trees"] == "given" and where["arm"] in ("relative", "pruned")
        for half in (0, 1):
            hits = float(round(500 * (0.8 if real else 0.2) + generator.normal(0, 4)))
            found = {"relation": relation, "direction": direction, "half": half}
            yield where | found | {"count": 500.0, "hits": hits}


def baselines() -> Iterator[Row]:
    for where in grid(seed=range(SEEDS), trees=("given", "permuted"), pair=RELATIONS, half=(0, 1)):
        relation, direction = where.pop("pair")
        for offset, hits in ((1, 200.0), (2, 120.0 + where["half"]), (-1, 90.0)):
            place = where | {"relation": relation, "direction": direction, "count": 500.0}
            yield place | {"offset": offset, "hits": hits}


def rare() -> Iterator[Row]:
    """Of the text track; no claim reads it."""
    generator = np.random.default_rng(6)
    arms = ("relative", "untrained")
    for place, where in heads_of(seed=range(SEEDS), arm=arms, frequencies=("counted", "permuted")):
        real = place == RARE and where["arm"] == "relative" and where["frequencies"] == "counted"
        for within in (1, 2):
            hits = 1000 * ((0.7 if real else 0.13) + generator.normal(0, 0.01))
            yield where | {"within": within, "hits": hits, "count": 1000.0, "expected": 65.0 * within}


def tables() -> dict[str, pa.Table]:
    identities = [
        row | {"value": CHECKS[row["check"]] * i}
        for check in CHECKS
        for i, row in enumerate(cases({check: ("deviation",)}, key="check"))
    ]
    made = {make.__name__: make() for make in (gates, scores, heads, quality, positions, relations, baselines)}
    found = declared("head_pruning", identities=identities, text_rare=rare(), **made)
    return found | {f"text_{name}": found[name] for name in made}

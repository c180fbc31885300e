"""Fabricated results of the study in which every claim holds, and the engine's verdicts on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from restudy.catalog import study
from restudy.claims import StudyVerdicts, judge_study, load_claims
from restudy.results.columns import table_from
from restudy.studies import head_pruning
from restudy.studies.head_pruning import statistics
from restudy.studies.head_pruning.statistics import PAIRS

FOLDER = Path(head_pruning.__file__).parent
COLUMNS = {n: c for stage in study("head_pruning").file.stages.values() for n, c in stage.tables.items()}
SEEDS, LAYERS, HEADS = 6, 3, 8
PENALTIES = (0.005, 0.01, 0.02)
PLACES = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
POSITIONAL = {(0, 0): -1, (1, 1): 1}
SYNTACTIC = {(2, 0): PAIRS[0], (2, 1): PAIRS[2], (2, 2): PAIRS[4], (1, 3): PAIRS[6]}
RARE = (0, 0)
KEPT = {*POSITIONAL, *SYNTACTIC, (0, 4), (0, 5), (1, 6), (2, 7)}
CHECKS = {
    "torch attention": 1e-7, "sum over heads": 1e-15, "gate 0 and deletion": 0.0, "removal": 1e-15, "gate mean": 0.4,
    "gate variance": 0.3, "P(open)": 0.2, "P(one)": 0.3, "P(below .3)": 0.1, "test-time gate": 0.0,
    "relevance conserved": 1e-12, "relevance shares": 1e-12,
}  # fmt: skip


def identities() -> pa.Table:
    rows = [
        {"check": check, "case": f"case {i}", "metric": "deviation", "value": value * i, "unit": "1"}
        for check, value in CHECKS.items()
        for i in range(3)
    ]
    return table_from(rows, COLUMNS["identities"])


def gates() -> pa.Table:
    generator = np.random.default_rng(0)
    rows = []
    for seed in range(SEEDS):
        for penalty in PENALTIES:
            for layer, head in PLACES:
                kept = (layer, head) in KEPT
                rows.append(
                    {"seed": seed, "arm": "encoder", "penalty": penalty, "kind": "encoder", "layer": layer}
                    | {"head": head, "log_alpha": (4 if kept else -5) + generator.normal(0, 0.3)}
                    | {"gate": abs(float(kept) - generator.uniform(0, 0.02))}
                )
        for kind, layers, left in (("encoder", 3, 2), ("decoder", 2, 5), ("cross", 2, 6)):
            for layer in range(layers):
                extra = int(seed % 3 == layer)
                for head in range(HEADS):
                    kept = head < left + extra
                    rows.append(
                        {"seed": seed, "arm": "all", "penalty": 0.03, "kind": kind, "layer": layer, "head": head}
                        | {"log_alpha": 4.0 if kept else -4.0, "gate": abs(float(kept) - generator.uniform(0, 0.02))}
                    )
    return table_from(rows, COLUMNS["gates"])


def gate_paths() -> pa.Table:
    rows = [
        {"seed": seed, "arm": "encoder", "penalty": penalty, "kind": "encoder", "layer": layer, "head": head}
        | {"step": step, "shut": 0.05 if (layer, head) in KEPT else step / 200}
        for seed in range(2)
        for penalty in PENALTIES
        for layer, head in PLACES
        for step in (100, 200)
    ]
    return table_from(rows, COLUMNS["gate_paths"])


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


def scores() -> pa.Table:
    generator = np.random.default_rng(1)
    rows = []
    for seed in range(SEEDS):
        cases = [("open", True, 0.0, 24, (0.115, 95.7)), ("all", True, 0.03, 26, (0.14, 95.0))]
        cases += [(arm, tuned, p, 10, v) for p in PENALTIES for (arm, tuned), v in SCORES.items()]
        shared = generator.normal(0, 0.1)
        for arm, tuned, penalty, kept, (loss, bleu) in cases:
            where = {"seed": seed, "arm": arm, "penalty": penalty, "mask": 0, "tuned": tuned, "kept": kept}
            noise = generator.normal(0, 0.0003)
            rows.append(where | {"metric": "cross_entropy", "value": loss + noise, "unit": "nats"})
            if bleu is not None:
                value = bleu + shared + generator.normal(0, 0.05)
                rows.append(where | {"metric": "bleu", "value": value, "unit": "BLEU"})
    return table_from(rows, COLUMNS["scores"])


def heads() -> pa.Table:
    generator = np.random.default_rng(2)
    rows = []
    for seed in range(SEEDS):
        for arm in ("relative", "sinusoid", "untrained"):
            for layer, head in PLACES:
                weight = 6.0 / (1 + head) ** 1.5 if arm == "relative" else 1.0
                size = weight * generator.uniform(0.8, 1.2)
                a, b, c = generator.uniform(0.75, 1.25, 3)
                found = {
                    "relevance": a * size / 20,
                    "ablation": b * size / 100,
                    "gradient": c * size / 50,
                    "entropy": 0.5,
                }
                found["confidence"] = min(0.95, 0.15 * size + 0.02 * generator.random())
                rows += [
                    {"seed": seed, "arm": arm, "kind": "encoder", "layer": layer, "head": head}
                    | {"metric": metric, "value": value, "unit": "1"}
                    for metric, value in found.items()
                ]
    return table_from(rows, COLUMNS["heads"])


def quality() -> pa.Table:
    generator = np.random.default_rng(3)
    values = {"cross_entropy": 0.12, "standard_error": 0.006, "without_encoder_heads": 1.9, "shuffled_bleu": 3.0}
    values |= {"bleu": 95.8}
    rows = [
        {"seed": seed, "arm": arm, "metric": metric, "value": value * generator.uniform(0.99, 1.01), "unit": "1"}
        for seed in range(SEEDS)
        for arm in ("relative", "sinusoid", "untrained")
        for metric, value in values.items()
    ]
    return table_from(rows, COLUMNS["quality"])


def positions() -> pa.Table:
    generator = np.random.default_rng(4)
    rows = []
    for seed in range(SEEDS):
        for arm in ("relative", "sinusoid", "untrained", "pruned"):
            for weighting in ("weight", "norm"):
                for layer, head in PLACES:
                    for half in (0, 1):
                        for offset in range(-5, 6):
                            special = arm in ("relative", "pruned") and POSITIONAL.get((layer, head)) == offset
                            share = 0.96 if special else 0.1
                            rows.append(
                                {"seed": seed, "arm": arm, "weighting": weighting, "layer": layer, "head": head}
                                | {"half": half, "offset": offset, "count": 1000.0}
                                | {"hits": float(round(1000 * share + generator.normal(0, 5)))}
                            )
    return table_from(rows, COLUMNS["positions"])


def relations() -> pa.Table:
    generator = np.random.default_rng(5)
    rows = []
    for seed in range(SEEDS):
        for arm in ("relative", "sinusoid", "untrained", "pruned"):
            for trees in ("given", "permuted"):
                for relation, direction in PAIRS:
                    for layer, head in PLACES:
                        special = SYNTACTIC.get((layer, head)) == (relation, direction)
                        real = special and trees == "given" and arm in ("relative", "pruned")
                        for half in (0, 1):
                            rows.append(
                                {"seed": seed, "arm": arm, "trees": trees, "relation": relation}
                                | {"direction": direction, "layer": layer, "head": head, "half": half, "count": 500.0}
                                | {"hits": float(round(500 * (0.8 if real else 0.2) + generator.normal(0, 4)))}
                            )
    return table_from(rows, COLUMNS["relations"])


def baselines() -> pa.Table:
    rows = [
        {"seed": seed, "trees": trees, "relation": relation, "direction": direction, "half": half, "count": 500.0}
        | {"offset": offset, "hits": hits}
        for seed in range(SEEDS)
        for trees in ("given", "permuted")
        for relation, direction in PAIRS
        for half in (0, 1)
        for offset, hits in ((1, 200.0), (2, 120.0 + half), (-1, 90.0))
    ]
    return table_from(rows, COLUMNS["baselines"])


def rare() -> pa.Table:
    generator = np.random.default_rng(6)
    rows = []
    for seed in range(SEEDS):
        for arm in ("relative", "untrained"):
            for frequencies in ("counted", "permuted"):
                for layer, head in PLACES:
                    real = (layer, head) == RARE and arm == "relative" and frequencies == "counted"
                    for within in (1, 2):
                        place = {"seed": seed, "arm": arm, "frequencies": frequencies, "layer": layer, "head": head}
                        share = (0.7 if real else 0.13) + generator.normal(0, 0.01)
                        rows.append(
                            place | {"within": within, "hits": 1000 * share, "count": 1000.0, "expected": 65.0 * within}
                        )
    return table_from(rows, COLUMNS["text_rare"])


def everything() -> dict[str, pa.Table]:
    made = (gates, gate_paths, scores, heads, quality, positions, relations, baselines)
    shared = {make.__name__: make() for make in made}
    return {
        "identities": identities(),
        **shared,
        **{f"{statistics.TEXT}{n}": t for n, t in shared.items()},
        "text_rare": rare(),
    }


def judged(tables: dict[str, pa.Table], preset: str = "workstation") -> StudyVerdicts:
    claims = load_claims(FOLDER / "claims.yaml")
    return judge_study(claims, tables, statistics, preset=preset, study="head_pruning", seeds=SEEDS)

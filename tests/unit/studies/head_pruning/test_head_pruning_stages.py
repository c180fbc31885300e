"""The stages on small sizes, of both tracks: every arm has its rows, what is frozen stays, divergence is named."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from restudy.bench.context import Context
from restudy.catalog import study
from restudy.errors import RestudyError, ResultError
from restudy.methods.transformer import Shape, Transformer
from restudy.results import table_bytes
from restudy.results.columns import table_from
from restudy.studies.head_pruning import exact, experiment, measure, models
from restudy.studies.head_pruning.experiment import Recipe, fit
from restudy.tables import where

TRAIN = {
    "arms": ["relative", "sinusoid"], "sentences": 300, "held_out": 40, "batch_tokens": 600, "d_model": 32, "heads": 4,
    "d_ff": 32, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.1, "max_distance": 8, "steps": 6,
    "learning_rate": 3e-3, "warmup": 3,
}  # fmt: skip
PRUNE = {
    "penalties": [0.01], "penalty_all": 0.01, "steps": 4, "learning_rate": 3e-4, "gate_rate": 0.5, "random_masks": 3,
    "random_tuned": 1, "scratch": True,
}  # fmt: skip
MEASURE = {"sentences": 30, "relevance_sentences": 10}
# Names of tensors begin alike for 1 and 1.5; more sentences for relevance than there are.
OF_TEXT = {
    "prune": {"penalties": [0.5, 1.0, 1.5], "penalty_all": None, "scratch": False},
    "measure": {"relevance_sentences": 60},
}


def chain(folder: Path, track: str, given: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """All stages of seed 7, each given what those before it wrote."""
    tables = {name: [folder / name] for name in given}
    weights: dict[str, list[Path]] = {}
    found: dict[str, pa.Table] = {}
    for name, table in given.items():
        (folder / name).write_bytes(table_bytes(table))
    for stage, parameters in ((experiment.train, TRAIN), (experiment.prune, PRUNE), (measure.measure, MEASURE)):
        parameters = parameters | (OF_TEXT.get(stage.__name__, {}) if given else {})
        declared = study("head_pruning").file.stages[models.prefix(track) + stage.__name__].tables
        context = Context(checkpoints=folder / stage.__name__, tables=tables, weights=weights)
        for name, output in stage(context, seeds=[7], track=track, **parameters).items():
            path = folder / name
            if name in declared:
                found[name], tables[name] = table_from(output, declared[name]), [path]
                path.write_bytes(table_bytes(found[name]))
            else:
                save_file({k: v.contiguous() for k, v in output.items()}, path)
                weights[name] = [path]
    return found


def test_every_arm_has_its_rows(tmp_path: Path) -> None:
    results = chain(tmp_path, "synthetic", {})
    scores = {(r["arm"], r["tuned"]) for r in results["scores"].to_pylist()}
    names = ("l0", "random", "confidence")
    assert scores == {(n, t) for n in names for t in (True, False)} | {
        ("open", True), ("l0_soft", True), ("scratch", True), ("all", True),
    }  # fmt: skip
    assert where(results["scores"], arm="random", tuned=False, metric="cross_entropy").num_rows == 3
    gates = results["gates"].to_pylist()
    assert {r["kind"] for r in gates if r["arm"] == "all"} == {"encoder", "decoder", "cross"}
    assert {r["arm"] for r in results["positions"].to_pylist()} == {"relative", "sinusoid", "untrained", "pruned"}
    relevance = where(results["heads"], metric="relevance", arm="relative", kind="encoder", layer=1)
    assert sum(relevance["value"].to_pylist()) == pytest.approx(1.0)


def text_tables() -> dict[str, pa.Table]:
    """Units of a made-up text, 600 pieces a side; every second source piece ends a word."""
    chance, rows = random.Random(0), []
    for number in range(200):
        size = chance.choice((4, 6, 8))
        words = {"first": list(range(0, size, 2)), "last": list(range(2, size + 1, 2))}
        part = "held_out" if number >= 150 else "train"
        rows.append(
            {"part": part, "book": "Genesis", "chapter": 1, "verse": number, "unit": 0, **words}
            | {"source": chance.choices(range(3, 600), k=size), "target": chance.choices(range(3, 600), k=size)}
            | {"relations": [0, 0, 1, 2, 1, 0] if part == "held_out" else []}
        )
    pieces = [
        {"side": side, "piece": piece, "text": f"p{piece}</w>" if piece % 2 else f"p{piece}", "count": 1}
        for side in ("source", "target")
        for piece in range(600)
    ]
    return {"text_sentences": pa.Table.from_pylist(rows), "text_pieces": pa.Table.from_pylist(pieces)}


def test_real_text_goes_through_the_same_stages(tmp_path: Path) -> None:
    found = chain(tmp_path, "text", text_tables())
    assert "all" not in found["text_gates"]["arm"].to_pylist()
    shares = where(found["text_heads"], metric="relevance", arm="relative", kind="encoder", layer=1)
    assert sum(shares["value"].to_pylist()) == pytest.approx(1.0)
    assert set(found["text_relations"]["relation"].to_pylist()) == {"nsubj", "amod"}
    rows = where(found["text_rare"], arm="relative", frequencies="counted", within=2).to_pylist()
    assert len(rows) == 2 * 4 and all(0 <= row["hits"] <= row["count"] for row in rows)
    assert len({(row["count"], row["expected"]) for row in rows}) == 1


def test_real_text_is_read_as_the_stage_left_it() -> None:
    sentences, pieces = text_tables().values()
    data = models.read(sentences, pieces, 150, 50, 500)
    assert data.spell([3, 4, 5]) == ["p3", "p4p5"] and data.held_out[0].relations == ((0, 0, 1), (2, 1, 0))
    assert sum(data.source_counts) == sum(int((source >= 3).sum()) for source, _ in data.batches)
    with pytest.raises(ResultError, match="50 held-out units, 60 asked for"):
        models.read(sentences, pieces, 100, 60, 500)


def test_held_out_sentences_are_not_in_training() -> None:
    data = models.draw(3, 200, 10, 500)
    known = {tuple(row) for source, _ in data.batches for row in source.tolist()}
    assert sum(len(source) for source, _ in data.batches) == 200
    assert not known & {tuple(row) for source, _ in data.pairs() for row in source.tolist()}


def test_identities_are_within_their_tolerance() -> None:
    worst: dict[str, float] = {}
    for row in exact.check(Context(checkpoints=Path("x")), cases=1, draws=20_000)["identities"]:
        worst[row["check"]] = max(worst.get(row["check"], 0.0), row["value"])
    assert worst["torch attention"] < 1e-5 and worst["removal"] < 1e-10 and worst["relevance conserved"] < 1e-4
    assert all(worst[name] < 1 for name in ("gate mean", "gate variance", "P(open)", "P(one)", "P(below .3)"))
    assert len(worst) == 12


def test_a_frozen_decoder_does_not_move_and_divergence_is_named() -> None:
    data = models.draw(3, 200, 10, 500)
    shape = Shape(len(data.source_counts), data.target_size, 16, 2, 16, 2, 1, max_distance=3)
    torch.manual_seed(0)
    model = Transformer(shape)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fit(model, data.batches, Recipe("arm", 3, 3, 1e-2, 1, trained="encoder"))
    moved = {name.split(".")[0] for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"source_embedding", "encoder_layers", "encoder_norm"}
    with torch.no_grad():
        model.target_embedding.weight.fill_(float("nan"))
    with pytest.raises(RestudyError, match="diverged at step 2"):
        fit(model, data.batches, Recipe("arm", 3, 2, 1e-3, 1))


def test_learning_rate_rises_and_falls_to_nothing() -> None:
    rates = [Recipe("arm", 0, 100, 1.0, 10).rate(step) for step in range(100)]
    assert max(rates) == pytest.approx(1.0) and rates[0] == pytest.approx(0.1) and rates[-1] == pytest.approx(1 / 90)

"""The stages on small sizes: the same bits twice and after a kill, what is frozen stays, heads are really removed."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pyarrow as pa
import pytest
import torch
from safetensors.torch import save_file

from restudy.bench.context import Context
from restudy.errors import RestudyError, ResultError
from restudy.methods.pruning import HeadGates
from restudy.methods.text.grammar import BOS, EOS
from restudy.methods.transformer import Shape, Transformer
from restudy.results import table_bytes
from restudy.studies.head_pruning import check, corpus, fitting, measure, prune, train
from restudy.tables import where

TRAIN = {
    "track": "synthetic", "arms": ["relative", "sinusoid"], "sentences": 300, "held_out": 40, "batch_tokens": 600,
    "d_model": 32, "heads": 4, "d_ff": 32, "encoder_layers": 2, "decoder_layers": 1, "dropout": 0.1, "max_distance": 8,
    "steps": 6, "learning_rate": 3e-3, "warmup": 3,
}  # fmt: skip
PRUNE = {
    "track": "synthetic", "penalties": [0.01], "penalty_all": 0.01, "steps": 4, "learning_rate": 3e-4, "gate_rate": 0.5,
    "random_masks": 3, "random_tuned": 1, "scratch": True,
}  # fmt: skip
MEASURE = {"track": "synthetic", "sentences": 30, "relevance_sentences": 10}


TEXT = {"track": "text"}
# Names of tensors begin alike for 1 and 1.5; more sentences for relevance than there are.
TEXT_CHANGES = {
    "prune_heads": {"penalties": [0.5, 1.0, 1.5], "penalty_all": None, "scratch": False},
    "measure_heads": {"relevance_sentences": 60},
}


def chain(folder: Path, given: dict[str, pa.Table] | None = None) -> dict[str, pa.Table]:
    """All stages of seed 7, each given what those before it wrote; of real text where its tables are given."""
    tables: dict[str, list[Path]] = {}
    weights: dict[str, list[Path]] = {}
    found: dict[str, pa.Table] = {}
    for name, table in (given or {}).items():
        tables[name] = [folder / name]
        tables[name][0].write_bytes(table_bytes(table))
    stages = ((train.train_models, TRAIN), (prune.prune_heads, PRUNE), (measure.measure_heads, MEASURE))
    for stage, parameters in stages:
        if given:
            parameters = parameters | TEXT | TEXT_CHANGES.get(stage.__name__, {})
        context = Context(checkpoints=folder / stage.__name__, tables=tables, weights=weights)
        for name, output in stage(context, seeds=[7], **parameters).items():
            path = folder / name
            if isinstance(output, pa.Table):
                path.write_bytes(table_bytes(output))
                tables[name], found[name] = [path], output
            else:
                save_file({k: v.contiguous() for k, v in output.items()}, path)
                weights[name] = [path]
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, pa.Table]:
    return chain(tmp_path_factory.mktemp("chain"))


def test_the_same_seed_gives_the_same_tables(results: dict[str, pa.Table], tmp_path: Path) -> None:
    again = chain(tmp_path)
    assert {name for name in again if not again[name].equals(results[name])} == set()


def test_every_arm_has_its_rows(results: dict[str, pa.Table]) -> None:
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
    found = chain(tmp_path, text_tables())
    assert set(found) == {
        f"text_{name}"
        for name in ("setup", "training", "gates", "gate_paths", "scores", "heads", "quality", "positions")
        + ("relations", "baselines", "rare")
    }
    assert "all" not in found["text_gates"]["arm"].to_pylist()
    shares = where(found["text_heads"], metric="relevance", arm="relative", kind="encoder", layer=1)
    assert sum(shares["value"].to_pylist()) == pytest.approx(1.0)
    assert set(found["text_relations"]["relation"].to_pylist()) == {"nsubj", "amod"}
    rows = where(found["text_rare"], arm="relative", frequencies="counted", within=2).to_pylist()
    assert len(rows) == 2 * 4 and all(0 <= row["hits"] <= row["count"] for row in rows)
    assert len({(row["count"], row["expected"]) for row in rows}) == 1


def test_held_out_units_that_are_not_there(tmp_path: Path) -> None:
    tables = text_tables()
    with pytest.raises(ResultError, match="50 held-out units, 60 asked for"):
        corpus.read(tables["text_sentences"], tables["text_pieces"], 100, 60, 500)


def test_words_are_spelt_from_pieces() -> None:
    names = {3: "ab", 4: "c</w>", 5: "d</w>", 6: "<unk>"}
    assert corpus.spelt([3, 4, 5, 3], names) == ["abc", "d", "ab"]
    data = corpus.read(*text_tables().values(), 150, 50, 500)
    assert data.spell([3, 4, 5]) == ["p3", "p4p5"] and sum(data.source_counts) == sum(
        int((source >= 3).sum()) for source, _ in data.batches
    )


def test_identities_are_within_their_tolerance() -> None:
    rows = check.check_identities(Context(checkpoints=Path("x")), cases=1, draws=20_000)["identities"].to_pylist()
    worst = {r["check"]: 0.0 for r in rows}
    for row in rows:
        worst[row["check"]] = max(worst[row["check"]], row["value"])
    assert worst["torch attention"] < 1e-5 and worst["removal"] < 1e-10 and worst["relevance conserved"] < 1e-4
    assert all(worst[name] < 1 for name in ("gate mean", "gate variance", "P(open)", "P(one)", "P(below .3)"))
    assert len(worst) == 12


@pytest.fixture
def small() -> tuple[Transformer, list[corpus.Pair]]:
    data = corpus.draw(3, 200, 10, 500)
    torch.manual_seed(0)
    return Transformer(Shape(data.source_size, data.target_size, 16, 2, 16, 2, 1, max_distance=3)), data.batches


def test_a_killed_run_goes_on_to_the_same_bits(
    small: tuple[Transformer, list[corpus.Pair]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batches = small
    monkeypatch.setattr(fitting, "CHECKPOINT_EVERY", 50)
    recipe = fitting.Recipe("arm", 3, 120, 1e-3, 10, penalty=0.01)
    straight, gates = copy.deepcopy(model), HeadGates({"encoder": (2, 2)})
    records = fitting.fit(straight, batches, recipe, gates)

    def killed(record: fitting.Record) -> None:
        raise KeyboardInterrupt

    other, path = copy.deepcopy(model), tmp_path / "c.pt"
    with pytest.raises(KeyboardInterrupt):
        fitting.fit(other, batches, recipe, HeadGates({"encoder": (2, 2)}), path, watch=killed)
    resumed, own = copy.deepcopy(model), HeadGates({"encoder": (2, 2)})
    assert fitting.fit(resumed, batches, recipe, own, path) == records
    for a, b in zip(straight.parameters(), resumed.parameters(), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(gates.log_alpha["encoder"], own.log_alpha["encoder"])
    with pytest.raises(ResultError, match="another run"):
        fitting.fit(resumed, batches, fitting.Recipe("arm", 4, 120, 1e-3, 10), None, path)


def test_a_frozen_decoder_does_not_move(small: tuple[Transformer, list[corpus.Pair]]) -> None:
    model, batches = small
    before = {name: value.clone() for name, value in model.state_dict().items()}
    fitting.fit(model, batches, fitting.Recipe("arm", 3, 3, 1e-2, 1, trained="encoder"))
    moved = {name.split(".")[0] for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"source_embedding", "encoder_layers", "encoder_norm"}


def test_divergence_is_named(small: tuple[Transformer, list[corpus.Pair]]) -> None:
    model, batches = small
    with torch.no_grad():
        model.target_embedding.weight.fill_(float("nan"))
    with pytest.raises(RestudyError, match="diverged at step 2"):
        fitting.fit(model, batches, fitting.Recipe("arm", 3, 2, 1e-3, 1))


def test_batches_hold_every_sentence_and_stay_within_their_size() -> None:
    data = corpus.draw(3, 200, 10, 500)
    assert sum(len(source) for source, _ in data.batches) == 200
    assert all(len(s) * (s.shape[1] + t.shape[1]) <= 500 for s, t in data.batches)
    source, target = data.pairs()[0]
    assert (target[:, 0] == BOS).all() and all(EOS in row for row in source.tolist() + target.tolist())
    known = {tuple(row) for s, _ in data.batches for row in s.tolist()}
    assert not known & {tuple(row) for row in source.tolist()}


def test_learning_rate_rises_and_falls_to_nothing() -> None:
    recipe = fitting.Recipe("arm", 0, 100, 1.0, 10)
    rates = [recipe.rate(step) for step in range(100)]
    assert max(rates) == pytest.approx(1.0) and rates[0] == pytest.approx(0.1) and rates[-1] == pytest.approx(1 / 90)

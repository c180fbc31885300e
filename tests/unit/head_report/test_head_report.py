"""A user's own model: heads are measured, unsupported modules named, and what is pruned is smaller and restorable."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn

from restudy.cli.heads import heads
from restudy.errors import ConfigError
from restudy.head_report import Options, find_attention, inspect_heads, remove_heads, restore
from restudy.head_report.adapters import observing, shut
from restudy.head_report.inspect import gradients
from restudy.head_report.load import load_data, load_model
from restudy.results import read_table

torch.set_num_threads(1)
MODEL = """
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        layer = nn.TransformerEncoderLayer(16, 4, 32, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.out = nn.Linear(16, 5)

    def forward(self, inputs):
        return self.out(self.encoder(self.embed(inputs), src_key_padding_mask=inputs == 0))

def build():
    return Tagger()

class Frozen(Tagger):
    def forward(self, inputs):
        with torch.no_grad():
            return super().forward(inputs)

class Mapping(Tagger):
    def forward(self, inputs):
        return {"scores": super().forward(inputs)}

class Positions(Tagger):
    def __init__(self):
        super().__init__()
        self.positions = nn.Embedding(6, 16)

    def forward(self, inputs):
        return self.out(self.encoder(self.embed(inputs) + self.positions(torch.arange(inputs.shape[1]))))

def without_gradient():
    return Frozen()

def mapping():
    return Mapping()

def positions():
    return Positions()

def other_vocabulary():
    state = Tagger().state_dict()
    model = Tagger()
    model.embed = nn.Embedding(20, 16)
    model.load_state_dict(state)
    return model

def ragged():
    return {"inputs": [[1, 2], [3]], "targets": [0, 1]}

def data():
    return {"inputs": torch.randint(1, 11, (20, 6)), "targets": torch.randint(0, 5, (20, 6))}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_head_nets.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    inputs = generator.integers(1, 11, (40, 6))
    inputs[:5, 4:] = 0
    lengths = (inputs != 0).sum(1)
    np.savez("d.npz", inputs=inputs, targets=generator.integers(0, 5, (40, 6)), lengths=lengths)
    return tmp_path


def model_and_data(here: Path) -> tuple[nn.Module, dict[str, Tensor]]:
    return load_model("my_head_nets:build", 1), load_data("d.npz")


def test_command_writes_the_folder_and_repeats_it(here: Path) -> None:
    for out in ("a", "b"):
        arguments = ["--model", "my_head_nets:build", "--data", "d.npz", "--keep", "0.5", "--out", out]
        done = CliRunner().invoke(heads, arguments, catch_exceptions=False)
        assert done.exit_code == 0 and done.output.strip().endswith(f"{out}/index.html")
    names = sorted(path.name for path in (here / "a").iterdir())
    assert names == [
        "heads.parquet",
        "heads.pdf",
        "heads.png",
        "heads.svg",
        "index.html",
        "kept.json",
        "pruned.safetensors",
    ]
    assert all((here / "a" / name).read_bytes() == (here / "b" / name).read_bytes() for name in names)
    table = read_table(here / "a" / "heads.parquet").to_pandas()
    assert table.groupby("metric").size().loc[["ablation", "confidence", "gradient", "offset +1"]].tolist() == [8] * 4
    assert table.value.notna().all()
    kept = json.loads((here / "a" / "kept.json").read_text())
    assert sum(len(own) for own in kept.values()) == 4
    assert "http" not in (here / "a" / "index.html").read_text()


def test_pruned_model_equals_the_one_with_shut_heads_and_is_restored(here: Path) -> None:
    model, data = model_and_data(here)
    whole = copy.deepcopy(model).eval()
    report = inspect_heads(model, data, here / "out", Options(keep=3, rounds=2))
    with torch.no_grad():
        for attention in find_attention(whole)[0]:
            gone = [h for h in range(4) if h not in report.kept[attention.name]]
            attention.columns()[:, gone] = 0.0
        expected = whole(data["inputs"])
        torch.testing.assert_close(model(data["inputs"]), expected, atol=1e-5, rtol=0)
        again = restore(load_model("my_head_nets:build", 9), here / "out")
        torch.testing.assert_close(again(data["inputs"]), expected, atol=1e-5, rtol=0)
    assert sum(p.numel() for p in model.parameters()) < sum(p.numel() for p in whole.parameters())
    assert report.losses.keys() == {"all heads", "pruned"}


def test_looking_changes_nothing(here: Path) -> None:
    model, data = model_and_data(here)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    inspect_heads(model, data, here / "out")
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert "forward" not in model.encoder.layers[0].self_attn.__dict__


def test_weights_are_those_that_torch_returns(here: Path) -> None:
    model, data = model_and_data(here)
    model.eval()
    seen: dict[str, Tensor] = {}
    with torch.no_grad(), observing(find_attention(model)[0], seen.__setitem__):
        model(data["inputs"])
    x = model.embed(data["inputs"])
    mask = data["inputs"] == 0
    first = model.encoder.layers[0].self_attn
    expected = first(x, x, x, key_padding_mask=mask, average_attn_weights=False)[1]
    torch.testing.assert_close(seen["encoder.layers.0.self_attn"], expected.detach(), atol=1e-6, rtol=0)


def test_gradient_is_the_slope_at_a_gate(here: Path) -> None:
    model, data = model_and_data(here)
    model.double().eval()
    batch = {name: values[:10] for name, values in data.items()}
    attentions = find_attention(model)[0]
    found = gradients(model, attentions, [batch], Options())[attentions[1].name]
    losses = []
    for factor in (1 - 1e-4, 1 + 1e-4):
        other = copy.deepcopy(model)
        with torch.no_grad():
            find_attention(other)[0][1].columns()[:, 2] *= factor
            losses.append(
                float(nn.functional.cross_entropy(other(batch["inputs"]).flatten(0, 1), batch["targets"].flatten()))
            )
    assert float(found[2]) == pytest.approx(abs(losses[1] - losses[0]) / 2e-4, rel=1e-3)


@pytest.mark.parametrize("batch_first", [True, False])
def test_removal_knows_masks_cross_attention_and_layers_without_heads(batch_first: bool) -> None:
    torch.manual_seed(0)
    net = nn.Transformer(16, 4, 1, 1, 32, 0.0, batch_first=batch_first).eval()
    source, target = torch.randn(3, 5, 16), torch.randn(3, 4, 16)
    hidden = torch.tensor([[0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 0, 1, 1, 1]], dtype=torch.bool)
    if not batch_first:
        source, target = source.transpose(0, 1), target.transpose(0, 1)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    options = {"tgt_mask": causal, "src_key_padding_mask": hidden, "memory_key_padding_mask": hidden}
    kept = {
        "encoder.layers.0.self_attn": [],
        "decoder.layers.0.self_attn": [1, 2],
        "decoder.layers.0.multihead_attn": [3],
    }
    smaller = copy.deepcopy(net)
    with torch.no_grad():
        for attention in find_attention(net)[0]:
            attention.columns()[:, [h for h in range(4) if h not in kept[attention.name]]] = 0.0
        remove_heads(smaller, kept)
        torch.testing.assert_close(
            smaller(source, target, **options), net(source, target, **options), atol=1e-5, rtol=0
        )


def test_what_is_not_known_is_named(here: Path) -> None:
    class OddAttention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mix = nn.Linear(4, 4)

    net = nn.ModuleDict(
        {"odd": OddAttention(), "wide": nn.MultiheadAttention(4, 2, kdim=6), "fine": nn.MultiheadAttention(4, 2)}
    )
    found, refused = find_attention(net)
    assert [a.name for a in found] == ["fine"]
    assert "OddAttention is no attention" in refused["odd"] and "width of their own" in refused["wide"]
    with pytest.raises(ConfigError, match="odd: OddAttention"):
        inspect_heads(nn.ModuleDict({"odd": OddAttention()}), {}, here / "out")


def test_mistakes_are_named_in_one_line(here: Path) -> None:
    model, data = model_and_data(here)
    for options, wanted in ((Options(keep=99), "--keep 99 of 8"), (Options(rounds=0), "rounds is 0")):
        with pytest.raises(ConfigError, match=wanted):
            inspect_heads(model, data, here / "out", options)
    with pytest.raises(ConfigError, match="give `targets`"):
        inspect_heads(model, {"inputs": data["inputs"]}, here / "out")
    with pytest.raises(ConfigError, match="do not fit targets"):
        inspect_heads(model, {"inputs": data["inputs"], "targets": data["lengths"]}, here / "out")
    with pytest.raises(ConfigError, match="no folder"):
        load_model("nowhere")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_data("absent.npz")
    assert set(load_data("my_head_nets:data")) == {"inputs", "targets"}


INPUTS, TARGETS = np.arange(240).reshape(40, 6) % 10 + 1, np.arange(240).reshape(40, 6) % 5


def changed(values: np.ndarray, number: int) -> np.ndarray:
    found = values.copy()
    found[7] = number
    return found


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        ({"targets": TARGETS}, "give `targets` and `inputs`"),
        ({"inputs": INPUTS[:30], "targets": TARGETS}, "of different lengths"),
        ({"inputs": np.array(3), "targets": TARGETS}, "`inputs` is a single number"),
        ({"inputs": INPUTS[:0], "targets": TARGETS[:0]}, "`inputs` of shape (0, 6) is empty"),
        ({"inputs": INPUTS[:, :0], "targets": TARGETS[:, :0]}, "`inputs` of shape (40, 0) is empty"),
        ({"inputs": changed(INPUTS, 17), "targets": TARGETS}, "embed: has rows 0 to 10 and is asked for row 17"),
        ({"inputs": changed(INPUTS, -1), "targets": TARGETS}, "is asked for row -1"),
        ({"inputs": INPUTS.astype(float), "targets": TARGETS}, "embed: is looked up with float32"),
        ({"inputs": changed(INPUTS, 0), "targets": TARGETS}, "the loss is nan from example 7"),
        ({"inputs": INPUTS, "targets": TARGETS.astype(float)}, "`targets` are float32"),
        ({"inputs": INPUTS, "targets": TARGETS + 3}, "`targets` hold 7 where the model has classes 0 to 4"),
        ({"inputs": INPUTS, "targets": TARGETS - 2}, "`targets` hold -2"),
        ({"inputs": INPUTS, "targets": TARGETS * 0 - 100}, "all `targets` are -100"),
        ({"inputs": INPUTS, "targets": TARGETS, "lengths": changed(np.full(40, 6), 9)}, "`lengths` of example 7 is 9"),
        ({"inputs": INPUTS, "targets": TARGETS, "lengths": changed(np.full(40, 6), -1)}, "of example 7 is -1"),
        ({"inputs": INPUTS, "targets": TARGETS, "lengths": changed(np.full(40, 6), 0)}, "of example 7 is 0"),
        ({"inputs": INPUTS, "targets": TARGETS, "lengths": np.full(40, 5.5)}, "`lengths` are (40,) float32"),
        ({"inputs": INPUTS, "targets": TARGETS, "lengths": INPUTS}, "`lengths` are (40, 6) int64"),
        ({"inputs": INPUTS.astype(str), "targets": TARGETS}, "`inputs` holds <U21, no numbers"),
        ({"inputs": INPUTS + 1j, "targets": TARGETS}, "`inputs` holds complex numbers"),
        ({"other": INPUTS, "targets": TARGETS}, "Tagger: the model fails on other (32, 6) int64: TypeError"),
    ],
)
def test_data_that_do_not_fit_are_one_line(here: Path, arrays: dict[str, np.ndarray], word: str) -> None:
    np.savez("x.npz", **arrays)
    with pytest.raises(ConfigError) as caught:
        CliRunner().invoke(heads, ["--model", "my_head_nets:build", "--data", "x.npz"], catch_exceptions=False)
    assert word in str(caught.value) and "\n" not in str(caught.value) and not (here / "heads").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--device", "nothing"], "--device nothing is no device"),
        (["--device", "meta"], "--device meta cannot be used"),
        (["--out", "d.npz/out"], "d.npz: is a file"),
        (["--data", "my_head_nets.py"], "neither a .npz nor"),
        (["--data", "folder.npz"], "cannot be read (IsADirectoryError)"),
        (["--data", "array.npz"], "cannot be read"),
        (["--data", "my_head_nets:ragged"], "`inputs` is no array of numbers"),
        (["--keep", "9"], "--keep 9 of 8"),
        (["--keep", "0"], "--keep is 0"),
        (["--loss", "mse"], "do not fit targets"),
        (["--model", "my_head_nets:other_vocabulary"], "size mismatch for embed.weight"),
        (["--model", "my_head_nets:without_gradient"], "the loss has no gradient"),
        (["--model", "my_head_nets:mapping"], "the model returns dict"),
        (["--model", "folder.npz"], "no folder with a config.json"),
    ],
)
def test_mistakes_of_the_command_are_one_line(here: Path, arguments: list[str], word: str) -> None:
    (here / "folder.npz").mkdir()
    with (here / "array.npz").open("wb") as file:
        np.save(file, INPUTS)
    common = ["--model", "my_head_nets:build", "--data", "d.npz"]
    with pytest.raises(ConfigError) as caught:
        CliRunner().invoke(heads, [*common, *arguments], catch_exceptions=False)
    assert word in str(caught.value) and "\n" not in str(caught.value) and not (here / "heads").exists()


def test_a_sentence_beyond_the_table_of_positions(here: Path) -> None:
    np.savez("x.npz", inputs=np.hstack([INPUTS, INPUTS]), targets=np.hstack([TARGETS, TARGETS]))
    with pytest.raises(ConfigError, match="embedding positions: has rows 0 to 5 and is asked for row 11"):
        inspect_heads(load_model("my_head_nets:positions"), load_data("x.npz"), here / "out")


def test_small_types_are_taken(here: Path) -> None:
    np.savez("x.npz", inputs=INPUTS.astype(np.uint8), targets=TARGETS.astype(np.int16))
    small = inspect_heads(load_model("my_head_nets:build"), load_data("x.npz"), here / "a")
    np.savez("x.npz", inputs=INPUTS, targets=TARGETS)
    assert inspect_heads(load_model("my_head_nets:build"), load_data("x.npz"), here / "b").losses == small.losses


def test_a_module_that_puts_sequences_first_is_named(here: Path) -> None:
    net = nn.Sequential(nn.Embedding(11, 16), nn.TransformerEncoderLayer(16, 4, 32), nn.Linear(16, 5))
    data = {"inputs": torch.tensor(INPUTS), "targets": torch.tensor(TARGETS), "lengths": torch.full((40,), 5)}
    report = inspect_heads(net, data, here / "out")
    assert "are the examples first?" in report.refused["1.self_attn"]
    assert "are the examples first?" in (here / "out" / "index.html").read_text()


def test_more_rounds_than_heads_cost_nothing_more(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import restudy.head_report.inspect as module

    calls, measure, kept = [], module.gradients, []
    monkeypatch.setattr(module, "gradients", lambda *given: calls.append(1) or measure(*given))
    for rounds in (5, 1000):
        model, data = model_and_data(here)
        kept.append(inspect_heads(model, data, here / "out", Options(keep=3, rounds=rounds)).kept)
    assert kept[0] == kept[1] and len(calls) == 2 * (1 + 5)


def test_shut_heads_come_back(here: Path) -> None:
    model, data = model_and_data(here)
    model.eval()
    attention = find_attention(model)[0][0]
    before = model(data["inputs"])
    with shut(attention, [0, 1, 2, 3]):
        assert not torch.equal(model(data["inputs"]), before)
    assert torch.equal(model(data["inputs"]), before)


def test_a_marian_model_is_measured_and_pruned(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the optional library transformers")
    torch.manual_seed(0)
    config = transformers.MarianConfig(
        vocab_size=20, d_model=16, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=16, pad_token_id=0,
        eos_token_id=1, decoder_start_token_id=0, forced_eos_token_id=1, attn_implementation="eager",
    )  # fmt: skip
    transformers.MarianMTModel(config).save_pretrained(tmp_path / "model")
    data = {"input_ids": torch.randint(2, 20, (6, 5)), "decoder_input_ids": torch.randint(2, 20, (6, 4))}
    data["targets"] = torch.randint(2, 20, (6, 4))
    model = load_model(str(tmp_path / "model"))
    whole = copy.deepcopy(model).eval()
    report = inspect_heads(model, data, tmp_path / "out", Options(keep=5))
    assert len(report.kept) == 4 and sum(map(len, report.kept.values())) == 5 and not report.refused
    named = {name: values for name, values in data.items() if name != "targets"}
    with torch.no_grad():
        for attention in find_attention(whole)[0]:
            attention.columns()[:, [h for h in range(4) if h not in report.kept[attention.name]]] = 0.0
        torch.testing.assert_close(model(**named).logits, whole(**named).logits, atol=1e-5, rtol=0)


def test_a_bert_model_is_measured_and_pruned(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="needs the optional library transformers")
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=4, intermediate_size=16,
        max_position_embeddings=16, attn_implementation="eager",
    )  # fmt: skip
    transformers.BertForMaskedLM(config).save_pretrained(tmp_path / "model")
    data = {"input_ids": torch.randint(2, 20, (6, 5)), "targets": torch.randint(2, 20, (6, 5))}
    model = load_model(str(tmp_path / "model"))
    whole = copy.deepcopy(model).eval()
    report = inspect_heads(model, data, tmp_path / "out", Options(keep=3))
    assert len(report.kept) == 2 and not report.refused
    with torch.no_grad():
        for attention in find_attention(whole)[0]:
            attention.columns()[:, [h for h in range(4) if h not in report.kept[attention.name]]] = 0.0
        found, expected = (net(input_ids=data["input_ids"]).logits for net in (model, whole))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)

"""A user's own model: tables, figures and a page in a folder; and what probing costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from restudy.cli.landscape import landscape
from restudy.errors import ConfigError
from restudy.methods.landscape import benchmark
from restudy.methods.landscape.load import load_data, load_model, numbers
from restudy.results import read_table

MODEL = """
import torch
from torch import nn
def build():
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.1), nn.Linear(8, 3))
def data():
    return torch.randn(64, 4), torch.randint(0, 3, (64,))
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "my_landscape_nets.py").write_text(MODEL)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    np.savez("d.npz", inputs=generator.normal(size=(64, 4)).astype("float32"), targets=generator.integers(0, 3, 64))
    return tmp_path


def test_command_writes_the_folder_and_repeats_it(here: Path) -> None:
    arguments = ["--model", "my_landscape_nets:build", "--data", "d.npz", "--steps", "0,3,6", "--batch-size", "16"]
    for out in ("a", "b"):
        done = CliRunner().invoke(landscape, [*arguments, "--out", out], catch_exceptions=False)
        assert done.exit_code == 0 and done.output.strip() == f"{out}/index.html"
    names = sorted(path.name for path in (here / "a").iterdir())
    figures = [f"{name}.{suffix}" for name in ("landscape", "shift") for suffix in ("pdf", "png", "svg")]
    assert names == sorted(["index.html", "landscape.parquet", "probes.parquet", *figures])
    assert all((here / "a" / name).read_bytes() == (here / "b" / name).read_bytes() for name in names)
    probes = read_table(here / "a" / "probes.parquet").to_pandas()
    assert set(probes.step) == {0, 3, 6} and probes.value.notna().all()
    assert set(probes[probes.metric == "shift_cosine"].layer) == {"4"}
    assert "http" not in (here / "a" / "index.html").read_text()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import sys\nsys.exit(0)", "fails when imported (SystemExit: 0)"),
        ("def build(:", "fails when imported (SyntaxError"),
        ("import nothing_of_the_kind", "it imports nothing_of_the_kind: install that"),
        ("def build():\n    raise KeyError('weights')", "raises KeyError: 'weights'"),
        ("def build(size):\n    return size", "raises TypeError"),
        ("build = 3", "is int; name a function"),
    ],
)
def test_a_users_code_that_fails_is_one_line(here: Path, text: str, said: str) -> None:
    name = f"broken_{abs(hash(text))}"
    (here / f"{name}.py").write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_model(f"{name}:build")
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not a zip"])
def test_a_file_that_is_no_npz_is_named(here: Path, content: bytes) -> None:
    (here / "bad.npz").write_bytes(content)
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        load_data("bad.npz")
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize(
    "act",
    [
        lambda: load_model("my_landscape_nets"),
        lambda: load_model("my_landscape_nets:nothing"),
        lambda: load_model("my_landscape_nets:data"),
        lambda: load_model("no_such_module_at_all:build"),
        lambda: load_data("absent.npz"),
        lambda: load_data("my_landscape_nets:build"),
        lambda: numbers("0,x"),
    ],
)
def test_mistakes_are_said_in_one_line(here: Path, act) -> None:
    with pytest.raises(ConfigError) as caught:
        act()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("inputs", "targets", "more", "word"),
    [
        (np.zeros((64, 5), "float32"), np.zeros(64, int), [], "Sequential: the model fails on inputs (16, 5)"),
        (np.full((64, 4), np.nan), np.zeros(64, int), [], "`inputs` are not all finite"),
        (np.zeros((64, 4)), np.zeros(64), [], "`targets` are float32"),
        (np.zeros((64, 4)), np.full(64, 3), [], "Target 3 is out of bounds"),
        (np.zeros((64, 4)), np.zeros(64), ["--loss", "mse"], "do not fit targets"),
        (np.float32(1), np.float32(1), [], "inputs of shape ()"),
        (np.array(["a"] * 64), np.zeros(64, int), [], "cannot be read"),
        (np.zeros((64, 4)), np.zeros(64, int), ["--device", "nothing"], "--device nothing"),
        (np.zeros((64, 4)), np.zeros(64, int), ["--out", "d.npz/out"], "is a file"),
        (np.zeros((64, 4)), np.zeros(64, int), ["--data", "d.csv"], "neither a .npz nor"),
    ],
)
def test_arrays_and_options_that_do_not_fit(here: Path, inputs, targets, more: list[str], word: str) -> None:
    np.savez("x.npz", inputs=inputs, targets=targets)
    arguments = ["--model", "my_landscape_nets:build", "--data", "x.npz", "--steps", "0,1", "--batch-size", "16"]
    with pytest.raises(ConfigError) as caught:
        CliRunner().invoke(landscape, [*arguments, *more], catch_exceptions=False)
    assert word in str(caught.value) and "\n" not in str(caught.value) and not (here / "landscape").exists()


def test_probes_agree_with_the_naive_way_and_cost_less() -> None:
    found = benchmark.against_naive(repeats=1, width=2, batch=32)
    assert found["difference"] < 1e-3 and found["ratio"] > 1.5
    share = benchmark.probing_share(repeats=1, width=2, batch=32)
    assert set(share) == {"step_ms", "probe_ms", "share", "aim"} and share["share"] > 0

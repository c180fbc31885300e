"""Facts inside outputs: they come back, tampering shows, and the same content gives the same bytes."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from restudy.errors import ResultError
from restudy.plotting.save import figure_bytes
from restudy.provenance import Facts, read_stamp, stamp_bytes, verify
from restudy.provenance.stamp import kernels_in, stamp_json, stamp_parquet, stamp_tensors
from restudy.results import read_table

FACTS = Facts("study", "laptop", "stage", "train", "s0", "f" * 64, {"parameters": {"a": "-->", "b": "é <b> --"}})
TABLE = pa.table({"seed": [0, 1], "value": [0.5, float("nan")], "list": [[1.0], []], "name": ["a", None]})


def drawing() -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.subplots().plot(np.arange(3), label="ω")
    return figure


def contents() -> dict[str, bytes]:
    figures = figure_bytes(drawing())
    found = {suffix: stamp_bytes(content, f".{suffix}", FACTS) for suffix, content in figures.items()}
    found["html"] = stamp_bytes(b"<html><body>x</body></html>\n", ".html", FACTS)
    found["parquet"] = stamp_parquet(TABLE, FACTS)
    found["safetensors"] = stamp_tensors({"b": torch.arange(4.0), "a": torch.ones(2, 2)}, FACTS)
    found["json"] = stamp_json({"x": 1, "y": None}, FACTS)
    return found


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf", "html", "parquet", "safetensors", "json"])
def test_facts_come_back_and_tampering_shows(tmp_path: Path, suffix: str) -> None:
    raw = contents()[suffix]
    assert raw == contents()[suffix], "the same content gives the same bytes"
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(raw)
    facts, content = read_stamp(path)
    assert facts.content == content and facts.ingredients == FACTS.ingredients
    assert verify(path, FACTS.fingerprint) is None
    assert "stale" in (verify(path, "0" * 64) or "")
    for at in range(0, len(raw), max(1, len(raw) // 40)):
        changed = bytearray(raw)
        changed[at] ^= 0x04
        path.write_bytes(bytes(changed))
        assert verify(path, FACTS.fingerprint) or _same_meaning(path, suffix), f"byte {at} of {len(raw)}"
    for size in (0, 1, len(raw) // 2, len(raw) - 2):
        path.write_bytes(raw[:size])
        assert verify(path, FACTS.fingerprint)


def _same_meaning(path: Path, suffix: str) -> bool:
    """A flipped byte that changes neither content nor facts: a checksum of the container, or padding."""
    if suffix == "parquet":
        return read_table(path).equals(TABLE) or read_table(path).to_pylist().__repr__() == TABLE.to_pylist().__repr__()
    if suffix == "png":
        from PIL import Image

        return np.array_equal(np.asarray(Image.open(path)), np.asarray(Image.open(io.BytesIO(contents()["png"]))))
    facts, _ = read_stamp(path)
    return facts.ingredients != FACTS.ingredients or facts.fingerprint == FACTS.fingerprint


def test_missing_file_and_missing_facts(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="missing"):
        read_stamp(tmp_path / "x.parquet")
    (tmp_path / "x.svg").write_text("<svg></svg>")
    with pytest.raises(ResultError, match="without its facts"):
        read_stamp(tmp_path / "x.svg")


def test_facts_cannot_end_a_comment() -> None:
    hostile = Facts("s", "p", "k", "n", "h", "f", {"x": "--><script>alert(1)</script><!--"})
    raw = stamp_bytes(b"<html></html>", ".html", hostile)
    assert raw.count(b"-->") == 1 and b"<!--restudy" in raw


def test_content_counts_and_encoding_does_not(tmp_path: Path) -> None:
    chunked = pa.chunked_array([[0], [1]])
    other = TABLE.set_column(0, "seed", chunked)
    assert stamp_parquet(other, FACTS) == stamp_parquet(TABLE, FACTS)
    changed = TABLE.set_column(0, "seed", pa.array([0, 2]))
    assert stamp_parquet(changed, FACTS) != stamp_parquet(TABLE, FACTS)


@pytest.mark.parametrize("suffix", ["parquet", "safetensors", "json", "svg"])
def test_kernel_sets_are_told_and_count_for_nothing(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, kinds = tmp_path / f"x.{suffix}", ["AMD 25/1, AVX2", "Intel -- 6/207"]
    path.write_bytes(contents()[suffix])
    plain, _ = read_stamp(path)
    assert plain.kernels == [] == kernels_in(path)
    monkeypatch.setattr(f"{__name__}.FACTS", replace(FACTS, kernels=kinds))
    path.write_bytes(contents()[suffix])
    facts, content = read_stamp(path)
    assert facts.kernels == kinds and content == plain.content and verify(path, FACTS.fingerprint) is None
    assert kernels_in(path) == (kinds if suffix in ("parquet", "safetensors") else [])


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"\xff" * 40, b"\x02" + b"\0" * 7 + b"[]"])
def test_no_kernel_sets_in_what_cannot_be_read(tmp_path: Path, raw: bytes) -> None:
    for suffix in ("parquet", "safetensors"):
        (tmp_path / f"x.{suffix}").write_bytes(raw)
        assert kernels_in(tmp_path / f"x.{suffix}") == []
        assert kernels_in(tmp_path / f"none.{suffix}") == []


PAIRS = st.lists(st.floats(width=32), min_size=2, max_size=2)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(st.text(min_size=1, max_size=8), PAIRS, min_size=1))
def test_any_table_survives(tmp_path_factory: pytest.TempPathFactory, columns: dict[str, list[float]]) -> None:
    path = tmp_path_factory.mktemp("t") / "x.parquet"
    path.write_bytes(stamp_parquet(pa.table(columns), FACTS))
    facts, content = read_stamp(path)
    assert facts.content == content
    assert json.loads(read_table(path).schema.metadata[b"restudy"])["study"] == "study"

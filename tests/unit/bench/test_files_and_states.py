"""Atomic writing, paths and their nodes, and what is said of a change."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

from restudy.bench.estimate import Estimate, table
from restudy.bench.outputs import node_of, outputs
from restudy.bench.status import State, changes, lines
from restudy.catalog import slugs
from restudy.errors import ConfigError, ResultError
from restudy.provenance.fingerprint import Node, nodes
from restudy.results import merge, read_table, table_bytes, write_atomically


def test_writing_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "deep" / "x.bin"
    write_atomically(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultError, match=r"No space left.*free some space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and list(path.parent.iterdir()) == [path]


def test_tables_cut_short_are_named(tmp_path: Path) -> None:
    raw = table_bytes(pa.table({"x": [1]}))
    (tmp_path / "x.parquet").write_bytes(raw[:-10])
    with pytest.raises(ResultError, match=r"x\.parquet: not readable as Parquet"):
        read_table(tmp_path / "x.parquet")
    with pytest.raises(ResultError, match="missing"):
        read_table(tmp_path / "y.parquet")


def test_merge_keeps_order_and_refuses_other_columns() -> None:
    one, two = pa.table({"x": [1]}), pa.table({"x": [2]})
    assert merge([one, two])["x"].to_pylist() == [1, 2]
    with pytest.raises(ResultError, match="tables of one stage differ"):
        merge([one, pa.table({"x": [[1.0]]})])


@pytest.mark.parametrize("preset", ["smoke", "laptop", "workstation", "paper"])
def test_every_output_leads_back_to_its_node(preset: str) -> None:
    for slug in slugs():
        for node in nodes(slug, preset):
            for path in outputs(node):
                assert node_of(path) == node


@pytest.mark.parametrize("path", ["results/laptop/saliency_sanity/nothing.parquet", "README.md", "results/x", "../x"])
def test_foreign_paths_are_refused(path: str) -> None:
    with pytest.raises(ConfigError):
        node_of(path)


def test_a_study_that_was_never_run_is_one_line() -> None:
    def state(slug: str, name: str, word: str, *reasons: str) -> State:
        return State(Path(f"results/mine/{slug}/{name}"), Node("stage", "mine", slug), word, reasons)

    states = [state("new", "a", "missing"), state("new", "b", "missing"), state("old", "a", "fresh")]
    states += [state("old", "b", "stale", "code x: 1 -> 2"), state("old", "c", "missing")]
    assert lines(states) == [
        "not run   new: `make reproduce PRESET=mine STUDY=new` makes its 2 outputs",
        "stale     results/mine/old/b",
        "          code x: 1 -> 2",
        "missing   results/mine/old/c",
    ]
    assert len(lines(states, everything=True)) == 6 and "not run" not in "".join(lines(states, everything=True))


def test_an_estimate_says_what_it_rests_on() -> None:
    def text(*shares: float) -> str:
        return table([Estimate(f"s{i}", 2.0, 1.0, 3, share, 2.0, None) for i, share in enumerate(shares)], 2)

    assert "declared" not in text(1.0).split("cores")[-1]
    assert "not measured (never run here): all of them" in text(0.0, 0.0)
    mixed = text(0.0, 0.5, 1.0)
    assert "never run here): s0\n" in mixed and mixed.endswith("partly declared: s1 (50% of its jobs measured)")


def test_changes_say_old_and_new() -> None:
    old = {"code": {"a": "1" * 16, "b": "2" * 16}, "parameters": {"seeds": [0]}, "format": 1}
    new = {"code": {"a": "3" * 16}, "parameters": {"seeds": [0, 1]}, "format": 2}
    assert changes(old, new) == [
        "code a: 111111111111 -> 333333333333",
        "code b: 222222222222 -> absent",
        "format: 1 -> 2",
        "parameters seeds: [0] -> [0, 1]",
    ]

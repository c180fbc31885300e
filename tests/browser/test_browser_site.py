"""A reader opens the site from disk in Chromium: 25 papers, 300 claims, and text that means harm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq
import pytest
from tests.browser.browser import chromium, modules, peruse
from tests.unit.report import report_material as material
from tests.unit.report.test_report_hostile import HOSTILE

from restudy import layout
from restudy.catalog.plan import plan
from restudy.report import index, load, page
from restudy.report.csv_files import write_csv_files
from restudy.report.diff import compare
from restudy.results.files import write_atomically

PAPERS = 25
SECONDS_TO_LOAD = 1.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The rendered site of 25 papers (one of them only begun, one not run) and of one full of hostile text."""
    chromium(), modules()
    with material.project(tmp_path_factory.mktemp("site")) as root:
        slugs = material.fabricate(PAPERS)
        harm = " ".join(HOSTILE.values())
        entry = material.claim(1, material.random.Random(1)) | {"says": harm, "where": harm, "why": harm}
        file = material.study_file(harm, summary=harm, deviations=[{"what": harm, "paper": harm, "here": harm}])
        material.write_study("zz_harm", file, [entry])
        row = material.verdict(entry, "zz_harm", ("inconclusive", harm), material.random.Random(1))
        material.write_results("zz_harm", "laptop", [row | {"flags": [harm], "gate": harm}])
        for slug in [*slugs[:-1], "zz_harm"]:
            write_csv_files(plan(slug, "laptop"), slug)
            write_atomically(layout.report("laptop") / f"{slug}.html", page.html(load.paper(slug, "laptop")))
        index.write("laptop")
        write_atomically(layout.report("laptop") / "diff.html", compare("laptop", "laptop").html())
        yield root


@pytest.fixture(scope="module")
def seen(site: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = layout.report("laptop")
    task = {
        "site": str(folder),
        "pages": [*sorted(p.name for p in folder.glob("*.html")), "notebooks/study_a.html"],
        "axe": ["index.html", "study_a.html", "study_x.html", "zz_harm.html", "diff.html"],
        "index": "index.html",
        "find": "saliency logit",
        "screenshots": os.environ.get("RESTUDY_SCREENSHOTS", ""),
    }
    return peruse(tmp_path_factory.mktemp("seen"), task)


def stored(slug: str) -> dict[str, str]:
    """Verdict by claim, from Parquet."""
    rows = pq.read_table(layout.results("laptop", slug) / "verdicts.parquet").to_pylist()
    return {row["claim"]: row["verdict"] for row in rows}


def test_no_page_fails_or_asks_the_network(seen: dict[str, Any]) -> None:
    assert len(seen["pages"]) >= 2 * (PAPERS + 2)
    for found in seen["pages"]:
        at = (found["name"], found["width"])
        assert not found["faults"], at
        assert not found["blank"], at
        assert not found["silent"], at
        assert found["overflow"] <= 0, at
    assert not seen["indexFaults"]


def test_verdict_words_are_those_of_the_tables(seen: dict[str, Any]) -> None:
    compared = 0
    for found in seen["pages"]:
        slug = found["name"].removesuffix(".html")
        if found["claims"] and (layout.results("laptop", slug) / "verdicts.parquet").is_file():
            assert found["claims"] == stored(slug), slug
            compared += len(found["claims"])
    assert compared >= 2 * 12 * (PAPERS - 2)


def test_every_link_leads_somewhere(seen: dict[str, Any]) -> None:
    files = set()
    for found in seen["pages"]:
        assert not found["dead"], found["name"]
        for link in found["links"]:
            parts = urlparse(link)
            if parts.scheme == "file":
                files.add(unquote(parts.path))
            else:
                assert parts.scheme == "https", link
    assert len(files) > 5 * PAPERS
    assert not [path for path in files if not Path(path).is_file()]


def test_pages_load_fast(seen: dict[str, Any]) -> None:
    """The aim is a second from disk on an idle machine; a busy one may be many times slower, a broken page hangs."""
    index = min(f["milliseconds"] for f in seen["pages"] if f["name"] == "index.html")
    assert index < 10_000 * SECONDS_TO_LOAD, index


def test_headings_step_down_one_by_one(seen: dict[str, Any]) -> None:
    for found in seen["pages"]:
        levels = found["headings"]
        if found["name"].startswith("notebooks/"):
            continue
        assert levels.count(1) == 1, found["name"]
        assert all(b - a <= 1 for a, b in zip(levels, levels[1:], strict=False)), found["name"]


def test_every_column_sorts_both_ways(seen: dict[str, Any]) -> None:
    for column, (up, down, direction) in seen["sorted"].items():
        numeric = column in ("1", "2", "3", "4")
        keys = [float(k) for k in up] if numeric else [k.casefold() for k in up]
        if numeric or column != "0":  # names sort by the browser's own rules for language
            assert keys == sorted(keys), column
        assert sorted(up) == sorted(down)
        assert down[0] == up[-1]
        assert direction == "descending"


def test_filter_and_search_show_the_right_papers(seen: dict[str, Any]) -> None:
    papers = next(f["papers"] for f in seen["pages"] if f["name"] == "index.html")
    for word, shown in seen["picked"].items():
        assert set(shown) == {slug for slug, verdict in papers.items() if verdict == word}
    assert set(seen["picked"]) == set(papers.values())
    assert seen["found"]
    assert len(seen["found"]) < len(papers)
    assert seen["nothing"] == [[], True, f"0 of {len(papers)} papers"]
    assert len(seen["cleared"]) == len(papers)


def test_the_keyboard_comes_first_to_the_skip_link(seen: dict[str, Any]) -> None:
    assert seen["first"] == "Skip to the content"


def test_without_scripts_there_is_a_plain_table(seen: dict[str, Any]) -> None:
    assert seen["plain"] == {"rows": PAPERS + 1, "tools": False, "buttons": 0}


def test_axe_finds_no_serious_fault(seen: dict[str, Any]) -> None:
    faults = [
        (found["name"], found["scheme"], fault)
        for found in seen["axe"]
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert not faults
    assert len(seen["axe"]) == 10

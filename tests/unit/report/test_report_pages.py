"""Pages say what Parquet says, in every state that a run can be in."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from tests.unit.report import report_material as material

from restudy import layout
from restudy.errors import ConfigError
from restudy.provenance import forget
from restudy.report import index, load, page, words
from restudy.report.csv_files import csv_path


class Reader(HTMLParser):
    """Verdicts by claim, rows by paper, text, tags and attributes of a page."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.claims: dict[str, str] = {}
        self.papers: dict[str, str] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if "data-claim" in found:
            self.claims[str(found["data-claim"])] = str(found["data-verdict"])
        if tag == "tr" and "data-verdict" in found:
            self.papers[str(found["id"])] = str(found["data-verdict"])

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.said).split())


def one(
    slug: str = "alpha", outcome: tuple[str, str] = ("reproduced", ""), preset: str = "laptop", **file: Any
) -> None:
    """A study of six claims with one outcome."""
    rng = random.Random(1)
    entries = [material.claim(n, rng) for n in range(1, 7)]
    material.write_study(slug, material.study_file("A paper", **file), entries)
    material.write_results(slug, preset, [material.verdict(e, slug, outcome, rng) for e in entries])


@pytest.mark.parametrize("slug", ["study_a", "study_b"])
def test_verdicts_on_the_page_are_those_of_the_table(house: Path, slug: str) -> None:
    content = page.render(slug, "laptop")
    rows = pq.read_table(layout.results("laptop", slug) / "verdicts.parquet").to_pylist()
    assert Reader(content).claims == {row["claim"]: row["verdict"] for row in rows}
    assert content.endswith(b"</html>\n")


def test_index_has_a_row_for_every_paper(house: Path) -> None:
    found = Reader(index.render("laptop"))
    assert set(found.papers) == {"study_a", "study_b", "study_c", "study_d"}
    assert found.papers["study_c"] == found.papers["study_d"] == "not run yet"
    for slug in ("study_a", "study_b"):
        said = json.loads((house / f"results/laptop/{slug}.verdicts.json").read_text())["paper"]
        word, counts = said.split(": ")
        assert found.papers[slug] == word
        shown = words.headline(load.index("laptop").rows[["study_a", "study_b"].index(slug)].primary)
        assert sorted(shown.replace(" primary claims", "").split(", ")) == sorted(counts.split(", "))


@pytest.mark.parametrize("slug", ["study_c", "study_d"])
def test_a_run_that_is_not_finished_renders(house: Path, slug: str) -> None:
    found = Reader(page.render(slug, "laptop"))
    assert set(found.claims.values()) == {"not run yet"}
    assert "No verdict is stored at this preset" in found.text


def test_rendering_a_page_writes_index_and_csv(house: Path) -> None:
    page.render("study_a", "laptop")
    assert b'href="study_a.html"' in (layout.report("laptop") / "index.html").read_bytes()
    stored = pq.read_table(layout.results("laptop", "study_a") / "training.parquet")
    written = pacsv.read_csv(csv_path("laptop", "study_a", "training"))
    assert written["value"].to_pylist() == stored["value"].to_pylist()
    assert [json.loads(v) for v in written["curve"].to_pylist()] == stored["curve"].to_pylist()


def test_the_same_results_give_the_same_bytes(house: Path) -> None:
    assert page.render("study_b", "laptop") == page.render("study_b", "laptop")
    assert index.render("laptop") == index.render("laptop")


def test_no_page_asks_for_anything_from_elsewhere(house: Path) -> None:
    for content in (page.render("study_a", "laptop"), index.render("laptop")):
        for tag, attributes in Reader(content).tags:
            source = attributes.get("src") or (attributes.get("href") if tag in ("link", "use") else "") or ""
            assert not re.match(r"(https?:)?//", source), (tag, source)


def test_an_edit_makes_the_paper_stale_and_says_what_changed(project: Path) -> None:
    one()
    assert "Stale." not in Reader(page.render("alpha", "laptop")).text
    (layout.STUDIES / "alpha" / "train.py").write_text('"""Made up."""\nSTEPS = 3\n')
    forget()
    text = Reader(page.render("alpha", "laptop")).text
    assert "Stale." in text
    assert "upstream table/training" in text
    assert ">stale<" in index.render("laptop").decode()


def test_smoke_gives_no_verdict_on_the_paper(project: Path) -> None:
    one(preset="smoke", outcome=("not testable", "preset smoke"))
    found = Reader(page.render("alpha", "smoke"))
    assert "gives no verdict on the paper" in found.text
    assert Reader(index.render("smoke")).papers == {"alpha": "not testable"}


def test_a_derived_preset_says_that_it_is_not_frozen(project: Path) -> None:
    one()
    (project / "presets.yaml").write_text(
        "mine: {inherits: laptop, seeds: 7, studies: {alpha: {parameters: {train: {epochs: 2}}}}}\n"
    )
    forget()
    text = Reader(page.render("alpha", "mine")).text
    assert "Not the frozen preset." in text
    assert "seeds: 5 \u2192 7" in text
    assert "train.epochs: 5 \u2192 2" in text
    assert "Not the frozen preset." not in Reader(page.render("alpha", "laptop")).text


def test_an_amended_claim_says_so(project: Path) -> None:
    rng = random.Random(1)
    entry = material.claim(1, rng)
    material.write_study("alpha", material.study_file("A paper"), [entry])
    row = material.verdict(entry, "alpha", ("reproduced", ""), rng)
    row["flags"] = ["amended after results: 1a2b -> 3c4d"]
    material.write_results("alpha", "laptop", [row])
    assert "amended after results: 1a2b -> 3c4d" in Reader(page.render("alpha", "laptop")).text


def test_what_a_statistic_computes_stands_beside_its_claim(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def difference_of_means(tables: object) -> None:
        """Accuracy with the second method minus that with the first, <b> per seed.

        Not shown.
        """

    one()
    assert "Computed:" not in Reader(page.render("alpha", "laptop")).text, "its statistics.py does not hold it"
    monkeypatch.setattr(load, "statistics_of", lambda slug: {"difference_of_means": difference_of_means})
    text = Reader(page.render("alpha", "laptop")).text
    assert text.count("Computed: Accuracy with the second method minus that with the first, <b> per seed.") == 6
    assert "Not shown" not in text


def test_parts_stand_under_their_claim(project: Path) -> None:
    rng = random.Random(1)
    entry = material.claim(1, rng)
    said = [{"name": "upper", "says": "Below the upper bound.", "kind": "direction", "statistic": "s", "sesoi": 0.1}]
    material.write_study("alpha", material.study_file("A paper"), [entry | {"kind": "parts", "parts": said}])
    row = material.verdict(entry, "alpha", ("partially", "parts: upper reproduced; lower inconclusive"), rng)
    part = material.verdict(entry, "alpha", ("reproduced", ""), rng) | {"part": "upper"}
    material.write_results("alpha", "laptop", [row | {"kind": "parts"}], [part])
    found = Reader(page.render("alpha", "laptop"))
    assert "Below the upper bound." in found.text
    assert "missing: lower inconclusive" in found.text


def test_a_table_cut_short_is_named_and_the_page_stands(project: Path) -> None:
    one()
    path = layout.results("laptop", "alpha") / "verdicts.parquet"
    path.write_bytes(path.read_bytes()[:200])
    found = Reader(page.render("alpha", "laptop"))
    assert "not readable as Parquet" in found.text
    assert set(found.claims.values()) == {"not run yet"}
    assert b"not readable as Parquet" in index.render("laptop")


def test_data_sets_stand_with_their_licence(project: Path) -> None:
    stages = {
        "train": {
            "function": "train.train",
            "shards": ["seeds"],
            "tables": {"training": ["seed", "value"]},
            "data": ["fashion_mnist"],
        }
    }
    one(stages=stages)
    assert "Licence: " in Reader(page.render("alpha", "laptop")).text


def test_unknown_names_are_refused(project: Path) -> None:
    one()
    with pytest.raises(ConfigError, match="unknown study"):
        page.render("nothing", "laptop")
    with pytest.raises(ConfigError, match="unknown preset"):
        index.render("nothing")


def test_the_report_imports_neither_torch_nor_mlflow() -> None:
    modules = ", ".join(f"restudy.report.{p.stem}" for p in sorted((layout.PACKAGE / "report").glob("[a-z]*.py")))
    code = f"import sys, {modules}; print([m for m in ('torch', 'mlflow', 'captum') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_flags_are_explained_where_they_stand(house: Path) -> None:
    tags = Reader(page.render("study_a", "laptop") + page.render("study_b", "laptop")).tags
    flags = [found for tag, found in tags if tag == "span" and str(found.get("class")).startswith("flag")]
    assert flags and all(found.get("title") for found in flags)
    text = Reader(page.render("study_a", "laptop")).text
    assert "What the reasons and flags mean" in text and "family-wise error" in text


def test_paper_is_light_and_figures_fit_on_a_sheet(house: Path) -> None:
    style = page.render("study_a", "laptop").decode().partition("<style>")[2].partition("</style>")[0]
    assert "prefers-color-scheme: dark" in style and "@media (prefers-color-scheme" not in style
    printed = style.partition("@media print")[2]
    assert "max-height: 19cm" in printed and "color-scheme: light" in printed

"""Text from metadata can neither break nor inject into a page."""

from __future__ import annotations

import random
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from tests.unit.report import report_material as material

from restudy import layout
from restudy.report import index, page
from restudy.report.diff import compare

HOSTILE = {
    "markup": "</title></style></script><script>alert(1)</script><img src=x onerror=alert(2)>",
    "attribute": '" onmouseover="alert(1)" x=\' onfocus=\'alert(2)',
    "template": "{{ 7 * 7 }}{% raw %}{# #}",
    "comment": "--> <!-- ]]> <![CDATA[",
    "long": "x" * 3000,
    "rtl": "\u202eمرحبا بالعالم \u05e9\u05dc\u05d5\u05dd \u2066",
    "emoji": "\U0001f9d1\u200d\U0001f680\ufe0f e\u0301",
    "scheme": "javascript:alert(1)",
}


class Tags(HTMLParser):
    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.found: list[tuple[str, tuple[str, ...]]] = []
        self.links: list[str] = []
        self.feed(content.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, tuple(sorted(name for name, _ in attrs))))
        self.links += [str(value) for name, value in attrs if name in ("href", "src", "action")]


def write(text: str, *, address: str = "https://example.org/paper") -> None:
    """A study in whose every field of free text stands `text`."""
    citation: dict[str, Any] = {"authors": text, "title": text, "venue": text, "year": 2018, "arxiv": "1810.03292"}
    file = material.study_file(
        text,
        citation=citation | {"url": address},
        summary=f"{text}\n\n{text}",
        deviations=[{"what": text, "paper": text, "here": text}],
        parameters={"train": {"epochs": {"type": "string", "default": text, "says": text}}},
        figures={
            "F1": {"function": "figures.curves", "tables": ["training"], "says": text, "where": text, "alt": text}
        },
    )
    rng = random.Random(1)
    free = {"says": text, "where": text, "why": text, "statistic": text, "control": text,
            "paper": {"source": "read", "note": text}}  # fmt: skip
    entry = material.claim(1, rng) | free
    material.write_study("alpha", file, [entry])
    row = material.verdict(entry, "alpha", ("inconclusive", text), rng)
    row |= {"flags": [text], "gate": text, "control_verdict": text, "leave_one_out": text, "scale": text}
    material.write_results("alpha", "laptop", [row])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_adds_no_tag_and_no_attribute(tmp_path: Path, name: str) -> None:
    shapes = []
    for text in ("plain", HOSTILE[name]):
        with material.project(tmp_path / text[:5].strip('</"-{\u202e')):
            write(text)
            pages = [
                Tags(page.render("alpha", "laptop")),
                Tags(index.render("laptop")),
                Tags(compare("laptop", "laptop").html()),
            ]
        shapes.append([p.found for p in pages])
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "data:text/html,x", 'https://x" onclick="y', "ftp://x"])
def test_only_web_addresses_become_links(project: Path, address: str) -> None:
    write("plain", address=address)
    links = Tags(page.render("alpha", "laptop")).links
    assert address not in links
    assert not [link for link in links if link.startswith(("javascript:", "ftp:")) or "onclick" in link]


def test_a_claim_id_with_markup_is_escaped(project: Path) -> None:
    rng = random.Random(1)
    entry = material.claim(1, rng) | {"id": "<b id='x'>A\u202e1</b>"}
    material.write_study("alpha", material.study_file("A paper"), [entry])
    material.write_results("alpha", "laptop", [material.verdict(entry, "alpha", ("reproduced", ""), rng)])
    content = page.render("alpha", "laptop")
    assert b"<b id='x'>" not in content
    assert b"&lt;b id=" in content


def test_a_very_long_word_is_allowed_to_break() -> None:
    style = (layout.PACKAGE / "report" / "assets" / "site.css").read_text()
    assert "overflow-wrap: anywhere" in style

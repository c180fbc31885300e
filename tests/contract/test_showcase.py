"""README shows what the committed verdicts say, and says so when the source has moved on."""

from __future__ import annotations

import json
import re

import pytest

from restudy.bench import showcase
from tests.conftest import ROOT

FILES = sorted((ROOT / "docs" / "verdicts").glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_page_and_readme_are_what_the_file_says(path) -> None:
    content = json.loads(path.read_text())
    assert path.with_suffix(".md").read_text() == showcase.page(content)
    if content["preset"] == "laptop":
        readme = (ROOT / "README.md").read_text()
        shown = re.search(f"{showcase.BEGIN}\n(.*?)\n{showcase.END}", readme, re.S)
        assert shown and shown[1] == showcase.front(content)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_moved_source_is_said(path) -> None:
    content = json.loads(path.read_text())
    for slug in showcase.stale(content):
        assert content["studies"][slug].get("stale_since"), f"{slug} moved on: run `restudy showcase --refresh`"

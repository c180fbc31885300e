"""Notebooks run from results and become one file that opens offline."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.report import report_material as material

from restudy import layout
from restudy.errors import ConfigError, ResultError
from restudy.report import notebook

STORY = """---
jupyter:
  kernelspec:
    display_name: Python 3
    language: python
    name: python3
---

# A story

```python tags=["parameters"]
preset = "laptop"
```

```python
import os
import sys

print("preset is", preset, "in", os.path.basename(os.getcwd()))
print("to be dropped", file=sys.stderr)
```

```python
import matplotlib.pyplot as plt

plt.plot([0, 1], [0, 1])
plt.show()
```
"""


@pytest.fixture
def study(project: Path) -> Path:
    material.write_study("alpha", material.study_file("A paper"), [])
    return layout.STUDIES / "alpha"


def test_the_same_notebook_gives_the_same_page_and_asks_for_nothing(study: Path) -> None:
    (study / "notebook.md").write_text(STORY)
    first, second = notebook.execute("alpha", "smoke"), notebook.execute("alpha", "smoke")
    assert first == second
    text = first.decode()
    assert text.endswith("</html>\n")
    assert "preset is smoke in project" in text
    assert "to be dropped" not in re.sub(r"<details.*?</details>", "", text, flags=re.DOTALL)
    assert "data:image/png;base64," in text
    assert "<script" not in text
    assert not re.search(r"(src|href)=\"(https?:)?//", text)
    assert text.count('<details class="code">') == text.count('class="highlight ')


def test_a_study_without_a_notebook_is_named(study: Path) -> None:
    with pytest.raises(ConfigError, match=r"alpha/notebook\.md: the study has no notebook"):
        notebook.execute("alpha", "smoke")


def test_a_failing_cell_is_named(study: Path) -> None:
    (study / "notebook.md").write_text("# Story\n\n```python\nraise ValueError('no such column')\n```\n")
    with pytest.raises(ResultError, match=r"cell \d+: ValueError: no such column"):
        notebook.execute("alpha", "smoke")


def test_a_text_without_code_is_refused() -> None:
    with pytest.raises(ConfigError, match="no code cell"):
        notebook.read("# Only words\n", "notebook.md")

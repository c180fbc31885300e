"""claims.yaml, verdicts.parquet, and what is printed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from restudy.claims import PART_SCHEMA, VERDICT_SCHEMA, from_table, load_claims
from restudy.claims.benchmark import bench_judging
from restudy.claims.check import check
from restudy.claims.extension import may_extend
from restudy.claims.forest import forest
from restudy.claims.render import as_json, as_markdown, as_text
from restudy.claims.statistics import missing
from restudy.errors import ClaimError, ConfigError

from .claims_material import GOOD, claim, study
from .test_claims_golden import SMALL, WIDE, two_parts

YAML = """
- id: A2
  says: With only the logit layer random, one method's maps stay closer to the trained ones than another's.
  where: section 4, figure 4
  mission: [M4, M5]
  kind: direction
  statistic: gap
  unit: seed
  scale: identity
  sesoi: 0.15
  why: half of the pilot's .31
  control: two_random_nets
  gate: [{statistic: test_accuracy, op: ">=", value: 0.80}]
  primary: true
  presets: [laptop, workstation, paper]
- id: A1
  says: After the full cascade the signed correlation is near zero.
  where: figure 4
  mission: [M3]
  kind: threshold
  scale: fisher_z
  unit: seed
  why: the paper's own reading
  primary: true
  presets: [laptop]
  parts:
    - {name: upper, statistic: cascade, bound: .15, side: below}
    - {name: lower, statistic: cascade, bound: -.15, side: above}
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "claims.yaml"
    file.write_text(YAML, encoding="utf-8")
    return file


def test_load_claims(path: Path) -> None:
    first, second = load_claims(path)
    assert first.gate[0].value == 0.8 and first.mission == ("M4", "M5")
    assert [part.kind for part in second.parts] == ["threshold"] * 2 and second.parts[0].scale == "fisher_z"
    assert len(missing([first, second], {"gap": print, "cascade": print})) == 2


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("sesoi: 0.15", "sesoi: -1", ["claim A2", "sesoi", "-1", "greater than 0"]),
        ("  sesoi: 0.15\n", "", ["claim A2", "sesoi", "direction"]),
        ("kind: direction", "kind: directoin", ["claim A2", "kind", "directoin", "threshold"]),
        ("unit: seed\n  scale: identity", "unit: seeds\n  scale: identity", ["unit", "seeds", "draw"]),
        ("control:", "contorl:", ["claim A2", "contorl", "unknown", "control"]),
        ("  where: section 4, figure 4\n", "", ["claim A2", "where", "missing"]),
        ("id: A1", "id: A2", ["claim A2", "id", "2 times"]),
        ("side: below", "side: under", ["claim A1", "side", "under", "above"]),
        ('op: ">="', 'op: "~"', ["claim A2", "op", "~"]),
        ("presets: [laptop]", "presets: [Lap top]", ["claim A1", "presets", "Lap top"]),
        ("- id: A2", "- id: [", ["not YAML"]),
    ],
)
def test_faults_are_named_in_one_line(path: Path, old: str, new: str, words: list[str]) -> None:
    path.write_text(YAML.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_claims(path)
    message = str(caught.value)
    assert "\n" not in message and str(path) in message
    assert all(word in message for word in words), message


def test_at_most_four_primary(path: Path) -> None:
    entry = YAML[YAML.index("- id: A2") : YAML.index("- id: A1")]
    path.write_text("".join(entry.replace("A2", f"B{i}") for i in range(5)), encoding="utf-8")
    with pytest.raises(ConfigError, match="5 claims are primary"):
        load_claims(path)


def small_study():
    claims = [
        claim(id="A", statistic="good", primary=True),
        claim(id="B", statistic="wide", primary=True, exploratory=False),
        claim("no_difference", id="C", statistic="small", margin=0.5),
        claim("threshold", id="D", statistic="good", bound=2.0, side="above"),
        claim("exact", id="E", statistic="zero", tolerance=1e-6),
        claim("qualitative", id="F"),
        two_parts(id="G", exploratory=True),
    ]
    columns = {"good": GOOD, "wide": WIDE, "small": SMALL, "zero": [0.0], "a": SMALL, "b": WIDE}
    return study(columns, claims, study="toy", lock="l0ck", fingerprint="f00")


def test_verdicts_survive_parquet(tmp_path: Path) -> None:
    result = small_study()
    pq.write_table(result.table(), tmp_path / "verdicts.parquet")
    pq.write_table(result.parts_table(), tmp_path / "parts.parquet")
    stored = pq.read_table(tmp_path / "verdicts.parquet")
    assert stored.schema.equals(VERDICT_SCHEMA) and result.parts_table().schema.equals(PART_SCHEMA)
    assert from_table(stored) == list(result.verdicts)
    assert from_table(pq.read_table(tmp_path / "parts.parquet")) == list(result.parts)
    assert check(stored, result.verdicts) == []


def test_check_names_what_no_longer_follows() -> None:
    result = small_study()
    stored = result.table()
    other = study({"good": [0.2, *GOOD[1:]]}, [claim(id="A", statistic="good", primary=True)], study="toy")
    found = check(stored, other.verdicts)
    assert {d.column for d in found if d.claim == "A"} >= {"estimate", "ci_low"}
    assert any(d.claim == "B" and d.column == "row" for d in found)
    assert "claim A: estimate: stored" in str(found[1]) or any("estimate" in str(d) for d in found)
    with pytest.raises(ClaimError, match="columns are missing"):
        check(stored.drop_columns(["reason"]), result.verdicts)


def test_printing() -> None:
    result = small_study()
    text, markdown, data = as_text(result), as_markdown(result), json.loads(as_json(result))
    assert "1 of 2 reproduced, 1 inconclusive" in text and "G/low" in text and "not testable" in text
    assert markdown.startswith("| claim | verdict") and data["paper"]["counts"]["reproduced"] == 1
    assert len(data["verdicts"]) == 7


def test_extension_is_refused_unless_width_is_the_reason() -> None:
    rows = small_study().verdicts
    assert may_extend(rows, 10, 5) == ["B"]
    with pytest.raises(ClaimError, match="declares no extension"):
        may_extend(rows, None, 5)
    with pytest.raises(ClaimError, match="no primary claim"):
        may_extend(rows[:1], 10, 5)


def test_forest_plot_has_a_row_and_a_word_for_each_claim(tmp_path: Path) -> None:
    result = small_study()
    figure = forest(result)
    texts = {text.get_text() for axis in figure.axes for text in axis.texts}
    assert any("reproduced" in text for text in texts) and any("inconclusive" in text for text in texts)
    figure.savefig(tmp_path / "forest.svg")


def test_importing_the_engine_is_cheap() -> None:
    code = (
        "import sys, restudy.claims; "
        "print([m for m in ('torch', 'mlflow', 'scipy', 'statsmodels', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_300_claims_in_two_seconds() -> None:
    assert bench_judging()["seconds"] < 2.0

"""What a study.yaml or presets.yaml may not say: refused in one line naming file, key, value and what is allowed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from restudy import layout
from restudy.catalog import plan, study
from restudy.errors import ConfigError
from restudy.provenance import forget


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with the scaffold as its only study, `toy`; its folder of studies."""
    studies = tmp_path / "studies"
    shutil.copytree(layout.PACKAGE / "scaffold", studies / "toy")
    (tmp_path / "Snakefile").touch()
    monkeypatch.setattr(layout, "STUDIES", studies)
    monkeypatch.setenv("RESTUDY_ROOT", str(tmp_path))
    layout.root.cache_clear()
    forget()
    yield studies
    monkeypatch.undo()
    layout.root.cache_clear()
    forget()


def change(house: Path, where: str, value: object) -> None:
    path = house / "toy" / "study.yaml"
    content = yaml.safe_load(path.read_text())
    *parents, last = where.split("/")
    inner = content
    for name in parents:
        inner = inner[name]
    inner[last] = value
    path.write_text(yaml.safe_dump(content))
    forget()


@pytest.mark.parametrize(
    ("where", "value", "words"),
    [
        ("presets/laptop/seed", 3, ["presets.laptop.seed", "unknown key", "allowed", "seeds"]),
        ("presets/laptop/seeds", "five", ["presets.laptop.seeds", "five"]),
        ("presets/laptop/seeds", 0, ["presets.laptop.seeds", "greater than or equal to 1"]),
        ("presets/smoke/parameters/descend/goal", 2, ["descend.goal = 2", "maximum 1"]),
        ("presets/smoke/parameters/descend/speed", 2, ["unknown parameter 'speed'", "goal"]),
        ("presets/smoke/parameters/train", {"x": 1}, ["unknown stage 'train'", "descend"]),
        ("presets/laptop/axes", {"pair": ["x"]}, ["unknown axis 'pair'"]),
        ("parameters/descend/goal/type", "nummer", ["parameters.descend.goal"]),
        ("parameters/descend/goal/default", "x", ["descend.goal = 'x'"]),
        ("stages/descend/needs", ["train"], ["stages.descend.needs", "above"]),
        ("stages/descend/shards", ["arm"], ["stages.descend.shards"]),
        ("stages/descend/tables", {"verdicts": ["seed"]}, ["table name 'verdicts'"]),
        ("stages/descend/tables", {"steps": ["instance"]}, ["steps.instance: needs a type"]),
        ("presets/laptop/cost", {"descend": "5 minutes"}, ["'5 minutes' is no time"]),
        ("stages/descend/function", "descend", ["stages.descend.function"]),
        ("figures/F1_curves/tables", ["nothing"], ["figures.F1_curves.tables"]),
        ("citation/year", 3000, ["citation.year"]),
        ("picture", "F9", ["picture 'F9'"]),
        ("colour", "red", ["colour", "unknown key"]),
    ],
)
def test_bad_study_files_are_refused_in_one_line(house: Path, where: str, value: object, words: list[str]) -> None:
    change(house, where, value)
    with pytest.raises(ConfigError) as error:
        plan("toy", "laptop")
    message = str(error.value)
    assert "study.yaml" in message and "\n" not in message
    assert all(word in message for word in words), message


def test_a_missing_preset_and_broken_yaml(house: Path) -> None:
    path = house / "toy" / "study.yaml"
    text = path.read_text()
    path.write_text(text.replace("  workstation:", "  station:"))
    with pytest.raises(ConfigError, match="presets lack workstation"):
        study("toy")
    path.write_text(text + "\n  : [")
    forget()
    with pytest.raises(ConfigError, match=r"study\.yaml:\d+"):
        study("toy")


def test_unknown_names(house: Path) -> None:
    with pytest.raises(ConfigError, match=r"unknown study 'tow'.*known: toy"):
        study("tow")
    with pytest.raises(ConfigError, match=r"unknown preset 'huge'.*laptop"):
        plan("toy", "huge")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mine: {inherits: huge}", ["unknown preset 'huge'"]),
        ("mine: {seeds: 3}", ["presets.yaml: mine", "inherits"]),
        ("mine: {inherits: smoke, numerics: exact}", ["presets.yaml: mine", "numerics", "'native' or 'portable'"]),
        ("mine: {inherits: laptop, sedes: 3}", ["sedes", "allowed", "seeds"]),
        ("mine: {inherits: laptop, seeds: many}", ["seeds", "many"]),
        ("mine: {inherits: laptop, studies: {toy: {parameters: {descend: {goal: 7}}}}}", ["descend.goal = 7"]),
        ("mine: {inherits: laptop, studies: {tow: {seeds: 3}}}", ["unknown study 'tow'"]),
        ("laptop: {inherits: smoke, studies: {toy: {seeds: 2}}}", ["has a preset of that name"]),
        ("[1, 2]", ["not a mapping"]),
    ],
)
def test_bad_derived_presets_are_refused(house: Path, text: str, words: list[str]) -> None:
    (house.parent / "presets.yaml").write_text(text)
    forget()
    with pytest.raises(ConfigError) as error:
        plan("toy", "mine" if text.startswith("mine") else "laptop")
    assert all(word in str(error.value) for word in words), str(error.value)


def test_a_derived_preset_changes_what_it_names(house: Path) -> None:
    (house.parent / "presets.yaml").write_text(
        "mine: {inherits: laptop, seeds: 3, studies: {toy: {parameters: {descend: {goal: 0.5}}}}}"
    )
    forget()
    mine, laptop = plan("toy", "mine"), plan("toy", "laptop")
    assert (mine.seeds, laptop.seeds, mine.judged_as, mine.frozen, laptop.frozen) == (3, 5, "laptop", False, True)
    assert mine.parameters("descend") == laptop.parameters("descend") | {"goal": 0.5}


def test_jobs_by_axis_and_seed(house: Path) -> None:
    change(house, "axes", {"arm": {"values": ["a", "b"], "default": ["a", "b"]}})
    change(house, "stages/descend/shards", ["arm", "seeds"])
    assert [s.label for s in plan("toy", "laptop").shards("descend")] == [f"{a}.s{i}" for a in "ab" for i in range(5)]
    change(house, "presets/laptop/seeds_per_job", 2)
    labels = [s.label for s in plan("toy", "laptop").shards("descend")]
    assert labels == ["a.s0-1", "a.s2-3", "a.s4", "b.s0-1", "b.s2-3", "b.s4"]
    change(house, "presets/laptop/seeds_per_job", 0)
    assert [s.seeds for s in plan("toy", "laptop").shards("descend")] == [(0, 1, 2, 3, 4)] * 2


def test_more_seeds_leave_the_old_jobs_fresh(house: Path) -> None:
    before = {s.label: s for s in plan("toy", "laptop").shards("descend")}
    (house.parent / "extensions.yaml").write_text("laptop: {toy: 10}\n")
    forget()
    after = plan("toy", "laptop")
    assert after.look == 2 and after.first_look == 5 and after.seeds == 10
    assert all(before[s.label] == s for s in after.shards("descend")[:5])

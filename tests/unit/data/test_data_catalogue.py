from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.data.tinyset import CONTENT, declare, packed, write_zip

import restudy.data
from restudy.data import catalogue, check, data_sum, discover, fetch, rows, state, verify
from restudy.data.dataset import Dataset, File
from restudy.errors import DataError

DOCS = Path(__file__).parents[3] / "docs" / "data.md"
NAMES = [
    "fashion_mnist",
    "imagenet_lite0",
    "king_james",
    "mnist5k",
    "photos",
    "reina_valera",
    "stamps",
    "world_english",
]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Dataset:
    declared = declare()
    monkeypatch.setattr(catalogue, "_found", lambda: {"tiny": declared})
    return declared


def test_data_sets_are_found_not_registered() -> None:
    assert set(NAMES) <= set(discover())
    assert "synthetic" not in discover()
    for name, found in discover().items():
        assert found.name == name
        assert found.sources
        assert found.licence
        assert found.citation
        assert found.homepage.startswith("https://")


def test_looking_imports_nothing_heavy_and_reading_nothing_of_the_fetching() -> None:
    script = "import sys; from restudy.data import {}; print(*sorted(sys.modules))"
    loaded = {
        what: set(subprocess.check_output([sys.executable, "-c", script.format(what)], text=True).split())
        for what in ("discover", "fashion_mnist, photos")
    }
    for modules in loaded.values():
        assert not {"torch", "mlflow", "skimage", "scipy", "pandas", "PIL", "pysword"} & modules
    ours = {name for name in loaded["fashion_mnist, photos"] if name.startswith("restudy.data.")}
    assert ours == {f"restudy.data.{name}" for name in ("dataset", "store", "fashion_mnist", "photos")}


def test_a_module_whose_data_set_has_another_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "misnamed.py").write_text("from restudy.data.fashion_mnist import DATASET\n")
    monkeypatch.setattr(restudy.data, "__path__", [*restudy.data.__path__, str(tmp_path)])
    with pytest.raises(DataError, match=r"restudy/data/misnamed.py: DATASET must be a Dataset named misnamed"):
        catalogue._found.__wrapped__()
    sys.modules.pop("restudy.data.misnamed")


def test_sums_are_known_before_fetching() -> None:
    sums = {name: data_sum(name) for name in NAMES}
    assert all(len(value) == 64 for value in sums.values())
    assert len(set(sums.values())) == len(NAMES)
    with pytest.raises(DataError, match="unknown data set 'cifar'; known are .*fashion_mnist"):
        data_sum("cifar")


def test_state_goes_from_missing_to_present_to_corrupt(tiny: Dataset, tmp_path: Path) -> None:
    assert state("tiny", tmp_path).state == "missing"
    assert check("tiny", tmp_path) == ["digits.bin is missing", "names/labels.txt is missing"]
    assert fetch("tiny", tmp_path, f"file:{write_zip(tmp_path / 'tiny.whl', packed())}").is_file()
    assert (state("tiny", tmp_path).state, state("tiny", tmp_path).size) == ("present", tiny.size)
    assert check("tiny", tmp_path) == []
    verify("tiny", tmp_path)
    (tmp_path / "tiny" / "digits.bin").write_bytes(CONTENT["digits.bin"][:-1])
    assert state("tiny", tmp_path).state == "corrupt"
    assert state("tiny", tmp_path).problems == ("digits.bin has 10239 bytes, 10240 expected",)
    with pytest.raises(DataError, match="replace it with `restudy data fetch tiny`"):
        verify("tiny", tmp_path)
    assert rows(tmp_path) == [
        {
            "name": "tiny",
            "state": "corrupt",
            "size": tiny.size,
            "licence": "CC0",
            "source": "deb:tiny=1",
            "summary": "made up",
        }
    ]


@pytest.mark.parametrize("name", NAMES)
def test_load_names_the_command_when_data_are_absent(name: str, tmp_path: Path) -> None:
    module = __import__(f"restudy.data.{name}", fromlist=["load"])
    with pytest.raises(DataError, match=f"is missing.*; get it with `restudy data fetch {name}`") as caught:
        module.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a\\b"])
def test_declared_paths_stay_inside(path: str) -> None:
    with pytest.raises(ValueError, match="not a path inside"):
        File(path, "0" * 64, 1)


@pytest.mark.parametrize(
    "change",
    [{"name": "Tiny"}, {"files": ()}, {"files": declare().files * 2}, {"comparable_note": "fine"}],
)
def test_declarations_are_checked(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="data set"):
        Dataset(**{**vars(declare()), **change})  # type: ignore[arg-type]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "restudy.data", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_command_fails_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "mnist_5k.csv.gz").write_bytes(b"cut short")
    failed = run("fetch", "mnist5k", "--from", tmp_path / "mnist_5k.csv.gz", "--root", tmp_path)
    assert (failed.returncode, failed.stdout) == (1, "")
    lines = failed.stderr.splitlines()
    assert len(lines) == 2  # what is asked, and the error
    assert "9 bytes, 1106785 expected" in lines[1]
    unknown = run("fetch", "cifar", "--root", tmp_path)
    assert (unknown.returncode, len(unknown.stderr.splitlines())) == (1, 1)
    assert run("check", "--root", tmp_path).returncode == 1
    listed = run("list", "--root", tmp_path)
    assert all(name in listed.stdout for name in NAMES)


def test_the_page_tells_of_every_set() -> None:
    text = DOCS.read_text()
    for found in discover().values():
        assert f"### {found.name}" in text
        assert found.licence in text
        assert found.homepage in text
        assert found.comparable_note.removeprefix("not comparable with ") in " ".join(text.split())
        assert all(source in text for source in found.sources)
        assert len(found.files) > 20 or all(file.path in text for file in found.files)

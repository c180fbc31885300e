"""What fails is named in one line, the rest goes on, and the next run does only what is missing."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.workflow.material import add, add_data, declare, edit, jobs

pytestmark = [pytest.mark.workflow, pytest.mark.timeout(1800)]

# Study -> what its stage does first, and what the line about it must say.
TROUBLES = {
    "bad_raise": ("raise ValueError('no such luck')", "ValueError: no such luck"),
    "bad_memory": (
        "__import__('resource').setrlimit(__import__('resource').RLIMIT_AS, (1 << 30, 1 << 30)); np.ones(1 << 30)",
        "out of memory; use fewer CORES=, or a smaller preset",
    ),
    "bad_killed": ("os.kill(os.getpid(), 9)", "killed without a word (out of memory?)"),
    "bad_nan": ("raise FloatingPointError('loss is NaN at step 17')", "FloatingPointError: loss is NaN at step 17"),
}


def line_about(said: str, slug: str) -> str:
    lines = [line for line in said.splitlines() if "FAILED" in line and slug in line]
    assert len(lines) == 1, said
    return lines[0]


def test_one_line_each_the_rest_goes_on_and_only_the_missing_is_made(empty: Project) -> None:
    for slug, (first, _) in TROUBLES.items():
        add(empty, slug, first)
    add(empty, "bad_data")
    add_data(empty, "bad_data")
    (empty.root / "tiny-package/numbers.txt").rename(empty.root / "elsewhere.txt")
    add(empty, "good")
    edit(empty.study("bad_raise") / "study.yaml", "  smoke:\n    seeds: 1", "  smoke:\n    seeds: 2")
    source = empty.study("bad_raise") / "experiment.py"
    edit(source, "raise ValueError", "if 1 in seeds: raise ValueError")
    said = empty.reproduce("smoke", "--target", "verdicts", code=1)
    for slug, (_, reason) in TROUBLES.items():
        line = line_about(said, slug)
        shard = "s1" if slug == "bad_raise" else "s0"
        assert f"{slug} descend {shard}" in line and reason in line
        assert f"log work/logs/smoke/{slug}/descend.{shard}.log" in line
        assert (empty.root / f"work/logs/smoke/{slug}/descend.{shard}.log").is_file()
    line = next(line for line in said.splitlines() if "FAILED" in line and "tiny" in line)
    assert "log work/logs/data/tiny.log" in line and "tiny" in line and "killed" not in line
    assert "Traceback" not in said
    # Neither the good study nor the good seed of a bad one was held up.
    assert (empty.root / "results/smoke/good/verdicts.parquet").is_file()
    assert (empty.root / "results/smoke/bad_raise/shards/descend/s0/steps.parquet").is_file()
    # Another disk's worth of data, and the mended machine: what is missing is made, nothing else.
    (empty.root / "elsewhere.txt").rename(empty.root / "tiny-package/numbers.txt")
    for slug in ("bad_memory", "bad_killed", "bad_nan"):
        edit(empty.study(slug) / "experiment.py", TROUBLES[slug][0], "pass")
    said = empty.reproduce("smoke", "--target", "verdicts", "--", "--dry-run", code=0)
    missing = jobs(said)
    assert "good_descend" not in missing and missing["bad_raise_descend"] == 1 and missing["data"] == 1
    assert "bad_data" not in line_about(empty.reproduce("smoke", "--study", "bad_raise", code=1), "bad_raise")
    said = empty.reproduce("smoke", "--study", "bad_data", "--target", "verdicts")
    assert jobs(said) == Counter({"data": 1, "bad_data_descend": 1, "table": 2, "verdicts_of_study": 1})
    # Another declaration is another data set: fetched again, and what reads it runs again.
    (empty.root / "tiny-package/numbers.txt").write_text("40\n")
    declare(empty, "40\n", empty.root / "tiny-package")
    said = empty.reproduce("smoke", "--study", "bad_data", "--target", "verdicts")
    assert jobs(said) == Counter({"data": 1, "bad_data_descend": 1, "table": 2, "verdicts_of_study": 1})
    assert (empty.root / "data/raw/tiny/numbers.txt").read_bytes() == b"40\n"


@pytest.fixture
def small_disk(empty: Project) -> Iterator[Path]:
    """results/ on a disk of 48 KiB."""
    folder = empty.root / "results"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", folder], capture_output=True, text=True
    )
    if mounted.returncode:
        pytest.skip(f"cannot mount a small disk: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def test_a_full_or_read_only_disk_is_named_and_survived(empty: Project, small_disk: Path) -> None:
    add(empty, "study")
    (small_disk / "filler").write_bytes(b"x" * 40_000)
    said = empty.reproduce("smoke", "--target", "verdicts", code=1)
    line = line_about(said, "study descend s0")
    assert "No space left on device" in line and "free some space and run the same command again" in line
    assert not list(small_disk.rglob("*.parquet")), "a half-written file under its own name"
    remount(small_disk, "ro")
    said = empty.reproduce("smoke", "--target", "verdicts", code=1)
    assert "results/: cannot write (Read-only file system); make it writable" in said and "Traceback" not in said
    remount(small_disk, "rw,size=10m")
    (small_disk / "filler").unlink()
    empty.reproduce("smoke", "--target", "verdicts")
    assert "nothing to be done" in empty.reproduce("smoke", "--target", "verdicts")


def test_a_tracking_server_that_is_down_fails_nothing(toys: Project) -> None:
    toys.env |= {"RESTUDY_TRACKING": "1", "MLFLOW_TRACKING_URI": "http://127.0.0.1:9"}
    said = toys.reproduce()
    assert "nothing to be done" in said and "Traceback" not in said
    lines = [line for line in said.splitlines() if "127.0.0.1:9" in line or "MLflow" in line]
    assert lines, said

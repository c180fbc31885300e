"""What runs is the source as it is, also when it was edited twice within a second."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from restudy.bytecode import drop_racy


def run(folder: Path) -> str:
    """Import the module in a process that may write bytecode; what it says."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPATH": str(folder)}
    command = [sys.executable, "-c", "import house.room; print(house.room.RATE)"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def write(folder: Path, rate: str, second: int) -> Path:
    source = folder / "house" / "room.py"
    source.parent.mkdir(exist_ok=True)
    source.write_text(f"RATE = {rate}\n")
    os.utime(source, (second, second))
    return source


def test_an_edit_within_the_second_of_the_first_import_counts(tmp_path: Path) -> None:
    now = int(time.time())
    write(tmp_path, "0.1", now)
    assert run(tmp_path) == "0.1"
    write(tmp_path, "0.2", now)
    assert run(tmp_path) == "0.1"  # the trap: same size, same second
    assert [path.name.partition(".")[0] for path in drop_racy(tmp_path / "house")] == ["room"]
    assert run(tmp_path) == "0.2"


def test_bytecode_written_later_is_kept(tmp_path: Path) -> None:
    source = write(tmp_path, "0.1", int(time.time()) - 60)
    run(tmp_path)
    assert drop_racy(tmp_path / "house") == []
    assert list(source.parent.glob("__pycache__/*.pyc"))


def test_orphans_are_left_alone(tmp_path: Path) -> None:
    source = write(tmp_path, "0.1", int(time.time()))
    run(tmp_path)
    source.unlink()
    assert drop_racy(tmp_path / "house") == []

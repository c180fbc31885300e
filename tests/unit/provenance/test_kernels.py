"""The kernel set names the kind of CPU and what was asked of the libraries, on any machine."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from restudy.provenance import kernels, numerics

AVX2 = "fpu sse4_2 avx2 fma"
AVX512 = f"{AVX2} avx512f avx512bw avx512dq avx512vl avx512cd"


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No variable set by hand; nothing remembered before or after."""
    for name in numerics.CHOOSING:
        monkeypatch.delenv(name, raising=False)
    yield
    forget()


def forget() -> None:
    numerics.cpuinfo.cache_clear()
    kernels.cpu.cache_clear()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make this machine another one."""

    def become(vendor: str, family: int, model: int, flags: str, l2: str = "", l3: str = "") -> None:
        lines = {"processor": 0, "vendor_id": vendor, "cpu family": family, "model": model, "model name": "EPYC: x"}
        text = "\n".join(f"{key}\t: {value}" for key, value in (lines | {"stepping": 1, "flags": flags}).items())
        (tmp_path / "cpuinfo").write_text(f"{text}\n\nprocessor\t: 1\nmodel\t\t: 99\n")
        for index, (level, size) in enumerate([("1", "32K"), ("2", l2), ("3", l3)]):
            folder = tmp_path / "cache" / f"index{index}"
            folder.mkdir(parents=True)
            (folder / "level").write_text(f"{level}\n")
            (folder / "size").write_text(f"{size}\n")
        monkeypatch.setattr(numerics, "CPUINFO", tmp_path / "cpuinfo")
        monkeypatch.setattr(kernels, "CACHES", tmp_path / "cache")
        monkeypatch.setattr(kernels.platform, "machine", lambda: "x86_64")
        forget()

    return become


def test_two_kinds_have_two_names(machine: Callable[..., None]) -> None:
    machine("AuthenticAMD", 25, 1, AVX2, "512K", "32768K")
    assert kernels.name() == "AMD 25/1, AVX2, L2 512 KiB, native"
    found = kernels.cpu()
    assert (found.stepping, found.l3_kib, found.flags) == ("1", 32768, ("avx2", "fma"))
    assert kernels.name("portable") == "AMD 25/1, AVX2, L2 512 KiB, portable"


def test_avx512_and_caches_in_mebibytes(machine: Callable[..., None]) -> None:
    machine("GenuineIntel", 6, 207, AVX512, "2M", "nonsense")
    assert kernels.name() == "Intel 6/207, AVX-512, L2 2 MiB, native"
    assert kernels.cpu().l3_kib is None


def test_a_machine_that_says_nothing_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerics, "CPUINFO", tmp_path / "none")
    monkeypatch.setattr(kernels, "CACHES", tmp_path / "none")
    monkeypatch.setattr(kernels.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(kernels.platform, "processor", lambda: "arm")
    forget()
    assert kernels.name() == "arm, arm64, native"
    assert kernels.record()["cpu"]["l2_kib"] is None


def test_what_was_set_by_hand_is_named(machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    machine("GenuineIntel", 6, 207, AVX512, "2M", "30M")
    monkeypatch.setenv("MKL_CBWR", "AVX2,STRICT")
    assert kernels.name() == "Intel 6/207, AVX-512, L2 2 MiB, native, MKL_CBWR=AVX2,STRICT"
    found = kernels.record()
    assert found["mkl"] == "AVX2,STRICT" and found["onednn"] == "detected: AVX-512"
    assert found["variables"] == {"MKL_CBWR": "AVX2,STRICT"} and found["name"] == kernels.name()


def test_what_torch_would_choose_is_what_it_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    loaded = kernels.record()["aten"]
    assert loaded == torch.backends.cpu.get_cpu_capability()
    monkeypatch.delitem(sys.modules, "torch")
    assert kernels.record()["aten"] == loaded


def test_no_library_is_imported_for_it() -> None:
    code = "import sys; from restudy.provenance import kernels; kernels.record(); print('torch' in sys.modules)"
    environ = {k: v for k, v in os.environ.items() if k not in numerics.CHOOSING}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

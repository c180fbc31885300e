"""Which kernels compute here: the kind of CPU, and what the environment asks of the numerical libraries.

Two kinds of CPU give two sums of the same floats: libraries choose kernels by instruction set and block sizes by
cache. The kernel set is recorded beside results and inside them. It is never part of a fingerprint.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from restudy.provenance.numerics import CHOOSING, cpuinfo, mode

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_VENDORS = {"GenuineIntel": "Intel", "AuthenticAMD": "AMD", "HygonGenuine": "Hygon"}
_AVX512 = frozenset({"avx512f", "avx512bw", "avx512dq", "avx512vl"})
_SHOWN = ("avx2", "fma", *sorted(_AVX512), "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile")


@dataclass(frozen=True)
class Cpu:
    """A kind of CPU; `family`, `model` and `stepping` as in /proc/cpuinfo, caches of one core in KiB, None unknown."""

    vendor: str
    family: str
    model: str
    stepping: str
    flags: tuple[str, ...]
    l2_kib: int | None
    l3_kib: int | None

    @property
    def isa(self) -> str:
        """The widest vectors that the numerical libraries know of: `AVX-512`, `AVX2`, or the machine's name."""
        if set(self.flags) >= _AVX512:
            return "AVX-512"
        return "AVX2" if {"avx2", "fma"} <= set(self.flags) else platform.machine()

    @property
    def text(self) -> str:
        """`Intel 6/207, AVX-512, L2 2 MiB`."""
        number = f" {self.family}/{self.model}" if self.family else ""
        cached = [] if self.l2_kib is None else [f"L2 {_size(self.l2_kib)}"]
        return ", ".join([f"{self.vendor}{number}", self.isa, *cached])


@cache
def cpu() -> Cpu:
    """The first CPU of this machine; outside Linux what Python knows of it."""
    found = cpuinfo()
    flags = found.get("flags", "").split()
    vendor = found.get("vendor_id", "") or platform.processor() or platform.machine()
    return Cpu(
        _VENDORS.get(vendor, vendor),
        found.get("cpu family", ""),
        found.get("model", ""),
        found.get("stepping", ""),
        tuple(name for name in _SHOWN if name in flags),
        _cache_kib(2),
        _cache_kib(3),
    )


def name(numerics: str | None = None) -> str:
    """The kernel set in a few words: `Intel 6/207, AVX-512, L2 2 MiB, native`.

    Variables that somebody set by hand follow, `ATEN_CPU_CAPABILITY=avx2`. Equal on all machines of one kind, whether
    or not a library is loaded.

    Args:
        numerics: `native` or `portable`: what a job of that mode would have here; this process's own if left out.
    """
    here = numerics or mode()
    return ", ".join([cpu().text, here, *([] if here == "portable" else _by_hand())])


def record() -> dict[str, Any]:
    """The whole kernel set of this process, for a `.run.json`: the CPU, each library's widest kernels, the mode."""
    libraries = {"aten": _aten(), "onednn": _asked("ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA")}
    libraries |= {"mkl": _asked("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"), "openblas": _asked("OPENBLAS_CORETYPE")}
    variables = {variable: os.environ[variable] for variable in CHOOSING if variable in os.environ}
    return {"name": name(), "cpu": asdict(cpu()), "numerics": mode(), **libraries, "variables": variables}


def _aten() -> str:
    """What torch says where it is loaded; else what it would choose."""
    if torch := sys.modules.get("torch"):
        return str(torch.backends.cpu.get_cpu_capability())
    if asked := os.environ.get("ATEN_CPU_CAPABILITY"):
        return asked.upper()
    return {"AVX-512": "AVX512", "AVX2": "AVX2"}.get(cpu().isa, "DEFAULT")


def _asked(*variables: str) -> str:
    """The first of some variables that is set; `detected: AVX-512` without."""
    return next((os.environ[v] for v in variables if os.environ.get(v)), f"detected: {cpu().isa}")


def _by_hand() -> list[str]:
    return [f"{variable}={os.environ[variable]}" for variable in CHOOSING if os.environ.get(variable)]


def _cache_kib(level: int) -> int | None:
    """The size of a data or unified cache of the first core."""
    for folder in sorted(CACHES.glob("index*")):
        try:
            if (folder / "level").read_text().strip() != str(level):
                continue
            found = re.fullmatch(r"(\d+)([KM]?)", (folder / "size").read_text().strip())
        except OSError:
            continue
        if found:
            return int(found[1]) * {"": 1, "K": 1, "M": 1024}[found[2]]
    return None


def _size(kib: int) -> str:
    return f"{kib // 1024} MiB" if kib % 1024 == 0 else f"{kib} KiB"

"""The modes of arithmetic that a preset may ask for: `native` and `portable`.

`native` lets every library choose the kernels that are fastest on the CPU at hand. `portable` asks all of them for one
path, that of AVX2 or older, whatever the CPU could do. It narrows what differs between kinds of CPU; it does not end it
(docs/decisions/0005-numerics.md). Libraries read these variables when they are loaded, so a job sets them first.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from functools import cache
from pathlib import Path

from restudy.errors import ConfigError, RestudyError

CPUINFO = Path("/proc/cpuinfo")
# MKL's AVX2 path still gave other sums on a CPU with AVX-512 than on one without; its compatible path did not for
# float64. OpenBLAS and numpy each needed their own variable before sums in numpy were equal.
_PORTABLE = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Haswell",
}
_NUMPY = "NPY_DISABLE_CPU_FEATURES"
# What numpy dispatches beyond AVX2, with flags of /proc/cpuinfo that tell it; numpy warns of a name that it does not
# use on the machine at hand.
_NUMPY_FEATURES = {
    "X86_V4": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
    "AVX512_ICL": {"avx512_vbmi2", "avx512_bitalg", "avx512_vpopcntdq", "avx512_vnni", "avx512vbmi", "avx512ifma"},
    "AVX512_SPR": {"avx512_fp16"},
}
# Other names for the same choices: they would stand against the ones above.
_OTHERS = ("DNNL_MAX_CPU_ISA", "MKL_ENABLE_INSTRUCTIONS", "NPY_ENABLE_CPU_FEATURES")
CHOOSING = tuple(sorted([*_PORTABLE, _NUMPY, *_OTHERS]))
"""Every environment variable that chooses kernels."""


def portable() -> dict[str, str]:
    """The environment variables of `portable` on this machine.

    Raises:
        ConfigError: this is no x86-64 CPU with AVX2.
    """
    flags = set(cpuinfo().get("flags", "").split())
    if platform.machine() not in ("x86_64", "AMD64") or (flags and not {"avx2", "fma"} <= flags):
        raise ConfigError(
            f"`portable` is the arithmetic of AVX2, which this CPU lacks ({platform.machine()})",
            where="numerics",
            remedy="use `numerics: native`",
        )
    base = _NUMPY_FEATURES["X86_V4"]
    there = [name for name, needed in _NUMPY_FEATURES.items() if base | needed <= flags]
    return _PORTABLE | ({_NUMPY: " ".join(there)} if there else {})


def environment(mode: str, base: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that computes in a mode; `native` keeps what the user set by hand.

    Args:
        mode: `native` or `portable`. base: the environment to start from, this process's own by default.
    """
    environ = dict(os.environ if base is None else base)
    if mode == "native":
        return environ
    return {name: value for name, value in environ.items() if name not in CHOOSING} | portable()


def apply(mode: str) -> None:
    """Let this process compute in a mode.

    Raises:
        ConfigError: not possible on this CPU.
        RestudyError: numpy or torch is loaded already, so that it would have no effect.
    """
    if mode == "native":
        return
    if loaded := [name for name in ("numpy", "torch") if name in sys.modules]:
        raise RestudyError(f"{', '.join(loaded)} was imported before `numerics: {mode}` could be set")
    wanted = environment(mode)
    for name in CHOOSING:
        os.environ.pop(name, None)
    os.environ.update(wanted)


def mode() -> str:
    """The mode that this process's environment amounts to."""
    try:
        wanted = portable()
    except ConfigError:
        return "native"
    return "portable" if {n: os.environ[n] for n in CHOOSING if n in os.environ} == wanted else "native"


@cache
def cpuinfo() -> dict[str, str]:
    """What Linux says of the first CPU, by name; empty elsewhere."""
    try:
        text = CPUINFO.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    return dict(re.findall(r"^([^\t:]+?)\s*:[ \t]*(.*)$", text, re.MULTILINE))

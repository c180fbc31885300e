"""`portable` reaches every library of the process, and is refused where it would have no effect."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import numpy as np
import pytest

from restudy.errors import ConfigError, RestudyError
from restudy.provenance import benchmark, numerics

SEEN = """
import json
from restudy.provenance import numerics
numerics.apply(MODE)
import numpy, torch, threadpoolctl
from restudy.provenance import kernels
core = numpy._core._multiarray_umath
blas = [d["architecture"] for d in threadpoolctl.threadpool_info() if d["internal_api"] == "openblas"]
used = [name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]]
print(json.dumps({"numpy": used, "blas": blas, "record": kernels.record(), "mode": numerics.mode()}))
"""
avx2 = pytest.mark.skipif(
    platform.machine() not in ("x86_64", "AMD64") or "avx2" not in numerics.cpuinfo().get("flags", "avx2"),
    reason="needs an x86-64 CPU with AVX2",
)


def clean() -> dict[str, str]:
    return {k: v for k, v in numerics.environment("native").items() if k not in numerics.CHOOSING}


def seen(mode: str, **variables: str) -> dict:
    command = [sys.executable, "-W", "error", "-c", SEEN.replace("MODE", repr(mode))]
    done = subprocess.run(command, env=clean() | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not done.stderr, "no library warns"
    return json.loads(done.stdout)


@avx2
def test_every_library_obeys_and_none_warns() -> None:
    found = seen("portable", ATEN_CPU_CAPABILITY="default", DNNL_MAX_CPU_ISA="SSE41", NPY_ENABLE_CPU_FEATURES="X86_V3")
    assert set(found["numpy"]) <= {"X86_V3"} and found["mode"] == "portable"
    assert set(found["blas"]) <= {"Haswell"}
    record = found["record"]
    assert record["aten"] == "AVX2" and record["onednn"] == "AVX2" and record["mkl"] == "COMPATIBLE"
    assert record["name"].endswith(", portable") and "DNNL_MAX_CPU_ISA" not in record["variables"]


@avx2
def test_native_keeps_what_was_set_by_hand() -> None:
    found = seen("native", ATEN_CPU_CAPABILITY="avx2")
    assert found["record"]["aten"] == "AVX2" and found["mode"] == "native"
    assert found["record"]["name"].endswith(", native, ATEN_CPU_CAPABILITY=avx2")


@avx2
def test_portable_disables_what_numpy_dispatches_here_and_nothing_else() -> None:
    core = np._core._multiarray_umath
    dispatched = {name for name in core.__cpu_dispatch__ if core.__cpu_features__[name]}
    hidden = set(numerics.portable().get("NPY_DISABLE_CPU_FEATURES", "").split())
    assert hidden == dispatched - {"X86_V3"}


def test_too_late_is_refused() -> None:
    with pytest.raises(RestudyError, match="numpy.* was imported before"):
        numerics.apply("portable")
    numerics.apply("native")


def test_a_cpu_without_avx2_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numerics, "cpuinfo", lambda: {"flags": "fpu sse4_2"})
    with pytest.raises(ConfigError, match=r"lacks.*numerics: native"):
        numerics.portable()
    assert numerics.mode() == "native"
    monkeypatch.setattr(numerics.platform, "machine", lambda: "arm64")
    with pytest.raises(ConfigError, match="arm64"):
        numerics.environment("portable")


@avx2
def test_the_price_is_measured_in_processes_of_either_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def measured(mode: str) -> dict[str, float]:
        asked.append(mode)
        return {"net": 2.0 if mode == "native" else 3.0 + len(asked)}

    nets = benchmark._measured("portable", 1)
    assert len(nets) == 3 and all(seconds > 0 for seconds in nets.values())
    monkeypatch.setattr(benchmark, "_measured", measured)
    (row,) = benchmark.rows()
    assert asked == ["native", "portable"] * benchmark.ROUNDS
    assert row["ratio"] == 2.5 and "net" in row["what"], "the least of the rounds"

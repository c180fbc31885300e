import pytest
import torch

from restudy.methods.attribution import benchmark
from restudy.peers import import_peer


@pytest.fixture(scope="module")
def problem():
    return benchmark.problem(images=6)


SMALL = {
    name: {**given, **{key: 3 for key in ("steps", "samples") if key in given}}
    for name, given in benchmark.OPTIONS.items()
}


@pytest.mark.peers
def test_captum_on_the_small_cnn(problem):
    pytest.importorskip("captum")
    rows = benchmark.against_captum(*problem, options=SMALL, repeats=1)
    assert [row["method"] for row in rows] == list(SMALL)
    for row in rows:
        assert row["difference"] <= 1e-5 and row["ratio"] > 0, row


@pytest.mark.peers
def test_quantus_cascade_on_the_small_cnn(problem):
    module, reason = import_peer("quantus")
    if module is None:
        pytest.skip(reason)
    found = benchmark.against_quantus(*problem, options=SMALL, repeats=1, checked_images=4)
    assert found["maps"] == 10 * 5 * 6 and found["ratio"] > 0
    assert found["difference"] <= 1e-6 and found["same_undefined"]
    assert found["difference_float32"] <= 1e-2  # single precision: a gate that opens, two pixels that swap


def test_a_missing_peer_is_named(problem, monkeypatch):
    monkeypatch.setattr(benchmark, "import_peer", lambda name: (None, f"{name} cannot be imported: no"))
    rows = benchmark.against_captum(*problem)
    assert all(row["skipped"] == "captum.attr cannot be imported: no" for row in rows)
    assert "skipped" in benchmark.against_quantus(*problem)


def test_import_failures_become_reasons():
    module, reason = import_peer("restudy_has_no_such_module")
    assert module is None and reason.startswith("restudy_has_no_such_module cannot be imported")
    assert import_peer("torch") == (torch, "")

"""The same AOPC as Quantus, whatever the size of the regions."""

from __future__ import annotations

import pytest
import torch

from restudy.methods.attribution.benchmark import problem
from restudy.methods.perturbation import benchmark

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("region", [4, 7])
def test_quantus_region_perturbation(region: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "REGION", region)
    model, images, target = problem(8)
    images = (images - images.amin((2, 3), keepdim=True)).contiguous()
    maps = {"a": torch.randn(8, 28, 28, generator=torch.Generator().manual_seed(0))}
    row = benchmark.against_quantus(model, images, target, maps, repeats=1)
    if "skipped" in row:
        pytest.skip(row["skipped"])
    assert row["difference"] <= 1e-6

"""A loop killed anywhere goes on to the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from restudy.errors import ResultError
from restudy.methods.training import Resumable

RECIPE = {"arm": "plain", "rate": 0.1}


class Killed(Exception):
    """The process is gone."""


def train(path: Path | None, units: int = 7, every: int = 2, kill_in: int | None = None, live: Any = None) -> Any:
    torch.manual_seed(0)
    model, records = nn.Linear(3, 1), []
    optimizer = torch.optim.Adam(model.parameters(), 0.1)
    noise = torch.Generator().manual_seed(1)
    run = Resumable(path, RECIPE, live, model=model, optimizer=optimizer, noise=noise, records=records)
    for unit in run.units(units, every):
        if unit == kill_in:
            raise Killed
        loss = model(torch.randn(5, 3, generator=noise)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        records.append({"step": unit, "loss": loss.item()})
    return [p.detach().clone() for p in model.parameters()], records


@pytest.mark.parametrize("kill_in", [0, 1, 2, 5, 6])
def test_a_killed_run_goes_on_to_the_same_bits(tmp_path: Path, kill_in: int) -> None:
    whole = train(None)
    path = tmp_path / "run.pt"
    with pytest.raises(Killed):
        train(path, kill_in=kill_in)
    assert path.exists() == (kill_in >= 2)
    weights, records = train(path)
    assert records == whole[1] and all(torch.equal(a, b) for a, b in zip(weights, whole[0], strict=True))


def test_a_finished_run_takes_no_further_step(tmp_path: Path) -> None:
    whole = train(tmp_path / "run.pt")
    again = train(tmp_path / "run.pt", kill_in=0)
    assert again[1] == whole[1]


def test_another_recipe_or_other_parts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    Resumable(path, RECIPE, records=[]).save()
    with pytest.raises(ResultError, match="another run"):
        Resumable(path, RECIPE | {"rate": 0.2}, records=[])
    with pytest.raises(ResultError, match="another run"):
        Resumable(path, RECIPE, more=[])


def test_live_curves_are_told_every_unit() -> None:
    class Live:
        told: list[tuple[int, dict[str, float]]] = []

        def log(self, step: int, **values: float) -> None:
            self.told.append((step, values))

    records = train(None, units=3, live=Live())[1]
    assert Live.told == [(i + 1, {"loss": r["loss"]}) for i, r in enumerate(records)]

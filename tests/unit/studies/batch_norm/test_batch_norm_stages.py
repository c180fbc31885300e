"""The stages on small nets: the arms share what they compare, a killed run resumes bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.results.tables import table_bytes
from restudy.studies.batch_norm import deep, descend, identities, linear, nets, train

TRAIN: dict[str, Any] = {
    "width": 2, "steps": 12, "batch_size": 16, "train_images": 64, "test_images": 20, "watched_images": 16,
    "window": 2, "dense_every": 4, "dense_until": 4, "sparse_every": 4, "lengths": 2, "eigenvalue_products": 0,
    "probed": ["bn-0.1", "noisy-0.1", "std-0.1"], "layers": [2, 5], "samples": 32, "bins": 8, "channels_last": True,
}  # fmt: skip
DEEP: dict[str, Any] = {
    "depth": 6, "size": 4, "samples": 20, "steps": 24, "window": 2, "dense_every": 8, "dense_until": 8,
    "sparse_every": 8, "lengths": 3, "eigenvalue_products": 2,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train.fashion_mnist, "load", lambda: synthetic.load(test_per_class=6))
    torch.set_num_threads(1)


def run(folder: Path, name: str, seeds: list[int], **changes: Any) -> dict[str, Any]:
    folder.mkdir(parents=True, exist_ok=True)
    return train.train_nets(Context(folder), run=name, seeds=seeds, **(TRAIN | changes))


def as_bytes(outputs: dict[str, Any]) -> dict[str, bytes]:
    return {name: table_bytes(table) for name, table in outputs.items()}


class Killed(Exception):
    pass


def test_killed_run_resumes_to_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = as_bytes(run(tmp_path / "a", "noisy-0.1", [0]))
    save, saved = descend.save_checkpoint, []

    def dying(path: Path, content: dict[str, Any]) -> None:
        save(path, content)
        saved.append(path)
        raise Killed

    monkeypatch.setattr(descend, "save_checkpoint", dying)
    with pytest.raises(Killed):
        run(tmp_path / "b", "noisy-0.1", [0])
    monkeypatch.setattr(descend, "save_checkpoint", save)
    assert saved and saved[0].is_file()
    assert as_bytes(run(tmp_path / "b", "noisy-0.1", [0])) == whole


def test_probes_change_nothing(tmp_path: Path) -> None:
    with_probes = run(tmp_path / "a", "noisy-0.1", [0])
    without = run(tmp_path / "b", "noisy-0.1", [0], probed=[])
    for name in ("training", "curves"):
        assert table_bytes(with_probes[name]) == table_bytes(without[name])
    assert with_probes["probes"].num_rows and not without["probes"].num_rows


def test_seeds_are_used_and_independent_of_the_job(tmp_path: Path) -> None:
    both, second = (run(tmp_path / str(len(seeds)), "std-0.1", seeds) for seeds in ([0, 1], [1]))
    losses = [table["loss"].to_pylist() for table in (both["curves"], second["curves"])]
    assert losses[0][6:] == losses[1] != losses[0][:6]


def test_deep_stage_resumes_and_repeats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    first, second = (deep.train_deep(Context(f), deep_run="bn-1e-6", seeds=[0], **DEEP) for f in folders)
    assert (
        as_bytes(first)
        == as_bytes(second)
        == as_bytes(deep.train_deep(Context(folders[0]), deep_run="bn-1e-6", seeds=[0], **DEEP))
    )


def test_diverged_run_is_said_and_counts_as_chance(tmp_path: Path) -> None:
    outputs = run(tmp_path, "std-1e30", [0], probed=[])
    numbers = dict(
        zip(outputs["training"]["metric"].to_pylist(), outputs["training"]["value"].to_pylist(), strict=True)
    )
    assert numbers["diverged"] == 1.0 and numbers["test_accuracy"] == pytest.approx(0.1)
    assert outputs["curves"].num_rows == 6 and outputs["curves"]["accuracy"].to_pylist()[-1] == pytest.approx(0.1)


@pytest.mark.parametrize("arm", list(nets.NORMS))
def test_arms_share_their_initial_weights(arm: str) -> None:
    plain, other = nets.VGG("std", 2, seed=3), nets.VGG(arm, 2, seed=3)
    for number in range(1, nets.DEPTH + 1):
        name = f"conv{number}.conv.weight"
        assert torch.equal(plain.get_parameter(name), other.get_parameter(name))
    assert other(torch.randn(4, 1, 28, 28)).shape == (4, 10)
    assert len([m for m in other.modules() if isinstance(m, torch.nn.MaxPool2d)]) == 4


def test_deep_linear_network_is_linear() -> None:
    model = linear.DeepLinear("std", depth=5, size=4, seed=0)
    data = linear.regression(7, 4, seed=0)
    assert torch.allclose(model(2 * data.inputs), 2 * model(data.inputs))
    assert data.inputs.dtype == torch.float64
    assert isinstance(linear.DeepLinear("bn", depth=3, seed=0).get_submodule("layer3").norm, torch.nn.Identity)


def test_identities_hold(tmp_path: Path) -> None:
    table = identities.check_identities(Context(tmp_path), draws=30, largest_batch=63)["identities"].to_pandas()
    largest = table.groupby("check")["value"].max()
    assert largest["theorem_error"] < 1e-10 and largest["observation_gap"] < 1e-10
    assert largest["printed_bound_holds"] == 0 and largest["shift_without_lower_step"] == 0
    assert largest[["gradient_excess", "weight_bound_excess"]].max() <= 1e-12
    assert largest[["missing_part_error", "weight_bound_error"]].max() < 1e-10


def test_probe_steps() -> None:
    assert descend.probe_steps(1200, 50, 300, 200) == [0, 50, 100, 150, 200, 250, 300, 500, 700, 900, 1100]
    assert descend.probe_steps(10, 50, 300, 200) == [0]
    assert nets.split("std-1e-7") == ("std", 1e-7)

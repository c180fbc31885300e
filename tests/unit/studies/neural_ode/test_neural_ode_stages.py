"""What this study alone knows: arms share starts, targets are densities, spirals and events are as they are said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.errors import ConfigError
from restudy.methods.continuous import Solver
from restudy.studies.neural_ode import exact, experiment, flows, models, time_series
from restudy.studies.neural_ode.models import GRID, draw_spirals, log_normalizer, log_target, points_of, square

CLASSIFY: dict[str, Any] = {
    "seeds": [0], "arms": ["odenet", "rknet", "tied6"], "train_images": 100, "test_images": 40, "side": 14,
    "channels": 2, "hidden": 8, "batch_size": 20, "steps": 8, "tolerance": 0.01, "window": 1,
    "learning_rates": {"odenet": 0.1, "rknet": 0.1, "tied6": 0.1},
}  # fmt: skip


class Failing(experiment.Task):
    """A task that goes well for two steps."""

    def __init__(self, how: str) -> None:
        self.model, self.how = torch.nn.Linear(2, 1), how

    def loss(self, step: int) -> torch.Tensor:
        value = self.model(torch.ones(1, 2)).square().sum()
        if step < 2:
            return value
        if self.how == "nan":
            return value * float("nan")
        raise AssertionError(self.how)


@pytest.mark.parametrize("how", ["nan", "underflow in dt 1e-16", "non-finite values in state `y`: inf"])
def test_a_run_that_breaks_down_is_a_failed_one(how: str, tmp_path: Path) -> None:
    task = Failing(how)
    for _ in range(2):  # the second time from the checkpoint
        curves = experiment.fit(task, experiment.Recipe("x", 5, 0.1, "sgd", 1), tmp_path)
        assert curves.diverged and len(curves.rows) == 3 and np.isnan(curves.last("loss"))
        assert all(torch.isfinite(p).all() for p in task.model.parameters())


def test_other_assertions_are_not_swallowed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        experiment.fit(Failing("a fault"), experiment.Recipe("x", 5, 0.1, "sgd", 1), tmp_path)


def test_trained_weights_under_other_solvers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors.torch import save_file

    data = synthetic.load(test_per_class=6)
    monkeypatch.setattr(models.fashion_mnist, "load", lambda: data)
    trained = experiment.classify(Context(tmp_path), **CLASSIFY)
    save_file(trained["weights"], tmp_path / "weights.safetensors")
    context = Context(tmp_path, weights={"weights": [tmp_path / "weights.safetensors"]})
    sizes = {"side": 14, "channels": 2, "train_images": 100, "test_images": 40, "exact_images": 20, "error_images": 20}
    found = experiment.solvers(
        context, seeds=[0], tolerances=[0.01, 0.001, 1e-6], swap_tolerance=1e-6, tolerance=0.01, **sizes
    )
    errors = {r["tolerance"]: r["value"] for r in found["tolerances"] if r["metric"] == "state_error"}
    assert errors[1e-6] < errors[0.001] < errors[0.01]
    distances = {r["solver"]: r["value"] for r in found["exchanges"] if r["metric"] == "logit_distance"}
    assert distances.keys() == {"dopri5", "dopri8", "bosh3", "scipy"} and max(distances.values()) < 1e-3
    # The tied net's own accuracy is that of Euler with unit steps.
    (tied,) = [r["value"] for r in found["exchanges"] if (r["arm"], r["solver"]) == ("tied6", "euler-6")]
    (error,) = [r["value"] for r in trained["training"] if (r["arm"], r["metric"]) == ("tied6", "test_error")]
    assert tied == pytest.approx(1 - error)


def test_arms_share_ends_and_field() -> None:
    made = {
        arm: models.build(arm, channels=4, side=14, hidden=8, tolerance=0.01, seed=3)
        for arm in ("odenet", "rknet", "tied6", "resnet6", "plain6")
    }
    stems = [torch.cat([p.reshape(-1) for p in net.stem.parameters()]) for net in made.values()]
    assert all(torch.equal(stems[0], other) for other in stems)
    fields = [dict(made[a].body.named_parameters()) for a in ("odenet", "rknet", "tied6")]
    values = [torch.cat([p.reshape(-1) for p in field.values()]) for field in fields]
    assert torch.equal(values[0], values[1]) and torch.equal(values[0], values[2])
    residual, plain = (made[a].body.state_dict() for a in ("resnet6", "plain6"))
    assert all(torch.equal(residual[name], plain[name]) for name in residual)
    sizes = {arm: sum(p.numel() for p in net.parameters()) for arm, net in made.items()}
    assert sizes["odenet"] == sizes["tied6"] <= 0.5 * sizes["resnet6"] == 0.5 * sizes["plain6"]
    for side in (14, 28):
        assert models.stem(4, side)(torch.zeros(1, 1, side, side)).shape == (1, 4, 6, 6)
    with pytest.raises(ConfigError):
        models.build("transformer", channels=4, side=14, hidden=8, tolerance=0.01, seed=0)


def test_identities_hold_and_say_when_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {(r["metric"], r["case"]): r["value"] for r in exact.flow_rows(0)}
    assert rows["trace integral", "flow 0"] < 1e-5 and rows["determinants", "flow 0"] == 0
    assert rows["determinants of the long way", "flow 0"] > 0
    assert all(row["value"] < 1e-12 for row in exact.tied_is_euler(0))
    monkeypatch.setattr(exact.PlanarField, "trace", lambda self, t, z: z[:, 0])
    wrong = {r["metric"]: r["value"] for r in exact.flow_rows(0)}
    assert wrong["trace"] > 1e-3


@pytest.mark.parametrize("name", ["crescents", "wave"])
def test_normalizers(name: str) -> None:
    assert log_normalizer(name, 600) == pytest.approx(log_normalizer(name, 300), abs=1e-6)
    points, area = square(400, 9.0)
    wide = float(log_target(name, points).exp().sum()) * area
    assert np.log(wide) == pytest.approx(log_normalizer(name), abs=1e-5)


def test_divergence_of_the_target_from_itself_is_zero() -> None:
    """A flow that is the standard normal has the divergence that quadrature gives."""
    model = flows.make("cnf", 2, 0, 1.0, 1.0, 1e-5)
    with torch.no_grad():
        model.field.u.zero_()
        found = float(flows.divergence(model, "crescents", 20_000, 1)) + log_normalizer("crescents")
    points, area = square(400)
    log_q = -0.5 * points.square().sum(1) - np.log(2 * np.pi)
    exact = float((log_q.exp() * (log_q - log_target("crescents", points))).sum()) * area + log_normalizer("crescents")
    assert found == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("name", ["circles", "moons"])
def test_point_sets_are_drawn_anew(name: str) -> None:
    one, again, other = (points_of(name, 200, 0, step) for step in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other) and float(one.abs().max()) < 3


def test_spirals_are_irregular_held_out_and_the_same_at_every_size() -> None:
    few, many = (draw_spirals(20, n, 3.77, 0.1, 0, "train") for n in (10, 50))
    assert torch.equal(few.truth, many.truth)
    test = draw_spirals(20, 10, 3.77, 0.1, 0, "test")
    assert not torch.isclose(few.truth, test.truth).all(2).all(1).any()
    assert bool((few.index.diff(dim=1) > 0).all()) and len({tuple(row) for row in few.index.tolist()}) > 10
    noise = few.values - few.truth.gather(1, few.index[..., None].expand(-1, -1, 2))
    assert float(noise.std()) == pytest.approx(0.1, rel=0.15)
    assert few.truth.shape == (20, 2 * GRID, 2) and few.future().shape == (20, 10, 2)
    assert float(few.grid[GRID - 1]) == pytest.approx(3.77)
    # Half of them turn clockwise: the sign of the angular momentum.
    step = few.truth.diff(dim=1)
    turning = (few.truth[:, :-1, 0] * step[..., 1] - few.truth[:, :-1, 1] * step[..., 0]).mean(1).sign()
    assert turning.tolist() == [-1.0, 1.0] * 10


def test_errors_between_observations() -> None:
    data = draw_spirals(6, 30, 3.77, 0.0, 0, "test")
    exact = time_series.between(data.truth[:, :GRID], data)
    assert exact["between"] == 0 and 0 < exact["between_linear"] < 0.05
    place = int(data.index[0, 0]) - 1
    outside = data.truth[:, :GRID].clone()
    outside[0, : place + 1] += 5
    assert time_series.between(outside, data)["between"] == 0


def test_events_follow_their_rate() -> None:
    rate, times = time_series.draw(0, 20_000, 5, 10.0)
    assert len(times) == pytest.approx(20_000, rel=0.05) and bool((times.diff() >= 0).all())
    counts, edges = np.histogram(times.numpy(), bins=40, range=(0, 10))
    expected = 5 * rate(0.5 * (edges[1:] + edges[:-1])) * 0.25
    assert np.corrcoef(counts, expected)[0, 1] > 0.99
    assert time_series.true_log_likelihood(rate, times, 5) > time_series.constant_log_likelihood(times, 5, 10.0)


def test_fixed_solver_of_a_trained_net_is_no_part_of_its_weights() -> None:
    net = models.build("odenet", channels=2, side=14, hidden=8, tolerance=0.01, seed=0)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.body.solver = Solver("rk4", steps=4)
    assert before.keys() == net.state_dict().keys()

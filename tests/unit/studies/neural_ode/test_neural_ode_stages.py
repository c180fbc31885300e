"""The stages on small sizes: the same bits twice and after a kill, arms share starts, targets are densities."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from restudy.bench.context import Context
from restudy.data import synthetic
from restudy.errors import ConfigError, ResultError
from restudy.methods.continuous import Solver
from restudy.results.tables import table_bytes
from restudy.studies.neural_ode import classify, density, events, fitting, flow_identities, identities, nets, solvers
from restudy.studies.neural_ode import spirals as stage
from restudy.studies.neural_ode.spiral_data import GRID, spirals
from restudy.studies.neural_ode.targets import log_normalizer, log_target, points_of, square
from restudy.tables import where

CLASSIFY: dict[str, Any] = {
    "seeds": [0], "arms": ["odenet", "rknet", "tied6", "mlp"], "train_images": 100, "test_images": 40, "side": 14,
    "channels": 2, "hidden": 8, "batch_size": 20, "steps": 8, "tolerance": 0.01, "window": 1,
    "learning_rates": {"odenet": 0.1, "rknet": 0.1, "tied6": 0.1, "mlp": 0.1},
}  # fmt: skip
DENSITY: dict[str, Any] = {
    "seeds": [0], "potentials": ["crescents"], "point_sets": ["moons"], "widths": [2], "set_width": 3, "steps": 6,
    "long_steps": 8, "batch_size": 20, "cnf_rate": 0.05, "nf_rate": 0.05, "end": 1.0, "scale": 1.0, "tolerance": 0.01,
    "measured_tolerance": 0.001, "window": 1, "panel": 6,
}  # fmt: skip
SPIRALS: dict[str, Any] = {
    "seeds": [0], "arms": ["latent_ode", "rnn", "gru_gaps"], "points": [10], "trajectories": 8, "held_out": 5,
    "window_radians": 3.77, "noise": 0.1, "latent": 2, "hidden": 4, "units": 4, "encoder": "gru", "batch_size": 4,
    "steps": 6, "tolerance": 0.01, "window": 1, "learning_rates": {"latent_ode": 0.01, "rnn": 0.01, "gru_gaps": 0.01},
}  # fmt: skip
EVENTS: dict[str, Any] = {
    "seeds": [0], "events": 30.0, "sequences": 5, "end": 4.0, "latent": 2, "hidden": 4, "steps": 6,
    "learning_rate": 0.05, "tolerance": 0.01, "window": 1,
}  # fmt: skip
STAGES: list[tuple[Callable[..., Any], dict[str, Any]]] = [
    (classify.train_classifiers, CLASSIFY),
    (density.fit_densities, DENSITY),
    (stage.train_forecasters, SPIRALS),
    (events.fit_intensities, EVENTS),
]
VOLATILE = {"train_timings", "solver_timings", "weights"}


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    data = synthetic.load(test_per_class=6)
    monkeypatch.setattr(classify.fashion_mnist, "load", lambda: data)


def stored(outputs: dict[str, Any]) -> dict[str, bytes]:
    return {name: table_bytes(found) for name, found in outputs.items() if name not in VOLATILE}


@pytest.mark.parametrize(("train", "sizes"), STAGES, ids=["classify", "density", "spirals", "events"])
def test_same_bytes_twice_and_after_a_kill(
    train: Any, sizes: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = train(Context(tmp_path / "a"), **sizes)
    saved, count = fitting.save_checkpoint, 0

    def killed(path: Path, content: dict[str, Any]) -> None:
        nonlocal count
        saved(path, content)
        count += 1
        if count == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "save_checkpoint", killed)
    with pytest.raises(KeyboardInterrupt):
        train(Context(tmp_path / "b"), **sizes)
    monkeypatch.setattr(fitting, "save_checkpoint", saved)
    resumed = train(Context(tmp_path / "b"), **sizes)
    assert stored(resumed) == stored(undisturbed)
    for name, tensor in undisturbed.get("weights", {}).items():
        assert torch.equal(tensor, resumed["weights"][name])
    other = train(Context(tmp_path / "c"), **{**sizes, "seeds": [1]})
    table = next(iter(undisturbed))
    assert other[table]["value"].to_pylist() != undisturbed[table]["value"].to_pylist()


def test_a_checkpoint_of_another_recipe_is_refused(tmp_path: Path) -> None:
    events.fit_intensities(Context(tmp_path), **EVENTS)
    with pytest.raises(ResultError):
        events.fit_intensities(Context(tmp_path), **{**EVENTS, "learning_rate": 0.01})


class Failing:
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

    def numbers(self) -> dict[str, float]:
        return {}


@pytest.mark.parametrize("how", ["nan", "underflow in dt 1e-16", "non-finite values in state `y`: inf"])
def test_a_run_that_breaks_down_is_a_failed_one(how: str, tmp_path: Path) -> None:
    task = Failing(how)
    for _ in range(2):  # the second time from the checkpoint
        curves = fitting.fit(task, fitting.Recipe("x", 5, 0.1, "sgd", False, 1), tmp_path / "x.pt")
        assert curves.diverged and len(curves.rows) == 3 and np.isnan(curves.last("loss"))
        assert all(torch.isfinite(p).all() for p in task.model.parameters())


def test_other_assertions_are_not_swallowed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        fitting.fit(Failing("a fault"), fitting.Recipe("x", 5, 0.1, "sgd", False, 1), tmp_path / "x.pt")


def test_trained_weights_under_other_solvers(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    trained = classify.train_classifiers(Context(tmp_path), **CLASSIFY)
    save_file(trained["weights"], tmp_path / "weights.safetensors")
    context = Context(tmp_path, weights={"weights": [tmp_path / "weights.safetensors"]})
    sizes = {"side": 14, "channels": 2, "train_images": 100, "test_images": 40, "exact_images": 20, "error_images": 20}
    found = solvers.exchange_solvers(
        context, seeds=[0], tolerances=[0.01, 0.001, 1e-6], swap_tolerance=1e-6, tolerance=0.01, **sizes
    )
    errors = where(found["tolerances"], metric="state_error").sort_by("tolerance")["value"].to_pylist()
    assert errors[0] < errors[1] < errors[2]
    distances = where(found["exchanges"], metric="logit_distance")
    assert set(distances["solver"].to_pylist()) == {"dopri5", "dopri8", "bosh3", "scipy"}
    assert max(distances["value"].to_pylist()) < 1e-3
    # The tied net's own accuracy is that of Euler with unit steps.
    tied = where(found["exchanges"], arm="tied6", solver="euler-6")["value"].to_pylist()[0]
    error = where(trained["training"], arm="tied6", metric="test_error")["value"].to_pylist()[0]
    assert tied == pytest.approx(1 - error)


def test_arms_share_ends_and_field() -> None:
    made = {
        arm: nets.build(arm, channels=4, side=14, hidden=8, tolerance=0.01, seed=3)
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
        assert nets.stem(4, side)(torch.zeros(1, 1, side, side)).shape == (1, 4, 6, 6)
    with pytest.raises(ConfigError):
        nets.build("transformer", channels=4, side=14, hidden=8, tolerance=0.01, seed=0)


def test_identities_hold_and_say_when_they_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {(r["metric"], r["case"]): r["value"] for r in flow_identities.flow_rows(0)}
    assert rows["trace integral", "flow 0"] < 1e-5 and rows["determinants", "flow 0"] == 0
    assert rows["determinants of the long way", "flow 0"] > 0
    assert all(row["value"] < 1e-12 for row in identities.tied_is_euler(0))
    monkeypatch.setattr(flow_identities.PlanarField, "trace", lambda self, t, z: z[:, 0])
    wrong = {r["metric"]: r["value"] for r in flow_identities.flow_rows(0)}
    assert wrong["trace"] > 1e-3


@pytest.mark.parametrize("name", ["crescents", "wave"])
def test_normalizers(name: str) -> None:
    assert log_normalizer(name, 600) == pytest.approx(log_normalizer(name, 300), abs=1e-6)
    points, area = square(400, 9.0)
    wide = float(log_target(name, points).exp().sum()) * area
    assert np.log(wide) == pytest.approx(log_normalizer(name), abs=1e-5)


def test_divergence_of_the_target_from_itself_is_zero() -> None:
    """A flow that is the standard normal has the divergence that quadrature gives."""
    model = density.make("cnf", 2, 0, 1.0, 1.0, 1e-5)
    with torch.no_grad():
        model.field.u.zero_()
        found = float(density.divergence(model, "crescents", 20_000, 1)) + log_normalizer("crescents")
    points, area = square(400)
    log_q = -0.5 * points.square().sum(1) - np.log(2 * np.pi)
    exact = float((log_q.exp() * (log_q - log_target("crescents", points))).sum()) * area + log_normalizer("crescents")
    assert found == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("name", ["circles", "moons"])
def test_point_sets_are_drawn_anew(name: str) -> None:
    one, again, other = (points_of(name, 200, 0, step) for step in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other) and float(one.abs().max()) < 3


def test_spirals_are_irregular_held_out_and_the_same_at_every_size() -> None:
    few, many = (spirals(20, n, 3.77, 0.1, 0, "train") for n in (10, 50))
    assert torch.equal(few.truth, many.truth)
    test = spirals(20, 10, 3.77, 0.1, 0, "test")
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
    data = spirals(6, 30, 3.77, 0.0, 0, "test")
    exact = stage.between(data.truth[:, :GRID], data)
    assert exact["between"] == 0 and 0 < exact["between_linear"] < 0.05
    place = int(data.index[0, 0]) - 1
    outside = data.truth[:, :GRID].clone()
    outside[0, : place + 1] += 5
    assert stage.between(outside, data)["between"] == 0


def test_events_follow_their_rate() -> None:
    rate, times = events.draw(0, 20_000, 5, 10.0)
    assert len(times) == pytest.approx(20_000, rel=0.05) and bool((times.diff() >= 0).all())
    counts, edges = np.histogram(times.numpy(), bins=40, range=(0, 10))
    expected = 5 * rate(0.5 * (edges[1:] + edges[:-1])) * 0.25
    assert np.corrcoef(counts, expected)[0, 1] > 0.99
    assert events.true_log_likelihood(rate, times, 5) > events.constant_log_likelihood(times, 5, 10.0)


def test_fixed_solver_of_a_trained_net_is_no_part_of_its_weights() -> None:
    net = nets.build("odenet", channels=2, side=14, hidden=8, tolerance=0.01, seed=0)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    net.body.solver = Solver("rk4", steps=4)
    assert before.keys() == net.state_dict().keys()

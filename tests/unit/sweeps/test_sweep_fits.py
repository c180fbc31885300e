"""Fits against SciPy, the noise scale against known covariance, the edge check, the search."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.optimize import curve_fit
from torch import nn

from restudy.errors import ConfigError
from restudy.methods.sweeps import (
    bootstrap_scaling,
    edge_of,
    fit_scaling,
    local_slopes,
    log_slope,
    noise_scale,
    outer_advantage,
)
from restudy.methods.sweeps.gradients import squared_norms
from restudy.methods.sweeps.search import Range, sobol

SIZES = np.array([4.0, 16, 64, 256, 1024, 4096])


def test_fit_recovers_an_exact_curve() -> None:
    fit = fit_scaling(SIZES, 80 * (1 + 150 / SIZES))
    assert (fit.s_min, fit.b_crit) == (pytest.approx(80, rel=1e-6), pytest.approx(150, rel=1e-6))
    assert fit.steps(150) == pytest.approx(160)


def test_fit_agrees_with_scipy_on_noisy_curves() -> None:
    generator = np.random.default_rng(0)
    for _ in range(5):
        steps = 60 * (1 + 200 / SIZES) * np.exp(generator.normal(0, 0.15, len(SIZES)))
        ours = fit_scaling(SIZES, steps)
        (low, bend), _ = curve_fit(lambda b, s, c: s + np.log1p(np.exp(c) / b), SIZES, np.log(steps), p0=(4, 5))
        assert (ours.s_min, ours.b_crit) == (
            pytest.approx(math.exp(low), rel=1e-4),
            pytest.approx(math.exp(bend), rel=1e-4),
        )


def test_fit_leaves_out_what_was_not_reached_and_needs_three_points() -> None:
    steps = 80 * (1 + 150 / SIZES)
    steps[4] = np.nan
    assert fit_scaling(SIZES, steps).b_crit == pytest.approx(150, rel=1e-6)
    assert math.isnan(fit_scaling(SIZES[:2], steps[:2]).b_crit)
    with pytest.raises(ConfigError):
        fit_scaling(SIZES, steps[:3])


def test_a_curve_without_a_bend_ends_far_outside_the_grid() -> None:
    assert fit_scaling(SIZES, 4000 / SIZES).b_crit > 100 * SIZES[-1]
    assert fit_scaling(SIZES, np.full(6, 50.0)).b_crit < SIZES[0] / 100


def test_bootstrap_interval_holds_the_fit_and_shrinks_to_it_when_all_trials_agree() -> None:
    generator = np.random.default_rng(1)

    def trials(spread: float) -> pa.Table:
        rows = [
            {"batch_size": int(b), "trial_id": i, "status": "complete"}
            | {"steps": 80 * (1 + 150 / b) * float(np.exp(abs(generator.normal(0, spread))))}
            for b in SIZES
            for i in range(16)
        ]
        return pa.Table.from_pylist(rows)

    wide = bootstrap_scaling(trials(0.5), draws=50)
    assert wide.b_crit[0] <= wide.fit.b_crit * 1.05 and wide.b_crit[1] >= wide.fit.b_crit * 0.95 and wide.draws == 50
    exact = bootstrap_scaling(trials(0.0), draws=20)
    assert exact.b_crit == (pytest.approx(150, rel=1e-5), pytest.approx(150, rel=1e-5))


def test_slopes() -> None:
    assert log_slope(SIZES, 4000 / SIZES) == pytest.approx(-1)
    assert local_slopes(SIZES, 80 * (1 + 150 / SIZES))[-1] > -0.1
    assert math.isnan(log_slope([4, 16], [3.0, math.nan]))


def test_noise_scale_is_unbiased_where_the_covariance_is_known() -> None:
    """Least squares on y = x.w + noise at a fixed w: gradients x (x.w - y); moments by enumeration of the data set."""
    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(64, 3, generator=generator), torch.randint(2, (64,), generator=generator)
    model = nn.Linear(3, 2).double()
    own = {n: p.detach() for n, p in model.named_parameters()}
    inputs = inputs.double()
    each = []
    for x, y in zip(inputs, labels, strict=True):
        loss = nn.functional.cross_entropy(model(x[None]), y[None])
        each.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))]))
    gradients = torch.stack(each)
    squared, trace = float(gradients.mean(0).pow(2).sum()), float(gradients.var(0, unbiased=False).sum())
    pairs = []
    for _ in range(600):
        drawn = torch.randint(64, (32,), generator=generator)
        pairs.append(squared_norms(model, own, inputs[drawn], labels[drawn], pieces=8))
    found = [noise_scale([a], [b], small_batch=4, big_batch=32) for a, b in pairs]
    for values, truth in (([f.squared_gradient for f in found], squared), ([f.trace for f in found], trace)):
        error = np.std(values, ddof=1) / math.sqrt(len(values))
        assert abs(np.mean(values) - truth) < 4 * error
        assert error < 0.1 * truth
    whole = noise_scale([a for a, _ in pairs], [b for _, b in pairs], small_batch=4, big_batch=32)
    assert whole.simple == pytest.approx(trace / squared, rel=0.15)


def test_squared_norms_are_those_of_autograd() -> None:
    torch.manual_seed(0)
    model, x, y = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), torch.randn(12, 5), torch.arange(12) % 3
    own = {n: p.detach() for n, p in model.named_parameters()}

    def norm(part: slice) -> float:
        loss = nn.functional.cross_entropy(model(x[part]), y[part])
        return sum(float(g.pow(2).sum()) for g in torch.autograd.grad(loss, list(model.parameters())))

    small, big = squared_norms(model, own, x, y, pieces=3)
    assert small == pytest.approx(np.mean([norm(slice(i, i + 4)) for i in (0, 4, 8)]), rel=1e-4)
    assert big == pytest.approx(norm(slice(0, 12)), rel=1e-4)
    with pytest.raises(ConfigError):
        squared_norms(model, own, x, y, pieces=5)


def test_noise_scale_refuses_pairs_that_are_none() -> None:
    for small, big, sizes in (([], [], (1, 2)), ([1.0], [1.0, 2.0], (1, 2)), ([1.0], [1.0], (2, 2))):
        with pytest.raises(ConfigError):
            noise_scale(small, big, small_batch=sizes[0], big_batch=sizes[1])
    assert math.isnan(noise_scale([4.0], [1.0], small_batch=1, big_batch=2).simple)


def test_edge_check() -> None:
    values = np.geomspace(1, 1000, 16)
    feasible = np.ones(16, dtype=bool)

    def inside(best: int, lost: tuple[int, ...] = ()) -> bool:
        steps, fine = np.full(16, 50.0), feasible.copy()
        steps[best], fine[list(lost)] = 10, False
        return edge_of(values, steps, fine, 1, 1000).inside

    assert inside(8) and not inside(0) and not inside(15)
    assert not edge_of(values, np.full(16, np.nan), feasible, 1, 1000).inside
    steps = np.full(16, 50.0)
    steps[14] = 10
    near = edge_of(values, steps, feasible, 1, values[14] * 1.01)
    assert not near.inside
    lost = feasible.copy()
    lost[15] = False
    assert edge_of(values, steps, lost, 1, values[14] * 1.01).inside, "divergence above it is a limit of its own"


def test_outer_advantage() -> None:
    values = np.array([1.0, 10.0, 100.0])
    assert outer_advantage(values, np.array([5.0, 10.0, 20.0]), 1, 100) == 0.5
    assert outer_advantage(values, np.array([np.nan, 10.0, np.nan]), 1, 100) == 1.0
    assert outer_advantage(values, np.array([5.0, np.nan, 9.0]), 1, 100) == 0.0


def test_sobol_points_are_stratified_repeat_and_differ_by_seed() -> None:
    box = {"rate": Range(0.001, 10), "momentum": Range(0, 1, "linear")}
    one, two, other = sobol(box, 16, 3), sobol(box, 16, 3), sobol(box, 16, 4)
    assert all((one[n] == two[n]).all() for n in box) and (one["rate"] != other["rate"]).any()
    shares = np.log(one["rate"] / 0.001) / math.log(1e4)
    assert sorted((shares * 16).astype(int)) == list(range(16))
    assert sorted((one["momentum"] * 16).astype(int)) == list(range(16))
    for wrong in ({"rate": Range(0, 1)}, {"rate": Range(2, 1)}, {}):
        with pytest.raises(ConfigError):
            sobol(wrong, 4, 0)

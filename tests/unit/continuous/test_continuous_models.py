"""Flows, latent ODEs, forecasters and point processes against oracles and properties."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from restudy.methods.continuous import (
    ContinuousFlow,
    LatentOde,
    PlanarField,
    PlanarFlow,
    PoissonProcess,
    Recurrent,
    Solver,
    autograd_trace,
    benchmark,
    log_abs_det,
)
from restudy.methods.continuous.flow import normal_log_density
from restudy.methods.continuous.jacobian import full_jacobian
from restudy.methods.continuous.planar import StablePlanarFlow


def flow(seed: int = 0, width: int = 6, tolerance: float = 1e-9) -> ContinuousFlow:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        field = PlanarField(2, width).double()
        with torch.no_grad():
            field.u.mul_(4)
    return ContinuousFlow(field, Solver(tolerance=tolerance))


def points(count: int, seed: int = 0, dimensions: int = 2) -> torch.Tensor:
    return torch.randn(count, dimensions, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_jacobian_of_a_linear_map() -> None:
    matrix = torch.tensor([[2.0, 1.0], [0.0, -3.0]], dtype=torch.float64)
    z = points(5)
    assert torch.equal(full_jacobian(lambda x: x @ matrix.T, z), matrix.expand(5, 2, 2))
    assert torch.allclose(log_abs_det(lambda x: x @ matrix.T, z), torch.full((5,), math.log(6), dtype=z.dtype))
    assert torch.allclose(autograd_trace(lambda x: x @ matrix.T, z), torch.full((5,), -1.0, dtype=z.dtype))


@settings(max_examples=20, deadline=None)
@given(dimensions=st.integers(1, 6), width=st.integers(1, 9), seed=st.integers(0, 10**6), t=st.floats(-2, 2))
def test_closed_form_trace(dimensions: int, width: int, seed: int, t: float) -> None:
    torch.manual_seed(seed)
    field = PlanarField(dimensions, width).double()
    z, at = points(4, seed, dimensions), torch.tensor(t, dtype=torch.float64)
    by_autograd = autograd_trace(lambda x: field(at, x), z)
    assert float((field.trace(at, z) - by_autograd).detach().abs().max()) < 1e-10


def test_log_density_of_a_flow() -> None:
    model, z = flow(), points(16)
    x, log_q = model.push(z)
    by_det = normal_log_density(z, 1.0) - log_abs_det(lambda p: model.push(p)[0], z)
    assert float((log_q - by_det).detach().abs().max()) < 1e-5
    assert float((model.log_prob(x) - log_q).detach().abs().max()) < 1e-5
    assert float((model.invert(x) - z).detach().abs().max()) < 1e-6
    assert float((x - z).detach().norm(dim=1).mean()) > 0.1


def test_density_integrates_to_one() -> None:
    line = (torch.arange(120, dtype=torch.float64) + 0.5) / 6 - 10
    grid = torch.cartesian_prod(line, line)
    with torch.no_grad():
        mass = float(flow(tolerance=1e-5).log_prob(grid).exp().sum()) / 36
    assert mass == pytest.approx(1, abs=1e-3)


def test_samples_follow_the_generator() -> None:
    model = flow(tolerance=1e-5)
    with torch.no_grad():
        one, other = (model.sample(20, torch.Generator().manual_seed(s))[0] for s in (1, 1))
        third = model.sample(20, torch.Generator().manual_seed(2))[0]
    assert torch.equal(one, other) and not torch.equal(one, third)


@settings(max_examples=20, deadline=None)
@given(layers=st.integers(1, 6), seed=st.integers(0, 10**6), scale=st.sampled_from([0.3, 1.0, 3.0]))
def test_planar_flow_density_and_invertibility(layers: int, seed: int, scale: float) -> None:
    torch.manual_seed(seed)
    model = PlanarFlow(2, layers).double()
    with torch.no_grad():
        model.u.mul_(10 * scale)
    z = points(8, seed)
    _, log_q = model.push(z)
    by_det = normal_log_density(z, 1.0) - log_abs_det(lambda p: model.push(p)[0], z)
    assert torch.allclose(log_q.detach(), by_det, atol=1e-8)
    assert bool(((model.bent() * model.w).sum(1) > -1 - 1e-9).all()), "up to rounding, where the product is bent to -1"


def test_stable_planar_flow_is_the_planar_flow_and_survives_rounding() -> None:
    torch.manual_seed(0)
    plain = PlanarFlow(2, 5).double()
    stable = StablePlanarFlow(2, 5).double()
    stable.load_state_dict(plain.state_dict())
    z = points(50)
    for one, other in zip(plain.push(z), stable.push(z), strict=True):
        assert torch.allclose(one, other, atol=1e-12)
    # w . u close to -1: float32 rounds the determinant to 0 or below.
    found = []
    for kind in (PlanarFlow, StablePlanarFlow):
        model = kind(2, 1)
        with torch.no_grad():
            model.w.copy_(torch.tensor([[31.7, -12.3]]))
            model.u.copy_(-0.75 * model.w / model.w.square().sum() * 31.3)
            model.b.zero_()
        found.append(bool(torch.isfinite(model.push(torch.zeros(3, 2))[1]).all()))
    assert found == [False, True]


def latent(adjoint: bool = False) -> LatentOde:
    torch.manual_seed(0)
    return LatentOde(2, 3, 8, 6, kind="gru", spread=0.1, solver=Solver(tolerance=1e-8, adjoint=adjoint)).double()


def observations(n: int = 7) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    grid = torch.linspace(0, 2, 20, dtype=torch.float64)
    index = torch.stack([torch.randperm(20, generator=generator)[:n].sort().values for _ in range(5)])
    return torch.randn(5, n, 2, dtype=torch.float64, generator=generator), index, grid


def test_elbo_by_hand() -> None:
    model, (values, index, grid) = latent(), observations()
    noise = torch.zeros(5, 3, dtype=torch.float64)
    mean, log_variance = model.encode(values, grid[index])
    total = 0.0
    for b in range(5):
        path = model.trajectory(mean[b : b + 1], grid)[:, 0]
        normal = torch.distributions.Normal(model.decoder(path[index[b]]), 0.1)
        posterior = torch.distributions.Normal(mean[b], (0.5 * log_variance[b]).exp())
        divergence = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0))
        total += float(divergence.sum() - normal.log_prob(values[b]).sum())
    # The batch shares its step sizes, so the paths agree to the tolerance only.
    assert float(model.loss(values, index, grid, noise)) == pytest.approx(total / (5 * values[0].numel()), rel=1e-4)


def test_adjoint_and_backpropagation_train_alike() -> None:
    values, index, grid = observations()
    noise = torch.zeros(5, 3, dtype=torch.float64)
    found = []
    for adjoint in (False, True):
        model = latent(adjoint)
        model.loss(values, index, grid, noise).backward()
        found.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-4


def test_encoder_sees_the_times() -> None:
    model, (values, index, grid) = latent(), observations()
    later = grid[index] + torch.rand(5, 1, dtype=torch.float64)
    assert not torch.allclose(model.encode(values, grid[index])[0], model.encode(values, later)[0])


@pytest.mark.parametrize(("kind", "gaps"), [("rnn", False), ("rnn", True), ("gru", True)])
def test_forecast_is_the_loop_written_out(kind: str, gaps: bool) -> None:
    torch.manual_seed(0)
    model = Recurrent(2, 5, kind=kind, gaps=gaps, spread=0.1).double()
    values, index, grid = observations()
    seen, future = grid[index], 2.0 + torch.arange(1, 4, dtype=torch.float64).expand(5, 3) * 0.3
    found = model.forecast(values, seen, future)
    read, at = values, torch.cat([seen, future], 1)
    for place in range(3):
        upto = read.shape[1]
        inputs = torch.cat([read, at.diff(dim=1)[:, :upto, None]], 2) if gaps else read
        following = model.head(model.cell(inputs)[0][:, -1])
        assert torch.allclose(found[:, place], following)
        read = torch.cat([read, following[:, None]], 1)
    moved = model.forecast(values, seen, future + 0.5)
    assert torch.allclose(found, moved) is not gaps


def process() -> PoissonProcess:
    torch.manual_seed(1)
    return PoissonProcess(3, 8, end=4.0, solver=Solver(tolerance=1e-8)).double()


def test_poisson_likelihood_against_quadrature() -> None:
    events = torch.rand(20, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).sort().values * 4
    for sequences in (1, 3):
        found = float(process().log_likelihood(events, sequences))
        assert found == pytest.approx(process().log_likelihood_by_quadrature(events, sequences), abs=1e-4)


def test_poisson_likelihood_of_a_constant_intensity() -> None:
    model = process()
    with torch.no_grad():
        model.system.head.weight.zero_()
        model.system.head.bias.fill_(1.0)
    rate, events = math.log1p(math.e), torch.tensor([0.5, 1.0, 3.9], dtype=torch.float64)
    assert float(model.log_likelihood(events, 2)) == pytest.approx(3 * math.log(rate) - 2 * 4 * rate, abs=1e-6)


def test_benchmark_rows_say_what_the_adjoint_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(benchmark, "REPEATS", 1)
    monkeypatch.setattr(benchmark, "BATCH", 4)
    rows = {str(row["what"]): float(row["ratio"]) for row in benchmark.rows()}
    assert len(rows) == 3
    assert next(ratio for what, ratio in rows.items() if "bytes" in what) > 1

"""Solvers, gradients and memory against oracles: closed forms, SciPy, finite differences, hand counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from restudy.errors import ConfigError
from restudy.methods.continuous import (
    ConvField,
    MlpField,
    OdeBlock,
    PlainStack,
    ResidualStack,
    Solver,
    TiedStack,
    adjoint_gradients,
    backprop_gradients,
    relative_gap,
    saved_bytes,
    solve_with_scipy,
)
from restudy.methods.continuous.solve import ADAPTIVE, FIXED

HORIZON = 5.0


def field(seed: int = 0, timed: bool = False) -> MlpField:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return MlpField(4, (32,), timed=timed).double()


def start(seed: int = 0) -> torch.Tensor:
    return torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def times(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def loss(z: torch.Tensor) -> torch.Tensor:
    return z.square().sum()


class Decay(torch.nn.Module):
    """dz/dt = -k z: z(t) = z0 exp(-k t)."""

    def __init__(self, k: float) -> None:
        super().__init__()
        self.k = torch.nn.Parameter(torch.tensor(k, dtype=torch.float64))

    def forward(self, t: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        return -self.k * z


@pytest.mark.parametrize("method", ADAPTIVE)
def test_adaptive_methods_solve_decay(method: str) -> None:
    found = Solver(method, 1e-8)(Decay(0.7), start(), times(0.0, 1.0, 2.5))
    # Outputs lie inside a step and are interpolated; three methods' interpolants are of lower order than their steps.
    allowed = 1e-7 if method in ("dopri5", "adaptive_heun") else 3e-5
    for at, state in zip((1.0, 2.5), found[1:], strict=True):
        assert float((state - start() * math.exp(-0.7 * at)).detach().abs().max()) < allowed


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_fixed_methods_have_their_order(method: str, order: int) -> None:
    exact = start() * math.exp(-0.7)
    errors = [
        float((Solver(method, steps=n)(Decay(0.7), start(), times(0.0, 1.0))[-1] - exact).abs().max()) for n in (8, 16)
    ]
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.15)


@pytest.mark.parametrize("arguments", [{"method": "leapfrog"}, {"method": "euler"}, {"method": "dopri5", "steps": 4}])
def test_solvers_that_mean_nothing_are_refused(arguments: dict) -> None:
    with pytest.raises(ConfigError):
        Solver(**arguments)


def test_trajectories_are_scipys() -> None:
    at = times(0.0, 1.0, 3.0, 5.0)
    mine = Solver(tolerance=1e-9)(field(), start(), at)
    other = solve_with_scipy(field(), start(), at, 1e-10, "DOP853")
    assert mine.shape == other.shape and float((mine - other).abs().max()) < 1e-7
    # And without our wrapper.
    net = field()

    def flat(t: float, y: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return net(torch.tensor(t), torch.tensor(y).reshape(3, 4)).numpy().ravel()

    plain = integrate.solve_ivp(flat, (0, 5), start().numpy().ravel(), rtol=1e-10, atol=1e-10, method="DOP853").y[:, -1]
    assert np.abs(other[-1].numpy().ravel() - plain).max() < 1e-7


def test_gradients_of_decay_in_closed_form() -> None:
    decay, z0 = Decay(0.7), start()
    end = z0 * math.exp(-1.4)
    found = adjoint_gradients(decay, end, 0.0, 2.0, loss, Solver(tolerance=1e-10))
    assert torch.allclose(found.state, 2 * z0 * math.exp(-2.8), atol=1e-8)
    assert float(found.parameters[0]) == pytest.approx(float((-4 * end.square()).sum()), abs=1e-7)
    assert float(found.end) == pytest.approx(float((-1.4 * end.square()).sum()), abs=1e-8)
    assert float(found.start) == pytest.approx(-float(found.end), abs=1e-7)  # autonomous: only t1 - t0 matters


@pytest.mark.parametrize(("tolerance", "allowed"), [(1e-3, 5e-2), (1e-5, 5e-4), (1e-8, 5e-7), (1e-10, 1e-8)])
def test_adjoint_error_by_tolerance(tolerance: float, allowed: float) -> None:
    exact = backprop_gradients(field(), start(), 0.0, HORIZON, loss, Solver(tolerance=1e-13))
    library = backprop_gradients(field(), start(), 0.0, HORIZON, loss, Solver(tolerance=tolerance, adjoint=True))
    z1 = Solver(tolerance=tolerance)(field(), start(), times(0.0, HORIZON))[-1].detach()
    own = adjoint_gradients(field(), z1, 0.0, HORIZON, loss, Solver(tolerance=tolerance))
    assert relative_gap(library, exact) < allowed
    assert relative_gap(own, library) < 1e-6 * max(1.0, tolerance / 1e-9)


def test_gradient_of_the_start_has_a_minus_sign() -> None:
    net, solver, step = field(timed=True), Solver(tolerance=1e-11), 1e-4

    def value(t0: float) -> float:
        with torch.no_grad():
            return float(loss(solver(net, start(), times(t0, 1.7))[-1]))

    z1 = solver(net, start(), times(0.2, 1.7))[-1].detach()
    found = adjoint_gradients(net, z1, 0.2, 1.7, loss, solver)
    differences = (value(0.2 + step) - value(0.2 - step)) / (2 * step)
    assert float(found.start) == pytest.approx(differences, rel=1e-6)
    # Without the minus the integral would be added to +dL/dt1, which is another number.
    assert abs(float(found.start + 2 * found.end) - differences) > 1e-2


def test_adjoint_of_euler_is_not_the_gradient_of_the_map() -> None:
    gaps = []
    for method in FIXED:
        discrete = backprop_gradients(field(), start(), 0.0, HORIZON, loss, Solver(method, steps=10))
        found = backprop_gradients(field(), start(), 0.0, HORIZON, loss, Solver(method, steps=10, adjoint=True))
        gaps.append(relative_gap(found, discrete))
    assert gaps[0] > 1e-2 and gaps[0] > 10 * gaps[1] > 100 * gaps[2]


def test_saved_bytes_by_steps() -> None:
    net, z0 = field(), start().requires_grad_()

    def kept(steps: int, adjoint: bool, backward: bool) -> int:
        solver = Solver("rk4", steps=steps, adjoint=adjoint)
        return saved_bytes(lambda: loss(solver(net, z0, times(0.0, HORIZON))[-1]), backward)

    for backward in (False, True):
        adjoint = [kept(n, True, backward) for n in (8, 32, 128)]
        assert len(set(adjoint)) == 1
        through = [kept(n, False, backward) for n in (8, 32, 128)]
        slopes = np.diff(through) / np.diff([8, 32, 128])
        assert slopes[0] == pytest.approx(slopes[1], rel=0.01) and through[0] > 10 * adjoint[0]


def test_saved_bytes_by_hand() -> None:
    x = torch.ones(10, dtype=torch.float64, requires_grad=True)
    assert saved_bytes(lambda: x.exp().sum()) == 80  # exp keeps its output
    assert saved_bytes(lambda: (x * 2).sum()) == 0
    assert saved_bytes(lambda: x.detach().exp()) == 0


@settings(max_examples=15, deadline=None)
@given(blocks=st.integers(1, 7), channels=st.sampled_from([2, 4, 6]), seed=st.integers(0, 10**6))
def test_tied_blocks_are_euler_with_unit_steps(blocks: int, channels: int, seed: int) -> None:
    torch.manual_seed(seed)
    net = ConvField(channels).double()
    z = torch.randn(2, channels, 5, 5, dtype=torch.float64)
    stack = TiedStack(channels, blocks, net)
    block = OdeBlock(net, Solver("euler", steps=blocks), end=float(blocks))
    one, other = stack(z), block(z)
    assert float((one - other).abs().max()) <= 1e-12 * float(one.abs().max())
    assert block.evaluations.forward == blocks
    gradients = [torch.autograd.grad(loss(value), list(net.parameters())) for value in (one, other)]
    assert relative_gap(gradients[0], gradients[1]) < 1e-10


def test_other_steps_are_not_the_tied_stack() -> None:
    net = ConvField(4).double()
    z = torch.randn(2, 4, 5, 5, dtype=torch.float64)
    finer = OdeBlock(net, Solver("euler", steps=12), end=6.0)
    assert float((TiedStack(4, 6, net)(z) - finer(z)).abs().max()) > 1e-3


def test_evaluations_are_counted_in_both_passes() -> None:
    block = OdeBlock(ConvField(4), Solver("rk4", steps=3, adjoint=True))
    z = torch.randn(2, 4, 5, 5, requires_grad=True)
    block(z).sum().backward()
    assert block.evaluations.forward == 12 and block.evaluations.backward == 12
    block.solver = Solver("rk4", steps=3)
    block(z).sum().backward()
    assert block.evaluations.backward == 0


def test_a_looser_tolerance_never_needs_more_evaluations() -> None:
    block = OdeBlock(field(), Solver(), end=HORIZON)
    counts = []
    for tolerance in (1e-2, 1e-4, 1e-6, 1e-8):
        block.solver = Solver(tolerance=tolerance)
        block(start())
        counts.append(block.evaluations.forward)
    assert counts == sorted(counts) and counts[-1] >= 2 * counts[0]


def test_plain_and_residual_stacks_differ_by_the_skip() -> None:
    torch.manual_seed(0)
    plain = PlainStack(4, 1)
    residual = ResidualStack(4, 1)
    residual.load_state_dict(plain.state_dict())
    z = torch.randn(2, 4, 6, 6)
    assert torch.allclose(residual(z), z + plain(z))

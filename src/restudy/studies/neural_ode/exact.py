"""Stage `identities`: what must hold to rounding or to a solver's tolerance (O1, O2, O7, O9, O11, O14)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from restudy.bench.context import Context, Outputs
from restudy.methods.continuous import (
    ContinuousFlow,
    ConvField,
    MlpField,
    OdeBlock,
    PlanarField,
    PoissonProcess,
    Solver,
    TiedStack,
    adjoint_gradients,
    autograd_trace,
    backprop_gradients,
    log_abs_det,
    relative_gap,
    saved_bytes,
)
from restudy.methods.models import derive_seed

from .models import points_of, square

HORIZON = 5.0
TOLERANCES = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)
FIXED = (("euler", 10), ("midpoint", 10), ("rk4", 10))
STEPS = (8, 16, 32, 64, 128)
UNIT_STEPS = (1, 2, 6)
Row = dict[str, Any]


def identities(context: Context, *, problems: int, refinements: Sequence[int]) -> Outputs:
    """Everything in float64 on random fields; chance enters through the draws of the fields alone.

    Returns `identities` (claim, case, metric, value), `gradients` (relative error by method and tolerance), `memory`
    (bytes by method and steps) and `refinement` (distance of Euler's method to the solution by steps).
    """
    rows: dict[str, list[Row]] = {"identities": [], "gradients": [], "memory": [], "refinement": []}
    for problem in range(problems):
        generator = _seeded(problem)
        rows["gradients"] += gradient_errors(problem, generator)
        rows["identities"] += [*time_gradients(problem), *tied_is_euler(problem)]
        rows["refinement"] += euler_limit(problem, refinements)
        rows["identities"] += [*flow_rows(problem), *counted_events(problem)]
    rows["memory"] = list(bytes_by_steps())
    return {**rows}


def _seeded(problem: int, *names: str) -> torch.Generator:
    return torch.Generator().manual_seed(derive_seed(0, "identities", problem, *names))


def _field(problem: int, *, timed: bool) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "field", problem))
        return MlpField(4, (32,), timed=timed).double()


def _loss(z: Tensor) -> Tensor:
    return z.square().sum()


def gradient_errors(problem: int, generator: torch.Generator) -> Iterator[Row]:
    """O1: gradients on [0, 5] against backpropagation through dopri5 at 1e-13, for three ways of finding them.

    For the fixed methods: the adjoint's gradient against the gradient of the discrete map itself (tolerance 0).
    """
    field, z0 = _field(problem, timed=False), torch.randn(8, 4, dtype=torch.float64, generator=generator)
    exact = backprop_gradients(field, z0, 0.0, HORIZON, _loss, Solver(tolerance=1e-13))
    for tolerance in TOLERANCES:
        methods = {
            "backprop": Solver(tolerance=tolerance),
            "adjoint": Solver(tolerance=tolerance, adjoint=True),
            "seminorm": Solver(tolerance=tolerance, adjoint=True, seminorm=True),
        }
        for method, solver in methods.items():
            found = backprop_gradients(field, z0, 0.0, HORIZON, _loss, solver)
            yield {"problem": problem, "method": method, "tolerance": tolerance, "error": relative_gap(found, exact)}
        z1 = Solver(tolerance=tolerance)(field, z0, torch.tensor([0.0, HORIZON], dtype=torch.float64))[-1].detach()
        own = adjoint_gradients(field, z1, 0.0, HORIZON, _loss, Solver(tolerance=tolerance))
        yield {"problem": problem, "method": "equations", "tolerance": tolerance, "error": relative_gap(own, exact)}
    for method, steps in FIXED:
        discrete = backprop_gradients(field, z0, 0.0, HORIZON, _loss, Solver(method, steps=steps))
        found = backprop_gradients(field, z0, 0.0, HORIZON, _loss, Solver(method, steps=steps, adjoint=True))
        yield {"problem": problem, "method": method, "tolerance": 0.0, "error": relative_gap(found, discrete)}


def time_gradients(problem: int) -> Iterator[Row]:
    """Section 2's dL/dt1 and dL/dt0 against central differences, and dL/dt0 = -a(t0)^T f(z(t0), t0)."""
    field, start, end, step = _field(problem, timed=True), 0.2, 1.7, 1e-4
    z0 = torch.randn(3, 4, dtype=torch.float64, generator=_seeded(problem, "times"))
    solver = Solver(tolerance=1e-11)

    @torch.no_grad()
    def value(start: float, end: float) -> float:
        return float(_loss(solver(field, z0, torch.tensor([start, end], dtype=torch.float64))[-1]))

    with torch.no_grad():
        z1 = solver(field, z0, torch.tensor([start, end], dtype=torch.float64))[-1]
    found = adjoint_gradients(field, z1, start, end, _loss, solver)
    library = backprop_gradients(field, z0, start, end, _loss, Solver(tolerance=1e-11, adjoint=True))
    by_start = (value(start + step, end) - value(start - step, end)) / (2 * step)
    by_end = (value(start, end + step) - value(start, end - step)) / (2 * step)
    with torch.no_grad():
        here = torch.tensor(start, dtype=torch.float64)
        closed = -float((found.state * field(here, z0)).sum())
    pairs = {
        "dL/dt1 by differences": (float(found.end), by_end),
        "dL/dt0 by differences": (float(found.start), by_start),
        "dL/dt0 closed form": (float(found.start), closed),
        "dL/dt1 of the library": (float(library.end), by_end),
        "dL/dt0 of the library": (float(library.start), by_start),
    }
    for metric, (one, other) in pairs.items():
        yield _row("D1", f"field {problem}", metric, abs(one - other) / abs(other))


def bytes_by_steps() -> Iterator[Row]:
    """O2: bytes that rk4 with so many steps on [0, 5] keeps for the gradient, at the worst moment of both passes."""
    field, z0 = _field(0, timed=False), torch.randn(8, 4, dtype=torch.float64, generator=_seeded(0, "memory"))
    times = torch.tensor([0.0, HORIZON], dtype=torch.float64)
    for method, adjoint in (("adjoint", True), ("backprop", False)):
        for steps in STEPS:
            solver = Solver("rk4", steps=steps, adjoint=adjoint)

            def run(solver: Solver = solver) -> Tensor:
                return _loss(solver(field, z0.requires_grad_(), times)[-1])

            yield {"method": method, "steps": steps, "bytes": saved_bytes(run, backward=True)}


def tied_is_euler(problem: int) -> Iterator[Row]:
    """O11: n unit steps of Euler on [0, n] against n tied residual blocks: values and gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "tied", problem))
        field = ConvField(4).double()
    z0 = torch.randn(3, 4, 6, 6, dtype=torch.float64, generator=_seeded(problem, "tied"))
    for blocks in UNIT_STEPS:
        stack = TiedStack(4, blocks, field)
        block = OdeBlock(field, Solver("euler", steps=blocks), end=float(blocks))
        values, gradients = [], []
        for layer in (stack, block):
            leaf = z0.clone().requires_grad_()
            out = layer(leaf)
            values.append(out.detach())
            gradients.append(torch.autograd.grad(out.square().sum(), [leaf, *field.parameters()]))
        case = f"field {problem}, {blocks} blocks"
        size = float(values[0].abs().max())
        yield _row("O11", case, "value", float((values[0] - values[1]).abs().max()) / size)
        yield _row("O11", case, "gradient", relative_gap(gradients[1], gradients[0]))


def euler_limit(problem: int, refinements: Sequence[int]) -> Iterator[Row]:
    """O11: relative distance of n Euler steps on [0, 1] to the solution at tolerance 1e-10 (`refinement`)."""
    field = _field(problem, timed=True)
    z0 = torch.randn(8, 4, dtype=torch.float64, generator=_seeded(problem, "limit"))
    times = torch.tensor([0.0, 1.0], dtype=torch.float64)
    with torch.no_grad():
        exact = Solver(tolerance=1e-10)(field, z0, times)[-1]
        for steps in refinements:
            found = Solver("euler", steps=steps)(field, z0, times)[-1]
            distance = float((found - exact).norm() / exact.norm())
            yield {"problem": problem, "steps": steps, "distance": distance}


def _row(claim: str, case: str, metric: str, value: float) -> Row:
    assert math.isfinite(value), (claim, case, metric)
    return {"claim": claim, "case": case, "metric": metric, "value": value, "unit": "1"}


WIDTH = 8


class Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations that factorise a matrix or take its determinant, in the forward and the backward pass."""

    PREFIXES = ("det", "slogdet", "logdet", "linalg", "_linalg", "lu_", "cholesky", "inverse")

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Count by name and go on; `detach` is no determinant."""
        name = func.__name__.split(".")[0]
        self.found += int(name.startswith(self.PREFIXES) and name != "detach")
        return func(*args, **(kwargs or {}))


def determinants(run: Any) -> int:
    """How many determinants or factorisations `run()` and the backward pass of its result take."""
    with Watched() as watched:
        run().backward()
    return watched.found  # type: ignore[no-any-return]


def random_flow(problem: int, tolerance: float) -> ContinuousFlow:
    """A flow of random weights in float64, far enough from the identity to matter."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "flow", problem))
        field = PlanarField(2, WIDTH).double()
        with torch.no_grad():
            field.u.mul_(4)
    return ContinuousFlow(field, Solver(tolerance=tolerance))


def flow_rows(problem: int) -> Iterator[Row]:
    """O7: trace integral, mass and round trip; O14: the closed form, and what the training path evaluates."""
    flow = random_flow(problem, 1e-9)
    case = f"flow {problem}"
    generator = torch.Generator().manual_seed(derive_seed(0, "flow points", problem))
    z = torch.randn(32, 2, dtype=torch.float64, generator=generator)
    by_det = -log_abs_det(lambda points: flow.transport(points, 0.0, flow.end)[0], z)
    points, area = square(160, 10.0)
    with torch.no_grad():
        x, log_q = flow.push(z)
        yield _row("O7", case, "trace integral", float((flow.transport(z, 0.0, flow.end)[1] - by_det).abs().max()))
        yield _row("O7", case, "moved", float((x - z).norm(dim=1).mean()))
        back = flow.invert(x)
        yield _row("O7", case, "round trip", float((back - z).abs().max()))
        yield _row("O7", case, "both ways", float((flow.log_prob(x) - log_q).abs().max()))
        flow.solver = Solver(tolerance=1e-6)
        yield _row("O7", case, "mass", abs(float(flow.log_prob(points).exp().sum()) * area - 1))
    t = torch.tensor(0.3, dtype=torch.float64)
    by_autograd = autograd_trace(lambda points: flow.field(t, points), z)
    yield _row("O14", case, "trace", float((flow.field.trace(t, z).detach() - by_autograd).abs().max()))
    batch = points_of("circles", 16, problem).double()
    yield _row("O14", case, "determinants", determinants(lambda: -flow.log_prob(batch).mean()))
    long_way = determinants(lambda: log_abs_det(lambda p: p + flow.field(t, p), batch, differentiable=True).sum())
    yield _row("O14", case, "determinants of the long way", float(long_way))


def counted_events(problem: int) -> Iterator[Row]:
    """O9: the log-likelihood with its integral in the same solver, against SciPy's solution and quadrature, nats."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "process", problem))
        process = PoissonProcess(3, 16, end=6.0, solver=Solver(tolerance=1e-7)).double()
    generator = torch.Generator().manual_seed(derive_seed(0, "process events", problem))
    events = (torch.rand(30, dtype=torch.float64, generator=generator) * 6).sort().values
    with torch.no_grad():
        found = float(process.log_likelihood(events, 2))
    exact = process.log_likelihood_by_quadrature(events, 2)
    yield _row("O9", f"process {problem}", "quadrature", abs(found - exact))

"""Deviations of a random flow from its identities, and of a Poisson likelihood from quadrature (O7, O9, O14)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from restudy.methods.continuous import ContinuousFlow, PlanarField, PoissonProcess, Solver, autograd_trace, log_abs_det
from restudy.methods.models import derive_seed
from restudy.studies.neural_ode.targets import points_of, square

Row = dict[str, Any]
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


def _row(claim: str, case: str, metric: str, value: float) -> Row:
    return {"claim": claim, "case": case, "metric": metric, "value": float(value), "unit": "1"}

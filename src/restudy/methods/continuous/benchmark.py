"""What the adjoint costs and saves: training steps of a latent ODE against backpropagation through the solver."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from restudy.methods.continuous.latent import LatentOde
from restudy.methods.continuous.memory import saved_bytes
from restudy.methods.continuous.solve import Solver

BATCH, POINTS, OBSERVED, REPEATS = 100, 100, 30, 8


def problem() -> tuple[LatentOde, dict[str, torch.Tensor]]:
    """The authors' spiral model and a batch of random observations at 30 of 100 times, float32."""
    torch.manual_seed(0)
    model = LatentOde(2, 4, 20, 25, kind="gru", spread=0.3, solver=Solver(tolerance=1e-3))
    index = torch.stack([torch.randperm(POINTS)[:OBSERVED].sort().values for _ in range(BATCH)])
    inputs = {
        "values": torch.randn(BATCH, OBSERVED, 2),
        "index": index,
        "grid": torch.linspace(0, 3.77, POINTS),
        "noise": torch.randn(BATCH, 4),
    }
    return model, inputs


def cost(model: LatentOde, inputs: dict[str, torch.Tensor]) -> tuple[float, int]:
    """CPU milliseconds of a loss with its gradient, and the bytes that the solution keeps for the backward pass."""
    for _ in range(2):
        model.loss(**inputs).backward()  # type: ignore[no-untyped-call]
    start = time.process_time()
    for _ in range(REPEATS):
        model.loss(**inputs).backward()  # type: ignore[no-untyped-call]
    milliseconds = 1000 * (time.process_time() - start) / REPEATS
    z0 = inputs["noise"]
    return milliseconds, saved_bytes(lambda: model.trajectory(z0, inputs["grid"]).square().mean(), backward=True)


def rows() -> list[dict[str, object]]:
    """Rows for `make bench`: ratios above 1 say that the adjoint is slower, or that backpropagation keeps more."""
    model, inputs = problem()
    found = {}
    for name, adjoint, seminorm in (("backprop", False, False), ("adjoint", True, False), ("seminorm", True, True)):
        model.solver = replace(model.solver, adjoint=adjoint, seminorm=seminorm)
        found[name] = cost(model, inputs)
    note = f"batch {BATCH}, {OBSERVED} of {POINTS} times, dopri5 at 1e-3; CPU time of this process"
    out: list[dict[str, object]] = []
    for name, label in (("adjoint", "adjoint"), ("seminorm", "adjoint with seminorm")):
        ms, plain = found[name][0], found["backprop"][0]
        what = f"latent ODE training step: {label} over backpropagation through the solver"
        out.append({"what": what, "ratio": ms / plain, "aim": None, "note": f"{ms:.1f} against {plain:.1f} ms; {note}"})
    kept, freed = found["backprop"][1], found["adjoint"][1]
    what = "latent ODE: bytes saved for the backward pass, backpropagation over adjoint"
    out.append({"what": what, "ratio": kept / freed, "aim": None, "note": f"{kept:,} against {freed:,} bytes; {note}"})
    return out

"""Continuous and planar normalising flows on the plane (claim O7), and what a trace costs beside a determinant."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.continuous import ContinuousFlow, PlanarField, PlanarFlow, Solver, log_abs_det
from restudy.methods.continuous.planar import StablePlanarFlow
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory

from .experiment import Recipe, Row, Task, fit
from .models import log_normalizer, log_target, points_of, square

MEASURED = 5000
"""Draws that a divergence or a likelihood is measured with, the same for all arms of a seed."""
JACOBIANS = 64
Flow = ContinuousFlow | PlanarFlow


@dataclass
class Matching(Task):
    """KL(q || p) to an unnormalised p, by draws from q."""

    model: Flow
    target: str
    batch: int
    seed: int

    def loss(self, step: int) -> Tensor:
        """E_q[log q - log p~], nats."""
        return divergence(self.model, self.target, self.batch, derive_seed(self.seed, "base", step))


@dataclass
class Likelihood(Task):
    """Negative log-likelihood of a point set: carry the data back to the base."""

    model: ContinuousFlow
    target: str
    batch: int
    seed: int

    def loss(self, step: int) -> Tensor:
        """-E[log q(x)], nats."""
        device = self.model.field.u.device
        return -self.model.log_prob(points_of(self.target, self.batch, self.seed, step).to(device)).mean()


def divergence(model: Flow, target: str, count: int, seed: int) -> Tensor:
    """E_q[log q - log p~] over `count` draws, nats: KL(q || p) less log Z."""
    parameter = next(model.parameters())
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(count, 2, generator=generator).to(parameter) * model.scale
    x, log_q = model.push(z)
    return (log_q - log_target(target, x)).mean()


def density(
    context: Context,
    *,
    seeds: Sequence[int],
    potentials: Sequence[str],
    point_sets: Sequence[str],
    widths: Sequence[int],
    set_width: int,
    steps: int,
    long_steps: int,
    batch_size: int,
    cnf_rate: float,
    nf_rate: float,
    end: float,
    scale: float,
    tolerance: float,
    measured_tolerance: float,
    window: int,
    panel: int,
) -> Outputs:
    """Match potentials with arms `cnf`, `nf` (as many steps) and `nf_long`; fit point sets by likelihood with `cnf`.

    Returns `densities` (KL or negative log-likelihood; mass, round trip and Jacobian of the continuous flows),
    `density_curves` and `density_panels` (seed 0: densities on a square, -4 to 4 or -2 to 2, row by row from below).
    """
    keep_freed_memory()
    rows: dict[str, list[Row]] = {"densities": [], "density_curves": [], "density_panels": []}
    for seed in seeds:
        plans = [(t, w, a) for t in potentials for w in widths for a in ("cnf", "nf", "nf_long")]
        for target, width, arm in [*plans, *((t, set_width, "cnf") for t in point_sets)]:
            model = make(arm, width, seed, end, scale, tolerance).to(context.device)
            kind: Any = Matching if target in potentials else Likelihood
            task = kind(model, target, batch_size, seed)
            name = f"{target}-{arm}-{width}-s{seed}"
            count, rate = (long_steps if arm == "nf_long" else steps), (cnf_rate if arm == "cnf" else nf_rate)
            recipe = Recipe(name, count, rate, "adam", window)
            curves = fit(task, recipe, context.checkpoints, context.live(seed))
            model.cpu()
            here = {"seed": seed, "arm": arm, "target": target, "width": width}
            matching = target in potentials
            shift, metric = (log_normalizer(target), "kl") if matching else (0.0, "nll")
            for row in curves.told(loss="nats"):
                rows["density_curves"].append(here | row | {"metric": metric, "value": row["value"] + shift})
            with torch.no_grad():
                if isinstance(model, ContinuousFlow):
                    model.solver = Solver(tolerance=measured_tolerance)
                rows["densities"] += [here | row for row in curves.judged(measured(model, target, seed, matching))]
                if seed == 0 and panel:
                    rows["density_panels"].append(here | shown(model, target, panel))
    return {**rows}


def make(arm: str, width: int, seed: int, end: float, scale: float, tolerance: float) -> Flow:
    """The flow of an arm, its weights drawn for the seed; `nf` and `nf_long` start from the same ones."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "flow", width))
        if arm == "cnf":
            return ContinuousFlow(PlanarField(2, width), Solver(tolerance=tolerance), end=end, scale=scale)
        return StablePlanarFlow(2, width, scale=scale)


def measured(model: Flow, target: str, seed: int, matching: bool) -> list[Row]:
    """KL or negative log-likelihood on fresh draws; of a continuous flow also what a density must fulfil."""
    model.double()
    if matching:
        value = divergence(model, target, MEASURED, derive_seed(seed, "measured")) + log_normalizer(target)
        rows = [{"metric": "kl", "value": float(value), "unit": "nats"}]
    else:
        assert isinstance(model, ContinuousFlow)
        fresh = points_of(target, MEASURED, seed, "measured").double()
        rows = [{"metric": "nll", "value": -float(model.log_prob(fresh).mean()), "unit": "nats"}]
    if isinstance(model, ContinuousFlow):
        rows += [{"metric": m, "value": v, "unit": "1"} for m, v in exactness(model, seed).items()]
    return rows


def exactness(model: ContinuousFlow, seed: int, half: float = 12.0, side: int = 240) -> dict[str, float]:
    """How far a continuous flow is from being a density: mass on a square minus 1, round trip, trace against det."""
    points, area = square(side, half)
    mass = float(model.log_prob(points).exp().sum()) * area
    x, log_q = model.sample(500, torch.Generator().manual_seed(derive_seed(seed, "round trip")))
    z = model.invert(x)
    trip = float((model.push(z)[0] - x).abs().max())
    few = z[:JACOBIANS]
    with torch.enable_grad():
        change = -log_abs_det(lambda points: model.transport(points, 0.0, model.end)[0], few)
    gap = (model.transport(few, 0.0, model.end)[1] - change).abs().max()
    return {"mass_error": abs(mass - 1), "round_trip": trip, "jacobian_gap": float(gap)}


def shown(model: Flow, target: str, side: int) -> Row:
    """Values for a picture: the continuous flow's density by inversion, the planar flow's by counting samples."""
    half = 4.0 if target in ("crescents", "wave") else 2.0
    points, area = square(side, half)
    if isinstance(model, ContinuousFlow):
        values = model.log_prob(points).exp()
    else:
        generator = torch.Generator().manual_seed(0)
        x = model.push(torch.randn(200_000, 2, generator=generator, dtype=torch.float64) * model.scale)[0]
        cell = ((x + half) * (side / (2 * half))).floor().long()
        inside = ((cell >= 0) & (cell < side)).all(1)
        counts = torch.bincount(cell[inside, 1] * side + cell[inside, 0], minlength=side * side)
        values = counts.double() / (len(x) * area)
    return {"side": side, "values": values.float().tolist()}


def costs(
    context: Context, *, seeds: Sequence[int], dimensions: Sequence[int], width: int, batch: int, repeats: int
) -> Outputs:
    """Time both ways of a change of variables for one field evaluation, float32; the least of `repeats` counts.

    Returns the volatile `trace_timings`: `trace`, the closed form of the planar field; `determinant`, log |det| of
    the full Jacobian of one step z + f(0, z).
    """
    rows = []
    for seed in seeds:
        for size in dimensions:
            torch.manual_seed(derive_seed(seed, "costs", size))
            field, z, t = PlanarField(size, width), torch.randn(batch, size), torch.zeros(())

            def trace(field: PlanarField = field, z: torch.Tensor = z, t: torch.Tensor = t) -> object:
                with torch.no_grad():
                    return field.trace(t, z)

            def determinant(field: PlanarField = field, z: torch.Tensor = z, t: torch.Tensor = t) -> object:
                return log_abs_det(lambda points: points + field(t, points), z)

            for method, run, count in (("trace", trace, 20), ("determinant", determinant, 1)):
                seconds = least(run, repeats, count)
                rows.append({"seed": seed, "method": method, "dimensions": size, "seconds": seconds})
    return {"trace_timings": rows}


def least(run: Callable[[], object], repeats: int, count: int) -> float:
    """CPU seconds of a call: the least of `repeats` means over `count` calls."""
    run()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        for _ in range(count):
            run()
        found.append((time.process_time() - start) / count)
    return min(found)

"""Stage `solvers`: a trained ODE-Net under other tolerances and solvers than it was trained with (O3, O5, O12)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.methods.continuous import OdeBlock, Solver, TiedStack, solve_with_scipy
from restudy.methods.training import keep_freed_memory
from restudy.studies.neural_ode.classify import Images, load
from restudy.studies.neural_ode.nets import BLOCKS, Classifier, build
from restudy.studies.neural_ode.tidy import table

REFERENCE = 1e-9
BATCH = 250
"""Fixed, since the tolerance applies to the whole batch's norm, so the number of evaluations depends on its size."""
RK4_STEPS = 8
FLOAT32 = 1e-4
"""Accuracies in float32 are measured down to this tolerance; rounding rules below."""
Row = dict[str, Any]


def exchange_solvers(
    context: Context,
    *,
    seeds: Sequence[int],
    side: int,
    channels: int,
    train_images: int,
    test_images: int,
    exact_images: int,
    error_images: int,
    tolerances: Sequence[float],
    swap_tolerance: float,
    tolerance: float,
) -> Outputs:
    """Solve the trained fields anew, in float64 on the first test images and in float32 on all `test_images`.

    Returns `tolerances` (error of the state against tolerance 1e-9 on `error_images`, evaluations, accuracies),
    `exchanges` (logits and accuracies under other solvers on `exact_images`, backward evaluations by norm) and the
    volatile `solver_timings`.
    """
    keep_freed_memory()
    weights = context.tensors("weights")
    rows: dict[str, list[Row]] = {"tolerances": [], "exchanges": [], "solver_timings": []}
    for seed in seeds:
        images = load(seed, train_images, test_images, side)

        def trained(arm: str, seed: int = seed) -> Classifier:
            model = build(arm, channels=channels, side=side, hidden=1, tolerance=tolerance, seed=seed)
            prefix = f"s{seed}/{arm}/"
            model.load_state_dict({n.removeprefix(prefix): t for n, t in weights.items() if n.startswith(prefix)})
            assert isinstance(model, Classifier)
            return model.eval()

        found, timed = by_tolerance(trained("odenet"), images, error_images, tolerances)
        rows["tolerances"] += [{"seed": seed} | row for row in found]
        rows["solver_timings"] += [{"seed": seed} | row for row in timed]
        odenet, tied = {"seed": seed, "arm": "odenet"}, {"seed": seed, "arm": "tied6"}
        rows["exchanges"] += [
            odenet | row for row in by_solver(trained("odenet"), images, exact_images, swap_tolerance)
        ]
        rows["exchanges"] += [odenet | row for row in refined(trained("odenet"), images)]
        rows["exchanges"] += [tied | row for row in refined(trained("tied6"), images)]
        rows["exchanges"] += [odenet | row for row in backward_norms(trained("rknet"), images, tolerance)]
    return {name: table(name, found) for name, found in rows.items()}


def _row(metric: str, value: float | Tensor, unit: str = "1") -> Row:
    return {"metric": metric, "value": float(value), "unit": unit}


@torch.no_grad()
def by_tolerance(
    model: Classifier, images: Images, error_images: int, tolerances: Sequence[float]
) -> tuple[list[Row], list[Row]]:
    """Relative error of z(1), evaluations and CPU seconds a batch in float64, accuracy in float32, by tolerance."""
    block = _block(model)
    rows: list[Row] = []
    timed: list[Row] = []
    accurate: dict[float, float] = {}
    for tolerance in [t for t in tolerances if t >= FLOAT32]:
        block.solver = Solver(tolerance=tolerance)
        accurate[tolerance] = _accuracy(model, images)
    model.double()
    double = images.test_inputs[:error_images].double()
    hidden = [model.stem(part) for part in double.split(BATCH)]  # type: ignore[no-untyped-call]
    block.solver = Solver(tolerance=REFERENCE)
    reference = torch.cat([block(part) for part in hidden])
    for tolerance in tolerances:
        block.solver = Solver(tolerance=tolerance)
        counts, found = [], []
        start = time.process_time()
        for part in hidden:
            found.append(block(part))
            counts.append(block.evaluations.forward)
        timed.append({"tolerance": tolerance, "seconds": (time.process_time() - start) / len(hidden)})
        state = torch.cat(found)
        numbers = [
            _row("state_error", (state - reference).norm() / reference.norm()),
            _row("evaluations", sum(counts) / len(counts), "evaluations"),
        ]
        numbers += [_row("accuracy", accurate[tolerance])] if tolerance in accurate else []
        rows += [{"tolerance": tolerance} | row for row in numbers]
    return rows, timed


@torch.no_grad()
def by_solver(model: Classifier, images: Images, exact_images: int, tolerance: float) -> Iterator[Row]:
    """Largest distance of logits to dopri5's, and accuracy, with every solver at one tolerance; float64."""
    model.double()
    block = _block(model)
    labels = images.test_labels[:exact_images]
    parts = images.test_inputs[:exact_images].double().split(BATCH)  # type: ignore[no-untyped-call]
    hidden = [model.stem(part) for part in parts]
    times = torch.tensor([block.start, block.end], dtype=torch.float64)
    logits: dict[str, Tensor] = {}
    for method in ("dopri5", "dopri8", "bosh3"):
        block.solver = Solver(method, tolerance)
        logits[method] = model.head(torch.cat([block(part) for part in hidden]))
    field = block.counted.field
    solved = [solve_with_scipy(field, part, times, tolerance)[-1] for part in hidden]
    logits["scipy"] = model.head(torch.cat(solved))
    for method, found in logits.items():
        yield {"solver": method} | _row("logit_distance", (found - logits["dopri5"]).abs().max())
        yield {"solver": method} | _row("exact_accuracy", (found.argmax(1) == labels).double().mean())


@torch.no_grad()
def refined(model: Classifier, images: Images) -> Iterator[Row]:
    """Accuracy with a fixed step and its half: rk4 for the ODE-Net, Euler for the tied residual net."""
    if isinstance(model.body, TiedStack):
        method, steps = "euler", BLOCKS
        model.body = OdeBlock(model.body.field, Solver("euler", steps=BLOCKS), end=float(BLOCKS))
    else:
        method, steps = "rk4", RK4_STEPS
    block = _block(model)
    for factor in (1, 2):
        block.solver = Solver(method, steps=factor * steps)
        yield {"solver": f"{method}-{factor * steps}"} | _row("accuracy", _accuracy(model, images))


def backward_norms(model: Classifier, images: Images, tolerance: float) -> Iterator[Row]:
    """Backward over forward evaluations of one batch, in both norms of the backward solve.

    `model`: trained through the solver, so that neither norm shaped the weights.
    """
    block = _block(model)
    inputs, labels = images.inputs[:BATCH], images.labels[:BATCH]
    for name, seminorm in (("norm", False), ("seminorm", True)):
        block.solver = replace(Solver(tolerance=tolerance, adjoint=True), seminorm=seminorm)
        F.cross_entropy(model(inputs), labels).backward()  # type: ignore[no-untyped-call]
        counts = block.evaluations
        yield {"solver": name} | _row("backward_ratio", counts.backward / counts.forward)


def _accuracy(model: Classifier, images: Images) -> float:
    parts = zip(images.test_inputs.split(BATCH), images.test_labels.split(BATCH), strict=True)  # type: ignore[no-untyped-call]
    return sum(int((model(part).argmax(1) == labels).sum()) for part, labels in parts) / len(images.test_labels)


def _block(model: Classifier) -> OdeBlock:
    assert isinstance(model.body, OdeBlock)
    return model.body

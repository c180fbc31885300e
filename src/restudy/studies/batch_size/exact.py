"""Stage `check`: steps to a result, update rules and noise scale against plain readings of their definitions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import nn

from restudy.bench.context import Context, Outputs
from restudy.methods.models import derive_seed
from restudy.methods.sweeps import apply_example_budget, apply_step_budget, best_errors, noise_scale, steps_to_result
from restudy.methods.sweeps.programs import RULES, Rule, build
from restudy.methods.sweeps.trainer import METRICS

STATUSES = ("complete", "complete", "complete", "infeasible", "incomplete")
SEED = 0


def check(context: Context, *, tables: int, update_steps: int, noise_draws: int) -> Outputs:
    """Compare; returns `identities`: per claim and case a deviation, 0 is right."""
    rows = [*_steps(tables), *_updates(update_steps), *_noise(noise_draws)]
    return {"identities": [{**row, "unit": "1"} for row in rows]}


def random_measurements(seed: int) -> pa.Table:
    """A small table with ties, gaps (NaN and null), goals that are met exactly, and trials of every status."""
    generator = np.random.default_rng(derive_seed(seed, "measurements"))
    rows: list[dict[str, Any]] = []
    for batch in (4, 16, 64):
        for trial in range(5):
            status = STATUSES[generator.integers(len(STATUSES))]
            for step in sorted(generator.choice(np.arange(1, 12), size=6, replace=False).tolist()):
                error: float | None = round(float(generator.uniform(0, 0.4)), 1)
                if generator.random() < 0.15:
                    error = None if generator.random() < 0.5 else math.nan
                rows.append({"batch_size": batch, "trial_id": trial, "step": step, "status": status, METRICS[0]: error})
    order = generator.permutation(len(rows))
    schema = pa.schema([("batch_size", pa.int64()), ("trial_id", pa.int64()), ("step", pa.int64())])
    schema = schema.append(pa.field("status", pa.string())).append(pa.field(METRICS[0], pa.float64()))
    return pa.Table.from_pylist([rows[i] for i in order], schema=schema)


def _plain(rows: list[dict[str, Any]], goal: float) -> dict[int, tuple[int | None, float]]:
    """S(B) by loops over the definition: (trial, steps) of each batch size."""
    found: dict[int, tuple[int | None, float]] = {}
    for batch in sorted({row["batch_size"] for row in rows}):
        best: tuple[float, int] | None = None
        for row in rows:
            error = row[METRICS[0]]
            usable = row["batch_size"] == batch and row["status"] == "complete" and error is not None
            if usable and error < goal and (best is None or (row["step"], row["trial_id"]) < best):
                best = (row["step"], row["trial_id"])
        found[batch] = (None, math.nan) if best is None else (best[1], best[0])
    return found


def _steps(tables: int) -> Iterator[dict[str, Any]]:
    wrong = budget = 0
    for seed in range(tables):
        table = random_measurements(seed)
        rows = table.to_pylist()
        for goal in (0.0, 0.1, 0.2, 0.3):
            ours = {r["batch_size"]: (r["trial_id"], r["steps"]) for r in steps_to_result(table, goal).to_pylist()}
            wrong += sum(str(ours[b]) != str((t, float(s))) for b, (t, s) in _plain(rows, goal).items())
        within = (
            (apply_step_budget(table, 6), [row for row in rows if row["step"] <= 6]),
            (apply_example_budget(table, 96), [row for row in rows if row["step"] * row["batch_size"] <= 96]),
        )
        for ours_within, kept in within:
            least: dict[int, float] = {}
            for row in kept:
                error = row[METRICS[0]]
                if row["status"] == "complete" and error is not None and not math.isnan(error):
                    least[row["batch_size"]] = min(least.get(row["batch_size"], math.inf), error)
            found = best_errors(ours_within)
            budget += dict(zip(found["batch_size"].to_pylist(), found["value"].to_pylist(), strict=True)) != least
    yield {"claim": "X1", "case": "steps to the result", "metric": "differences", "value": float(wrong)}
    yield {"claim": "X1", "case": "budgets", "metric": "differences", "value": float(budget)}


def _updates(steps: int) -> Iterator[dict[str, Any]]:
    """Largest relative deviation of the parameters from torch.optim.SGD on one module at a time, in float64."""
    torch.set_default_dtype(torch.float64)
    try:
        for rule in RULES:
            for hidden in ((), (16,), (16, 12)):
                for method in ("fused", "vmap", "loop"):
                    case = f"{rule}, {len(hidden)} hidden layers, {method}"
                    value = update_error(rule, hidden, method, steps)
                    yield {"claim": "X2", "case": case, "metric": "update", "value": value}
    finally:
        torch.set_default_dtype(torch.float32)


def update_error(rule: Rule, hidden: tuple[int, ...], method: str, steps: int) -> float:
    """Largest deviation of any parameter after `steps` steps, over the largest parameter; three trials in a stack."""
    widths = [20, *hidden, 5]

    def make(seed: int) -> nn.Sequential:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(SEED, "model", seed))
            layers: list[nn.Module] = []
            for inputs, outputs in zip(widths[:-1], widths[1:], strict=True):
                layers += [nn.Linear(inputs, outputs), nn.ReLU()]
            return nn.Sequential(*layers[:-1])

    rates, momenta = torch.tensor([0.3, 0.05, 0.1]), torch.tensor([0.0, 0.9, 0.5])
    if rule == "sgd":
        momenta = torch.zeros(3)
    program = build([make(i) for i in range(3)], rule, rates, momenta, method)
    models = [make(i) for i in range(3)]
    optimizers = [
        torch.optim.SGD(m.parameters(), float(r), momentum=float(v), nesterov=rule == "nesterov" and float(v) > 0)
        for m, r, v in zip(models, rates, momenta, strict=True)
    ]
    generator = torch.Generator().manual_seed(derive_seed(SEED, "batches"))
    for _ in range(steps):
        x = torch.randn(8, 20, generator=generator)
        y = torch.randint(5, (8,), generator=generator)
        program.step(x, y)
        for model, optimizer in zip(models, optimizers, strict=True):
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    worst = 0.0
    for i, model in enumerate(models):
        ours = program.parameters(i)
        for name, parameter in model.named_parameters():
            worst = max(worst, float((ours[name] - parameter.detach()).abs().max() / parameter.detach().abs().max()))
    return worst


def _noise(draws: int) -> Iterator[dict[str, Any]]:
    """Gradients G + noise of known covariance: means of both estimates, in units of 4 of their standard errors."""
    generator = np.random.default_rng(derive_seed(SEED, "noise"))
    mean, deviation = np.array([0.5, -1.0, 0.25, 0.0]), np.array([1.0, 0.5, 2.0, 1.5])
    for small, big in ((1, 8), (2, 16), (4, 64)):
        found = []
        for _ in range(draws):
            examples = mean + deviation * generator.normal(size=(big, 4))
            pieces = examples.reshape(big // small, small, 4).mean(1)
            norms = float((pieces**2).sum(1).mean()), float((examples.mean(0) ** 2).sum())
            one = noise_scale([norms[0]], [norms[1]], small_batch=small, big_batch=big)
            found.append((one.squared_gradient, one.trace))
        values = np.array(found)
        error = values.mean(0) - [float((mean**2).sum()), float((deviation**2).sum())]
        units = 4 * values.std(0, ddof=1) / math.sqrt(draws)
        for name, ratio in zip(("squared gradient", "trace"), error / units, strict=True):
            case = f"{name}, batches of {small} and {big}"
            yield {"claim": "X3", "case": case, "metric": "mean", "value": float(ratio)}

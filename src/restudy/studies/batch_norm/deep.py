"""Stage `deep`: the 25-layer deep linear network by full-batch descent, at two learning rates, with probes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.landscape import Probe, geometric, layer_parameters
from restudy.studies.batch_norm.descend import State, descend, probe_steps
from restudy.studies.batch_norm.linear import DeepLinear, Regression, regression
from restudy.studies.batch_norm.nets import split
from restudy.studies.batch_norm.observe import Settings, labelled, probe_rows, schema_of

TABLES = ("training", "curves", "probes", "landscape")
LENGTHS = (0.01, 30.0)
"""Probed step lengths over the learning rate (the paper's range for this network)."""
MEASURED = ("layer9", "layer17", "layer25")


@dataclass(frozen=True)
class FullBatch:
    """The task: every step sees all samples."""

    data: Regression

    def run(self, model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Summed squared error; there is no accuracy."""
        return self.data.loss(model), torch.tensor(math.nan)

    def noise_seed(self, step: int) -> int:
        """Nothing is random."""
        return 0


def train_deep(
    context: Context,
    *,
    deep_run: str,
    seeds: Sequence[int],
    depth: int,
    size: int,
    samples: int,
    steps: int,
    window: int,
    dense_every: int,
    dense_until: int,
    sparse_every: int,
    lengths: int,
    eigenvalue_products: int,
) -> Outputs:
    """Train a deep linear network for every seed; tables as in `train`, with the prefix `deep_`.

    Losses are sums over samples and outputs, as the learning rates presuppose; `deep_training` holds the loss before
    the first and at the last step, per sample.
    """
    arm, rate = split(deep_run)
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    look_at = probe_steps(steps, dense_every, dense_until, sparse_every)
    for seed in seeds:
        data = regression(samples, size, seed=seed)
        task = FullBatch(Regression(data.inputs.to(context.device), data.targets.to(context.device)))
        model = DeepLinear(arm, depth=depth, size=size, seed=seed).to(context.device)
        first = float(task.run(model, 0)[0].detach()) / samples
        settings = _settings(model, depth, tuple(geometric(*LENGTHS, lengths)), eigenvalue_products)
        state = descend(
            model,
            task,
            rate=rate,
            steps=steps,
            window=window,
            chance=math.nan,
            look=_Looks(model, task, rate, settings),
            look_at=look_at,
            checkpoint=context.checkpoints / f"{deep_run}-s{seed}.pt",
            checkpoint_every=10 * window,
        )
        last = state.rows["curves"][-1]["loss"] / samples
        numbers = {"first_loss": first, "last_loss": last, "diverged": float(state.diverged >= 0)}
        state.add("training", *({"metric": m, "value": v, "unit": "1"} for m, v in numbers.items()))
        where = {"run": deep_run, "arm": arm, "rate": rate, "seed": seed}
        for table, found in labelled(state.rows, where).items():
            rows[table] += found
    return {f"deep_{table}": pa.Table.from_pylist(found, schema=schema_of(table)) for table, found in rows.items()}


@dataclass(frozen=True)
class _Looks:
    model: nn.Module
    task: FullBatch
    rate: float
    settings: Settings

    def __call__(self, step: int, state: State) -> None:
        probe_rows(step, state, Probe(self.model, self.task.data.loss, seed=0), self.rate, self.settings)


def _settings(model: nn.Module, depth: int, lengths: tuple[float, ...], products: int) -> Settings:
    moved = layer_parameters(model, [f"layer{number}" for number in range(1, depth + 1)])
    compared = {name: [n for n in names if n.endswith("linear.weight")] for name, names in moved.items()}
    measured = tuple(name for name in MEASURED if name in moved) or (f"layer{depth}",)
    return Settings(lengths, products, moved, compared, measured)

"""What is seen of a network before a step, as rows: the loss along the gradient, covariate shift, activations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from restudy.methods.landscape import (
    Along,
    Probe,
    along_gradient,
    covariate_shift,
    curvature_along_gradient,
    histogram,
    layer_parameters,
    moments,
    step_change,
    top_eigenvalue,
    wasserstein,
)
from restudy.methods.landscape.distributions import units_first
from restudy.methods.training import evaluate

from .models import Task

Row = dict[str, Any]
PLACES = {"input": "noise", "before": "conv"}
"""Places of a layer: the input of its non-linearity (after normalisation and noise), and the convolution's output."""


def probe_steps(steps: int, dense_every: int, dense_until: int, sparse_every: int) -> list[int]:
    """List the steps before which probes look: every `dense_every` up to `dense_until`, then every `sparse_every`."""
    dense = range(0, min(dense_until, steps - 1) + 1, dense_every)
    sparse = range(dense_until + sparse_every, steps, sparse_every)
    return sorted({*dense, *sparse})


@dataclass
class Seen:
    """Rows of tables without the run's columns, and the tensors that the next look compares with."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    kept: dict[str, Tensor] = field(default_factory=dict)

    def add(self, table: str, *rows: Row) -> None:
        """Append rows to a table."""
        self.rows.setdefault(table, []).extend(rows)

    def measure(self, table: str, numbers: Mapping[str, float], **where: object) -> None:
        """Append a row for each metric."""
        self.add(table, *({**where, "metric": m, "value": v, "unit": "1"} for m, v in numbers.items()))


@dataclass(frozen=True)
class Activations:
    """Distributions of activations on one fixed batch.

    Attributes:
        inputs: the batch. samples: values of a unit whose distributions are compared. bins: of the histograms.
    """

    inputs: Tensor
    layers: Sequence[str]
    samples: int
    bins: int

    def look(self, model: nn.Module, step: int, seed: int, checkpoint: bool, seen: Seen) -> None:
        """Add distributions at a checkpoint, and the change of the moments where the step before was looked at too."""
        modules = {(layer, place): f"{layer}.{name}" for layer in self.layers for place, name in PLACES.items()}
        outputs = Probe(model, lambda net: net(self.inputs).sum(), seed=seed).outputs(list(modules.values()))
        for (layer, place), name in modules.items():
            where = {"step": step, "layer": layer, "place": place}
            self._drift(where, outputs[name], checkpoint, seen)
            if checkpoint:
                units = units_first(outputs[name])
                for unit, values in ((0, units[0]), (-1, units)):
                    seen.add("activations", where | {"unit": unit} | vars(histogram(values, self.bins)))

    def _drift(self, where: Row, values: Tensor, checkpoint: bool, seen: Seen) -> None:
        key, now = f"{where['layer']}/{where['place']}", torch.stack(moments(values))
        before = seen.kept.get(f"{key}/moments")
        if before is not None and int(seen.kept[f"{key}/step"]) == where["step"] - 1:
            mean, variance = step_change((before[0].to(now.device), before[1].to(now.device)), (now[0], now[1]))
            seen.measure("drift", {"mean_change": mean, "variance_change": variance}, **where)
        seen.kept |= {f"{key}/moments": now, f"{key}/step": torch.tensor(where["step"])}
        if checkpoint:
            units = units_first(values)
            chosen = torch.linspace(0, units.shape[1] - 1, min(self.samples, units.shape[1])).long()
            sample = units[:, chosen.to(units.device)].clone()
            if (last := seen.kept.get(f"{key}/sample")) is not None:
                seen.measure("drift", {"wasserstein": wasserstein(last.to(sample.device), sample)}, **where)
            seen.kept[f"{key}/sample"] = sample


@dataclass(frozen=True)
class Looks:
    """What is looked at before which steps of a run.

    Attributes:
        steps: where the loss is probed; activations also before the step after, for their change in one step.
        lengths: probed step lengths over the learning rate.
        products: Hessian-vector products of the power iteration; 0 leaves the top eigenvalue out.
        measured: layers whose covariate shift is reported.
        watched: modules whose output gradient's norm is reported.
        test: images and labels of the test accuracy.
    """

    steps: frozenset[int]
    lengths: Sequence[float]
    products: int
    measured: Sequence[str]
    watched: Sequence[str] = ()
    activations: Activations | None = None
    test: tuple[Tensor, Tensor] | None = None

    def before(self, step: int, model: nn.Module, task: Task, rate: float, seen: Seen) -> None:
        """Look at the model before it takes a step; changes neither it nor the random state."""
        seed = task.noise_seed(step)
        if self.activations is not None and (step in self.steps or step - 1 in self.steps):
            self.activations.look(model, step, seed, step in self.steps, seen)
        if step in self.steps:
            probe = Probe(model, lambda net: task.run(net, step)[0], seed=seed)
            self._landscape(probe, step, rate, seen)
            if self.test is not None:
                seen.measure("probes", {"test_accuracy": evaluate(model, *self.test)[1]}, step=step, layer="")

    def _landscape(self, probe: Probe, step: int, rate: float, seen: Seen) -> None:
        """Probe the loss along the gradient, the covariate shift, and the gradient at the layers' outputs."""
        start = probe.point(watch=self.watched)
        along = along_gradient(probe, [rate * length for length in self.lengths], start=start)
        names = ("length", "loss", "gradient_change", "gradient_norm")
        for row in zip(self.lengths, along.losses, along.changes, along.gradient_norms, strict=True):
            seen.add("landscape", {"step": step, **dict(zip(names, row, strict=True))})
        curvature = curvature_along_gradient(probe)
        numbers = summary(along) | {"curvature": curvature, "curvature_times_rate": rate * curvature}
        if self.products:
            numbers["top_eigenvalue"] = top_eigenvalue(probe, iterations=self.products)
        seen.measure("probes", numbers, step=step, layer="")
        # A layer's step moves its gamma and beta too; the gradients of its weights are compared.
        named = [name for name, child in probe.model.named_children() if [*child.parameters()]]
        moved = layer_parameters(probe.model, named)
        weights = {
            layer: [n for n in names if n.endswith(("conv.weight", "linear.weight"))] for layer, names in moved.items()
        }
        for shift in covariate_shift(probe, moved, rate, measured=self.measured, weights=weights, start=start):
            seen.measure("probes", {"shift_l2": shift.l2, "shift_cosine": shift.cosine}, step=step, layer=shift.layer)
        for name in self.watched:
            norm = float(start.output_gradients[name].double().square().sum().sqrt())
            seen.measure("probes", {"output_gradient_norm": norm}, step=step, layer=name.partition(".")[0])


def summary(along: Along) -> dict[str, float]:
    """Sum a landscape up in numbers, absolute and relative to the loss or the gradient at the weights."""
    norm = along.gradient_norm if along.gradient_norm > 0 else math.nan
    return {
        "loss": along.loss,
        "gradient_norm": along.gradient_norm,
        "loss_range": along.loss_range,
        "loss_range_relative": along.loss_range / along.loss if along.loss > 0 else math.nan,
        "gradient_change": along.gradient_change,
        "gradient_change_relative": along.gradient_change / norm,
        "effective_smoothness": along.effective_smoothness,
    }

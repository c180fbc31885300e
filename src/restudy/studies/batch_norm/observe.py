"""What the probes see on the way, as rows of the study's tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor, nn

from restudy.methods.landscape import (
    Along,
    Probe,
    along_gradient,
    covariate_shift,
    curvature_along_gradient,
    histogram,
    moments,
    step_change,
    top_eigenvalue,
    wasserstein,
)
from restudy.methods.landscape.distributions import units_first
from restudy.methods.landscape.probe import Objective
from restudy.studies.batch_norm.descend import State

_RUN = [("run", pa.string()), ("arm", pa.string()), ("rate", pa.float64()), ("seed", pa.int64())]
_METRIC = [("metric", pa.string()), ("value", pa.float64()), ("unit", pa.string())]
TRAINING = pa.schema([*_RUN, *_METRIC])
CURVES = pa.schema([*_RUN, ("step", pa.int64()), ("loss", pa.float64()), ("accuracy", pa.float64())])
PROBES = pa.schema([*_RUN, ("step", pa.int64()), ("layer", pa.string()), *_METRIC])
LANDSCAPE = pa.schema(
    [*_RUN, ("step", pa.int64()), ("length", pa.float64()), ("loss", pa.float64())]
    + [("gradient_change", pa.float64()), ("gradient_norm", pa.float64())]
)
"""`length` is the step length over the learning rate."""
DRIFT = pa.schema([*_RUN, ("step", pa.int64()), ("layer", pa.string()), ("place", pa.string()), *_METRIC])
ACTIVATIONS = pa.schema(
    [*_RUN, ("step", pa.int64()), ("layer", pa.string()), ("place", pa.string()), ("unit", pa.int64())]
    + [("low", pa.float64()), ("high", pa.float64()), ("mean", pa.float64()), ("spread", pa.float64())]
    + [("counts", pa.list_(pa.int64()))]
)
"""Histograms: `unit` is a channel, -1 all of them together; bins are equal from `low` to `high`."""

INPUT, BEFORE = "input", "before"
"""Places of a layer: the input of its non-linearity (after normalisation and noise), the convolution's output."""


@dataclass(frozen=True)
class Settings:
    """How the probes look: lengths over the learning rate, products of the power iteration (0: none), layers."""

    lengths: tuple[float, ...]
    eigenvalue_products: int
    layers: Mapping[str, Sequence[str]]
    compared: Mapping[str, Sequence[str]]
    measured: tuple[str, ...]
    watched: tuple[str, ...] = ()


def schema_of(table: str) -> pa.Schema:
    """The schema of a table, with or without the prefix of the deep linear network."""
    schemas = {"training": TRAINING, "curves": CURVES, "probes": PROBES, "landscape": LANDSCAPE}
    return (schemas | {"drift": DRIFT, "activations": ACTIVATIONS})[table.removeprefix("deep_")]


def probe_rows(step: int, state: State, probe: Probe, rate: float, settings: Settings) -> None:
    """Add the landscape, covariate shift, curvature and output gradients before `step` to the tables."""
    start = probe.point(watch=settings.watched)
    seen = along_gradient(probe, [rate * length for length in settings.lengths], start=start)
    lengths = zip(settings.lengths, seen.losses, seen.changes, seen.gradient_norms, strict=True)
    names = ("length", "loss", "gradient_change", "gradient_norm")
    state.add("landscape", *({"step": step} | dict(zip(names, row, strict=True)) for row in lengths))
    whole = {"step": step, "layer": ""}
    state.add("probes", *(whole | row for row in _numbers(seen)))
    curvature = curvature_along_gradient(probe)
    state.add("probes", whole | _row("curvature", curvature), whole | _row("curvature_times_rate", rate * curvature))
    if settings.eigenvalue_products:
        value = top_eigenvalue(probe, iterations=settings.eigenvalue_products)
        state.add("probes", whole | _row("top_eigenvalue", value))
    shifts = covariate_shift(
        probe, settings.layers, rate, measured=settings.measured, weights=settings.compared, start=start
    )
    for shift in shifts:
        here = {"step": step, "layer": shift.layer}
        state.add("probes", here | _row("shift_l2", shift.l2), here | _row("shift_cosine", shift.cosine))
    for name in settings.watched:
        size = float(start.output_gradients[name].double().square().sum().sqrt())
        state.add("probes", {"step": step, "layer": name.partition(".")[0]} | _row("output_gradient_norm", size))


def _numbers(seen: Along) -> list[dict[str, Any]]:
    """The numbers of one landscape, absolute and relative to the loss or the gradient at the weights."""
    safe = seen.gradient_norm if seen.gradient_norm > 0 else math.nan
    return [
        _row("loss", seen.loss),
        _row("gradient_norm", seen.gradient_norm),
        _row("loss_range", seen.loss_range),
        _row("loss_range_relative", seen.loss_range / seen.loss if seen.loss > 0 else math.nan),
        _row("gradient_change", seen.gradient_change),
        _row("gradient_change_relative", seen.gradient_change / safe),
        _row("effective_smoothness", seen.effective_smoothness),
    ]


def _row(metric: str, value: float) -> dict[str, Any]:
    return {"metric": metric, "value": value, "unit": "1"}


@dataclass(frozen=True)
class Watch:
    """Distributions of activations on one fixed batch, at three layers and two places.

    Attributes:
        objective: runs the model on the batch. layers: names of blocks. samples: values of a unit that are compared.
    """

    objective: Objective
    layers: tuple[str, ...]
    samples: int
    bins: int

    def look(self, model: nn.Module, step: int, state: State, seed: int, checkpoint: bool) -> None:
        """Add distributions before `step` where it is a `checkpoint`, and the moments' change since the step before."""
        modules = {(layer, place): f"{layer}.{name}" for layer in self.layers for place, name in PLACES.items()}
        seen = Probe(model, self.objective, seed=seed).outputs(list(modules.values()))
        for (layer, place), name in modules.items():
            where = {"step": step, "layer": layer, "place": place}
            self._drift(state, f"{layer}/{place}", where, seen[name], checkpoint)
            if checkpoint:
                units = units_first(seen[name])
                for unit, values in ((0, units[0]), (-1, units)):
                    state.add("activations", where | {"unit": unit} | vars(histogram(values, self.bins)))

    def _drift(self, state: State, key: str, where: dict[str, Any], values: Tensor, checkpoint: bool) -> None:
        step, now = where["step"], torch.stack(moments(values))
        before = state.kept.get(f"{key}/moments")
        if before is not None and int(state.kept[f"{key}/step"]) == step - 1:
            mean, variance = step_change((before[0], before[1]), (now[0], now[1]))
            state.add("drift", where | _row("mean_change", mean), where | _row("variance_change", variance))
        state.kept |= {f"{key}/moments": now, f"{key}/step": torch.tensor(step)}
        if checkpoint:
            units = units_first(values)
            chosen = torch.linspace(0, units.shape[1] - 1, min(self.samples, units.shape[1])).long()
            sample = units[:, chosen.to(units.device)].clone()
            if (last := state.kept.get(f"{key}/sample")) is not None:
                state.add("drift", where | _row("wasserstein", wasserstein(last.to(sample.device), sample)))
            state.kept[f"{key}/sample"] = sample


PLACES = {INPUT: "noise", BEFORE: "conv"}
Look = Callable[[int, State], None]


def labelled(rows: Mapping[str, list[dict[str, Any]]], where: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The rows of all tables with the run's columns in front."""
    return {table: [{**where, **row} for row in found] for table, found in rows.items()}

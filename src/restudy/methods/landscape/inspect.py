"""The probes on a model of your own: trained by plain SGD, looked at before chosen steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.landscape.along import along_gradient, geometric
from restudy.methods.landscape.curvature import curvature_along_gradient
from restudy.methods.landscape.drawing import landscape_figure, shift_figure
from restudy.methods.landscape.page import page
from restudy.methods.landscape.probe import Objective, Probe
from restudy.methods.landscape.shift import covariate_shift
from restudy.own_model import as_typed, called_on, check_device, check_folder
from restudy.plotting.save import figure_bytes
from restudy.results import table_bytes, write_atomically

PROBES = pa.schema(
    [("step", pa.int64()), ("layer", pa.string()), ("metric", pa.string()), ("value", pa.float64())]
    + [("unit", pa.string())]
)
LANDSCAPE = pa.schema(
    [("step", pa.int64()), ("length", pa.float64()), ("loss", pa.float64()), ("gradient_change", pa.float64())]
)
LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"cross_entropy": F.cross_entropy, "mse": F.mse_loss}


@dataclass(frozen=True)
class Options:
    """How a model is trained and looked at.

    Attributes:
        rate: learning rate of plain SGD. steps: the steps before which probes look; training ends at the last.
        batch_size: samples in a step. loss: `cross_entropy` (int64 targets) or `mse`. shortest, longest, lengths:
            probed step lengths over the learning rate, from and to, and how many. layers: names of modules, lowest
            first; by default every leaf with parameters, in the order of registration. measured: layers whose
            covariate shift is measured; by default three with matrices, of those above the first. seed: of the
            order of the data and of the model's noise.
    """

    rate: float = 0.1
    steps: tuple[int, ...] = (0, 50, 100, 200)
    batch_size: int = 128
    loss: str = "cross_entropy"
    shortest: float = 0.5
    longest: float = 4.0
    lengths: int = 10
    layers: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    seed: int = 0
    device: str = "cpu"

    def check(self) -> None:
        """Raise ConfigError, in one line, for what makes no sense."""
        checks = [
            (self.rate > 0 and math.isfinite(self.rate), "--rate", self.rate, "above 0"),
            (bool(self.steps) and min(self.steps) >= 0, "--steps", self.steps, "at least one, none below 0"),
            (self.batch_size >= 2, "--batch-size", self.batch_size, "at least 2"),
            (self.loss in LOSSES, "--loss", self.loss, ", ".join(LOSSES)),
        ]
        for fine, name, value, allowed in checks:
            if not fine:
                raise ConfigError(f"{name} is {value!r}", where="landscape", remedy=f"allowed: {allowed}")
        check_device(self.device)


@dataclass
class _Rows:
    probes: list[dict[str, Any]] = field(default_factory=list)
    landscape: list[dict[str, Any]] = field(default_factory=list)


def inspect_model(
    model: nn.Module,
    inputs: Tensor,
    targets: Tensor,
    folder: Path,
    options: Options | None = None,
    shown: Mapping[str, str] | None = None,
) -> dict[str, pa.Table]:
    """Train a model in place, probe it on the way, and write tables, figures and a page into a folder.

    Args:
        model: maps (B, ...) inputs to what the loss takes. inputs: (N, ...) float. targets: (N,) int64 for
            cross-entropy, like the outputs for mse. folder: gets probes.parquet, landscape.parquet, landscape and
            shift as .svg, .png and .pdf, and index.html; made if absent. shown: the options as the page lists them.

    Returns:
        The tables `probes` and `landscape`.

    Raises:
        ConfigError: a folder that cannot be written, data that do not fit, layers that do not exist, a model that
            fails, a loss that is not finite.
    """
    options = options or Options()
    options.check()
    check_folder(folder)
    targets = _checked(inputs, targets, options)
    model.to(options.device).train()
    layers, measured = _layers(model, options)
    rows, wanted, parameters = _Rows(), frozenset(options.steps), [p for p in model.parameters() if p.requires_grad]
    generator = torch.Generator().manual_seed(options.seed)
    devices = [torch.device(options.device).index or 0] if options.device.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):
        for step in range(max(options.steps) + 1):
            chosen = torch.randint(len(inputs), (options.batch_size,), generator=generator)
            objective = _objective(inputs[chosen].to(options.device), targets[chosen].to(options.device), options)
            if step in wanted:
                _look(Probe(model, objective, seed=options.seed + step), step, layers, measured, options, rows)
            torch.manual_seed(options.seed + step)
            loss = objective(model)
            if not math.isfinite(float(loss.detach())):
                raise ConfigError(
                    f"the loss is {float(loss.detach())} at step {step}", where="landscape", remedy="lower the rate"
                )
            with torch.no_grad():
                for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                    parameter.sub_(gradient, alpha=options.rate)
    tables = {
        "probes": pa.Table.from_pylist(rows.probes, schema=PROBES),
        "landscape": pa.Table.from_pylist(rows.landscape, schema=LANDSCAPE),
    }
    _write(tables, folder, type(model).__name__, shown or as_typed(vars(options)))
    return tables


def _checked(inputs: Tensor, targets: Tensor, options: Options) -> Tensor:
    """The targets, whole numbers as int64; ConfigError for arrays that do not fit each other or the loss."""
    shapes = f"inputs of shape {tuple(inputs.shape)} and targets of shape {tuple(targets.shape)}"
    if not inputs.dim() or not targets.dim() or len(inputs) != len(targets) or len(inputs) < options.batch_size:
        raise ConfigError(
            f"{shapes} for batches of {options.batch_size}",
            where="landscape",
            remedy="give one target for each input, and at least a batch of them (--batch-size)",
        )
    for name, values in (("inputs", inputs), ("targets", targets)):
        if values.is_floating_point() and not bool(torch.isfinite(values).all()):
            raise ConfigError(f"`{name}` are not all finite", where="landscape", remedy="leave such examples out")
    if options.loss == "mse":
        return targets
    if targets.is_floating_point() or targets.is_complex() or targets.dtype == torch.bool:
        kind = str(targets.dtype).removeprefix("torch.")
        remedy = "cross-entropy takes classes as whole numbers; or use --loss mse"
        raise ConfigError(f"`targets` are {kind}", where="landscape", remedy=remedy)
    return targets.long()


def _objective(inputs: Tensor, targets: Tensor, options: Options) -> Objective:
    measure, given = LOSSES[options.loss], {"inputs": inputs, "targets": targets}

    def loss(net: nn.Module) -> Tensor:
        outputs = called_on(net, lambda: net(inputs), given)
        if options.loss == "mse" and isinstance(outputs, Tensor) and outputs.shape != targets.shape:
            raise ConfigError(
                f"outputs of shape {tuple(outputs.shape)} do not fit targets of shape {tuple(targets.shape)}",
                where="landscape",
                remedy="give targets like the outputs",
            )
        found: Tensor = called_on(net, lambda: measure(outputs, targets), given)
        return found

    return loss


def _layers(model: nn.Module, options: Options) -> tuple[dict[str, list[str]], list[str]]:
    """The layers with their trained parameters, lowest first, and those that are measured."""
    modules = dict(model.named_modules())
    leaves = [n for n, m in modules.items() if not list(m.children()) and list(m.parameters(recurse=False))]
    names = list(options.layers) or leaves
    if unknown := [n for n in (*names, *options.measured) if n not in modules]:
        raise ConfigError(f"no module {', '.join(unknown)}", where="landscape", remedy=f"known: {', '.join(leaves)}")
    found = {
        n: [f"{n}.{p}" if n else p for p, value in modules[n].named_parameters() if value.requires_grad] for n in names
    }
    found = {n: own for n, own in found.items() if own}
    matrices = [n for n in list(found)[1:] if any(p.dim() > 1 for p in modules[n].parameters())]
    few = [matrices[round(i * (len(matrices) - 1) / 2)] for i in range(3)] if len(matrices) > 3 else matrices
    return found, list(options.measured) or few


def _look(
    probe: Probe,
    step: int,
    layers: dict[str, list[str]],
    measured: Sequence[str],
    options: Options,
    rows: _Rows,
) -> None:
    lengths = geometric(options.shortest, options.longest, options.lengths)
    start = probe.point()
    seen = along_gradient(probe, [options.rate * length for length in lengths], start=start)
    for length, loss, change in zip(lengths, seen.losses, seen.changes, strict=True):
        rows.landscape.append({"step": step, "length": length, "loss": loss, "gradient_change": change})
    numbers = {
        "loss": seen.loss,
        "gradient_norm": seen.gradient_norm,
        "loss_range": seen.loss_range,
        "gradient_change": seen.gradient_change,
        "effective_smoothness": seen.effective_smoothness,
        "curvature": curvature_along_gradient(probe),
    }
    where = {"step": step, "layer": "", "unit": "1"}
    rows.probes += [where | {"metric": name, "value": value} for name, value in numbers.items()]
    for shift in covariate_shift(probe, layers, options.rate, measured=measured, start=start):
        here = where | {"layer": shift.layer}
        rows.probes.append(here | {"metric": "shift_cosine", "value": shift.cosine})
        rows.probes.append(here | {"metric": "shift_l2", "value": shift.l2})


def _write(tables: dict[str, pa.Table], folder: Path, name: str, shown: Mapping[str, str]) -> None:
    for table, content in tables.items():
        write_atomically(folder / f"{table}.parquet", table_bytes(content))
    figures = {
        "landscape": landscape_figure(tables["landscape"], tables["probes"]),
        "shift": shift_figure(tables["probes"]),
    }
    for figure, drawn in figures.items():
        for suffix, content in figure_bytes(drawn).items():
            write_atomically(folder / f"{figure}.{suffix}", content)
    write_atomically(folder / "index.html", page(name, tables["probes"], shown).encode())

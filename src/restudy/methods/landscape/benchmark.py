"""What probing costs: as a share of training, and against running the training code anew for every number.

CPU seconds of this process; read ratios, not seconds. The naive side copies the model, makes an optimiser with the
probed step as its learning rate, trains one step and evaluates, for every measure and every length on its own.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.methods.landscape.along import along_gradient, geometric
from restudy.methods.landscape.curvature import curvature_along_gradient
from restudy.methods.landscape.probe import Probe
from restudy.methods.landscape.shift import covariate_shift, layer_parameters
from restudy.methods.normalization import BatchNorm
from restudy.timing import least

POINTS, STEPS = 11, 1200
"""The default cadence: probes in a run of so many steps."""
LENGTHS, MEASURED = 10, 3


def problem(width: int = 8, batch: int = 128, seed: int = 0) -> tuple[nn.Sequential, Tensor, Tensor]:
    """Return a convolutional net with batch norm (eight convolutions), images (B, 1, 28, 28) and labels (B,)."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    inputs = 1
    for place, factor in enumerate((1, 2, 4, 4, 8, 8, 8, 8), start=1):
        block = [nn.Conv2d(inputs, factor * width, 3, padding=1, bias=False), BatchNorm(factor * width), nn.ReLU()]
        layers += [nn.Sequential(*block), nn.MaxPool2d(2) if place in (1, 2, 4, 6) else nn.Identity()]
        inputs = factor * width
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs, 10))
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    images = torch.randn(batch, 1, 28, 28).contiguous(memory_format=torch.channels_last)
    return model, images, torch.randint(0, 10, (batch,))


def probing_share(*, repeats: int = 3, width: int = 8, batch: int = 128, steps: int = STEPS) -> dict[str, Any]:
    """Return `step_ms`, `probe_ms` (landscape, curvature, covariate shift of three layers) and their `share`.

    `share` is the probes' time over the training time of a run at the default cadence; the aim is below .3.
    """
    model, images, labels = problem(width, batch)

    def objective(net: nn.Module) -> Tensor:
        return F.cross_entropy(net(images), labels)

    step_ms = 1000 * least(lambda: _step(model, objective), 10 * repeats)
    probe_ms = 1000 * least(lambda: _ours(model, objective), repeats)
    return {"step_ms": step_ms, "probe_ms": probe_ms, "share": POINTS * probe_ms / (steps * step_ms), "aim": 0.3}


def against_naive(*, repeats: int = 2, width: int = 8, batch: int = 128) -> dict[str, Any]:
    """Return `ours_ms`, `naive_ms`, `ratio` (naive / ours) and the largest relative `difference` of the numbers.

    Both sides give the same three ranges over the same lengths and the covariate shift of the same layers.
    """
    model, images, labels = problem(width, batch)

    def objective(net: nn.Module) -> Tensor:
        return F.cross_entropy(net(images), labels)

    ours, naive = _ours(model, objective, curvature=False), _naive(model, objective)
    difference = max(abs(a - b) / max(abs(b), 1e-12) for a, b in zip(ours, naive, strict=True))
    ours_ms = 1000 * least(lambda: _ours(model, objective, curvature=False), repeats)
    naive_ms = 1000 * least(lambda: _naive(model, objective), repeats)
    return {"ours_ms": ours_ms, "naive_ms": naive_ms, "ratio": naive_ms / ours_ms, "difference": difference}


def _blocks(model: nn.Module) -> list[str]:
    return [name for name, module in model.named_children() if list(module.parameters())]


def _ours(model: nn.Module, objective: Callable[[nn.Module], Tensor], curvature: bool = True) -> list[float]:
    probe = Probe(model, objective, seed=0)
    start = probe.point()
    seen = along_gradient(probe, geometric(0.05, 0.4, LENGTHS), start=start)
    layers = layer_parameters(model, _blocks(model))
    shifts = covariate_shift(probe, layers, 0.1, measured=list(layers)[-MEASURED:], start=start)
    if curvature:
        curvature_along_gradient(probe)
    return [seen.loss_range, seen.gradient_change, seen.effective_smoothness, *(shift.l2 for shift in shifts)]


def _naive(model: nn.Module, objective: Callable[[nn.Module], Tensor]) -> list[float]:
    """The same numbers by copies of the model that are trained a step with the training code."""
    base = _gradient(copy.deepcopy(model), objective)[1]
    size = float(base.norm())
    losses, changes, smoothness = [float(_gradient(copy.deepcopy(model), objective)[0])], [], []
    for length in geometric(0.05, 0.4, LENGTHS):
        losses.append(float(_gradient(_trained(model, objective, length), objective)[0]))
    for length in geometric(0.05, 0.4, LENGTHS):
        changes.append(float((_gradient(_trained(model, objective, length), objective)[1] - base).norm()))
    for length in geometric(0.05, 0.4, LENGTHS):
        change = _gradient(_trained(model, objective, length), objective)[1] - base
        smoothness.append(float(change.norm()) / (length * size))
    shifts = []
    for name in _blocks(model)[-MEASURED:]:
        after = _trained(model, objective, 0.1, below=name)
        one, two = (_layer_gradient(net, objective, name) for net in (copy.deepcopy(model), after))
        shifts.append(float((one - two).norm()))
    return [max(losses) - min(losses), max(changes), max(smoothness), *shifts]


def _trained(model: nn.Module, objective: Callable[[nn.Module], Tensor], rate: float, below: str = "") -> nn.Module:
    """A copy after one step of SGD, of all layers or of those below one."""
    moved = copy.deepcopy(model)
    names = _blocks(moved)
    chosen = names[: names.index(below)] if below else names
    parameters = [p for n in chosen for p in moved.get_submodule(n).parameters()]
    optimizer = torch.optim.SGD(parameters, rate)
    moved.zero_grad()
    objective(moved).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return moved


def _gradient(model: nn.Module, objective: Callable[[nn.Module], Tensor]) -> tuple[Tensor, Tensor]:
    loss = objective(model)
    return loss.detach(), torch.cat([g.flatten() for g in torch.autograd.grad(loss, list(model.parameters()))])


def _layer_gradient(model: nn.Module, objective: Callable[[nn.Module], Tensor], name: str) -> Tensor:
    own = list(model.get_submodule(name).parameters())
    return torch.cat([g.flatten() for g in torch.autograd.grad(objective(model), own)])


def _step(model: nn.Module, objective: Callable[[nn.Module], Tensor]) -> None:
    parameters = list(model.parameters())
    gradients = torch.autograd.grad(objective(model), parameters)
    with torch.no_grad():
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.sub_(gradient, alpha=0.0)


def rows() -> list[dict[str, Any]]:
    """Rows for `make bench`: the probes' share of training time, and against re-running training code per probe."""
    share, naive = probing_share(), against_naive()
    probe = f"a probe takes {share['probe_ms']:.0f} ms, a step {share['step_ms']:.1f} ms; aim below 0.30"
    return [
        {"what": "probes of the loss: share of training time", "ratio": share["share"], "aim": None, "note": probe},
        {
            "what": "probes of the loss against re-running training code for each",
            "ratio": naive["ratio"],
            "aim": 1.0,
            "note": f"largest relative difference {naive['difference']:.0e}",
        },
    ]

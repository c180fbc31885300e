"""Many trials of one model in one tensor program: a hand-fused program for MLPs, vmap and a loop for other models.

A stack holds K trials that see the same batches and differ in initial weights, learning rate and momentum. The update
rules are those of Shallue et al. 2018, section 4.1: SGD w <- w - eta g; momentum v <- m v + g, w <- w - eta v; Nesterov
w <- w - eta (g + m v_new). All programs do the same mathematics; which is the fastest depends on model and device
(`restudy.methods.sweeps.benchmark`), and `build` chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError

Rule = Literal["sgd", "momentum", "nesterov"]
RULES: tuple[Rule, ...] = ("sgd", "momentum", "nesterov")


class Program(Protocol):
    """A stack of trials that train together.

    `step` takes inputs (B, ...) and labels (B,) that every trial sees and returns the mean loss (K,) before the step.
    `evaluate` returns loss (K,) in nats and error (K,), a share, without training. `keep` drops all trials but those
    indexed. `state` and `load` carry everything that changes; `parameters` are one trial's, named as in its module.
    """

    trials: int

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Take one step on a batch that all trials share; return the mean loss (K,) before it."""
        ...

    def evaluate(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean loss (K,) in nats and error (K,), a share, without training."""
        ...

    def keep(self, index: Tensor) -> None:
        """Drop all trials but those indexed (int64)."""
        ...

    def state(self) -> dict[str, Tensor]:
        """Weights, velocities, rates and momenta."""
        ...

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state, also one of fewer trials."""
        ...

    def parameters(self, trial: int) -> dict[str, Tensor]:
        """One trial's parameters, named and shaped as in its module."""
        ...


def check_rates(rule: str, trials: int, rates: Tensor, momenta: Tensor) -> None:
    """Raise ConfigError for an unknown rule, counts that differ, rates that are no rates."""
    if rule not in RULES:
        raise ConfigError(f"unknown update rule {rule!r}", remedy=f"known: {', '.join(RULES)}")
    if trials < 1 or rates.shape != (trials,) or momenta.shape != (trials,):
        raise ConfigError(
            f"{trials} models, {tuple(rates.shape)} rates, {tuple(momenta.shape)} momenta", remedy="give one of each"
        )
    if not bool((rates >= 0).all()) or not bool(((momenta >= 0) & (momenta < 1)).all()):
        raise ConfigError("a learning rate below 0, or a momentum outside [0, 1)", remedy="check the search box")


class FusedMLP:
    """MLPs with ReLU whose passes and updates are written out: K trials in a few large matrix products.

    The first layers of all trials are one matrix (inputs + 1, K * width), since all trials see the same batch; the
    deeper ones are batched (K, width, width). The learning rate is folded into the backward pass, so that plain SGD
    adds its update to the weights inside the matrix product and never stores a gradient; with momentum the velocity
    kept is -eta v.
    """

    def __init__(self, models: Sequence[nn.Sequential], rule: Rule, rates: Tensor, momenta: Tensor) -> None:
        check_rates(rule, len(models), rates, momenta)
        self.trials, self.rule = len(models), rule
        layers = [[m for m in model if isinstance(m, nn.Linear)] for model in models]
        self.names = [name for name, m in models[0].named_children() if isinstance(m, nn.Linear)]
        with torch.no_grad():
            first = [torch.cat([own[0].weight.T, own[0].bias[None]]) for own in layers]
            self.weights = [torch.stack(first, 1).flatten(1).contiguous()]
            self.biases: list[Tensor] = []
            for depth in range(1, len(layers[0])):
                self.weights.append(torch.stack([own[depth].weight.T for own in layers]).contiguous())
                self.biases.append(torch.stack([own[depth].bias[None] for own in layers]).contiguous())
        self.moving = [torch.zeros_like(w) for w in self._all()] if rule != "sgd" else []
        self._set(rates.to(self.weights[0]), momenta.to(self.weights[0]))

    def _all(self) -> list[Tensor]:
        return [*self.weights, *self.biases]

    def _set(self, rates: Tensor, momenta: Tensor) -> None:
        self.rates, self.momenta = rates, momenta
        width = self.weights[0].shape[1] // self.trials
        self._scale = -rates[:, None, None]
        batched = momenta[:, None, None]
        self._factors = [momenta.repeat_interleave(width)[None], *[batched] * (2 * len(self.weights) - 2)]
        self._ones: dict[int, Tensor] = {}

    def _with_ones(self, inputs: Tensor) -> Tensor:
        ones = self._ones.setdefault(len(inputs), inputs.new_ones(len(inputs), 1))
        return torch.cat([inputs.flatten(1), ones], 1)

    def _forward(self, inputs: Tensor) -> list[Tensor]:
        """The activations (K, B, width) of every layer and the logits (K, B, classes), from inputs with ones."""
        count = len(inputs)
        flat = inputs @ self.weights[0]
        if len(self.weights) > 1:
            flat.relu_()
        found = [flat.view(count, self.trials, -1).transpose(0, 1)]
        for depth, (weight, bias) in enumerate(zip(self.weights[1:], self.biases, strict=True), start=1):
            found.append(torch.baddbmm(bias, found[-1], weight))
            if depth < len(self.weights) - 1:
                found[-1].relu_()
        return found

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Take one step on a batch that all trials share; return the mean loss (K,) before it."""
        with torch.no_grad():
            inputs, count = self._with_ones(inputs), len(labels)
            layers = self._forward(inputs)
            logs = layers[-1].log_softmax(-1)
            index = labels.expand(self.trials, -1)[..., None]
            losses = -logs.gather(-1, index).mean((1, 2))
            delta = logs.exp_()
            delta.scatter_add_(-1, index, delta.new_full((1, 1, 1), -1.0).expand(self.trials, count, 1))
            delta.mul_(self._scale / count)
            updates: list[tuple[int, Tensor, Tensor]] = []
            for depth in range(len(self.weights) - 1, 0, -1):
                below = layers[depth - 1]
                updates.append((depth, below.transpose(1, 2), delta))
                if depth > 1:
                    delta = torch.bmm(delta, self.weights[depth].transpose(1, 2)).mul_(below > 0)
                else:
                    flat = delta.new_empty(count, self.trials, below.shape[2])
                    torch.bmm(delta, self.weights[depth].transpose(1, 2), out=flat.transpose(0, 1))
                    delta = torch.where(below.transpose(0, 1) > 0, flat, 0.0)
            first = delta if len(self.weights) > 1 else delta.transpose(0, 1)
            self._update(inputs.T, first.reshape(count, -1), updates)
        return losses

    def _update(self, inputs: Tensor, delta: Tensor, updates: list[tuple[int, Tensor, Tensor]]) -> None:
        """Add -eta g to the weights, or move them by it with momentum; delta is already scaled by -eta."""
        parameters, targets = self._all(), self.moving or self._all()
        if self.moving:
            for moving, parameter, factor in zip(self.moving, parameters, self._factors, strict=True):
                moving.mul_(factor)
                if self.rule == "nesterov":
                    parameter.sub_(moving)
        targets[0].addmm_(inputs, delta)
        for depth, below, change in updates:
            targets[depth].baddbmm_(below, change)
            targets[len(self.weights) + depth - 1].add_(change.sum(1, keepdim=True))
        if self.moving:
            for moving, parameter, factor in zip(self.moving, parameters, self._factors, strict=True):
                if self.rule == "nesterov":
                    parameter.addcmul_(moving, 1 + factor)
                else:
                    parameter.add_(moving)

    def evaluate(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean loss (K,) in nats and error (K,), a share, without training."""
        with torch.no_grad():
            logits = self._forward(self._with_ones(inputs))[-1]
            return _scores(logits, labels)

    def keep(self, index: Tensor) -> None:
        """Drop all trials but those indexed (int64)."""
        count = self.trials

        def chosen(tensor: Tensor, first: bool) -> Tensor:
            if first:
                return tensor.view(len(tensor), count, -1)[:, index].flatten(1).contiguous()
            return tensor[index].contiguous()

        self.weights = [chosen(w, i == 0) for i, w in enumerate(self.weights)]
        self.biases = [chosen(b, False) for b in self.biases]
        self.moving = [chosen(v, i == 0) for i, v in enumerate(self.moving)]
        self.trials = len(index)
        self._set(self.rates[index], self.momenta[index])

    def state(self) -> dict[str, Tensor]:
        """Weights, velocities, rates and momenta."""
        named = {f"p{i}": p for i, p in enumerate(self._all())} | {f"v{i}": v for i, v in enumerate(self.moving)}
        return {**named, "rates": self.rates, "momenta": self.momenta}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state, also one of fewer trials."""
        like = self.weights[0]
        own = {name: tensor.to(like.device).clone() for name, tensor in state.items()}
        count = len(self.weights)
        self.weights = [own[f"p{i}"] for i in range(count)]
        self.biases = [own[f"p{i}"] for i in range(count, 2 * count - 1)]
        self.moving = [own[f"v{i}"] for i in range(2 * count - 1)] if self.rule != "sgd" else []
        self.trials = len(own["rates"])
        self._set(own["rates"], own["momenta"])

    def parameters(self, trial: int) -> dict[str, Tensor]:
        """One trial's parameters, named and shaped as in its module."""
        first = self.weights[0].view(len(self.weights[0]), self.trials, -1)[:, trial]
        found = {f"{self.names[0]}.weight": first[:-1].T, f"{self.names[0]}.bias": first[-1]}
        for name, weight, bias in zip(self.names[1:], self.weights[1:], self.biases, strict=True):
            found |= {f"{name}.weight": weight[trial].T, f"{name}.bias": bias[trial, 0]}
        return {name: tensor.clone() for name, tensor in found.items()}


class _Named:
    """What the two programs for any module share: named parameters (K, ...) and their update."""

    def __init__(self, models: Sequence[nn.Module], rule: Rule, rates: Tensor, momenta: Tensor) -> None:
        check_rates(rule, len(models), rates, momenta)
        self.trials, self.rule, self.model = len(models), rule, models[0]
        named = [dict(model.named_parameters()) for model in models]
        if any(True for _ in self.model.buffers()):
            raise ConfigError("a model with buffers (batch norm?) cannot be stacked", remedy="use one without")
        self.stacked = {n: torch.stack([own[n].detach() for own in named]) for n in named[0]}
        like = next(iter(self.stacked.values()))
        self.moving = {n: torch.zeros_like(p) for n, p in self.stacked.items()} if rule != "sgd" else {}
        self.rates, self.momenta = rates.to(like), momenta.to(like)

    def _logits(self, parameters: dict[str, Tensor], inputs: Tensor) -> Tensor:
        logits: Tensor = torch.func.functional_call(self.model, parameters, (inputs,))
        return logits

    def _loss(self, parameters: dict[str, Tensor], inputs: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self._logits(parameters, inputs), labels)

    def _move(self, gradients: Mapping[str, Tensor]) -> None:
        for name, parameter in self.stacked.items():
            shape = (-1, *[1] * (parameter.dim() - 1))
            rate, factor, change = self.rates.view(shape), self.momenta.view(shape), gradients[name]
            if self.rule != "sgd":
                velocity = self.moving[name].mul_(factor).add_(change)
                change = velocity if self.rule == "momentum" else change + factor * velocity
            parameter.sub_(rate * change)

    def keep(self, index: Tensor) -> None:
        """Drop all trials but those indexed (int64)."""
        self.stacked = {n: p[index].contiguous() for n, p in self.stacked.items()}
        self.moving = {n: v[index].contiguous() for n, v in self.moving.items()}
        self.rates, self.momenta, self.trials = self.rates[index], self.momenta[index], len(index)

    def state(self) -> dict[str, Tensor]:
        """Weights, velocities, rates and momenta."""
        named = {f"p.{n}": p for n, p in self.stacked.items()} | {f"v.{n}": v for n, v in self.moving.items()}
        return {**named, "rates": self.rates, "momenta": self.momenta}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take over a state, also one of fewer trials."""
        own = {name: tensor.to(self.rates.device).clone() for name, tensor in state.items()}
        self.stacked = {n: own[f"p.{n}"] for n in self.stacked}
        self.moving = {n: own[f"v.{n}"] for n in self.moving}
        self.rates, self.momenta, self.trials = own["rates"], own["momenta"], len(own["rates"])

    def parameters(self, trial: int) -> dict[str, Tensor]:
        """One trial's parameters, named and shaped as in its module."""
        return {name: tensor[trial].clone() for name, tensor in self.stacked.items()}


class VmapProgram(_Named):
    """Any module without buffers, its trials under `torch.func.vmap`."""

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Take one step on a batch that all trials share; return the mean loss (K,) before it."""
        each: Callable[..., Any] = torch.func.vmap(torch.func.grad_and_value(self._loss), in_dims=(0, None, None))
        gradients, losses = each(self.stacked, inputs, labels)
        with torch.no_grad():
            self._move(gradients)
        return losses  # type: ignore[no-any-return]

    def evaluate(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean loss (K,) in nats and error (K,), a share, without training."""
        with torch.no_grad():
            call: Any = torch.func.vmap(self._logits, in_dims=(0, None))
            return _scores(call(self.stacked, inputs), labels)


class LoopProgram(_Named):
    """Any module without buffers, its trials one after the other; on a CPU as fast as vmap for convolutions."""

    def step(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """Take one step on a batch that all trials share; return the mean loss (K,) before it."""
        losses: list[Tensor] = []
        found: list[tuple[Tensor, ...]] = []
        for trial in range(self.trials):
            own = {n: p[trial].detach().requires_grad_() for n, p in self.stacked.items()}
            loss = self._loss(own, inputs, labels)
            found.append(torch.autograd.grad(loss, list(own.values())))
            losses.append(loss.detach())
        with torch.no_grad():
            self._move({n: torch.stack(g) for n, g in zip(self.stacked, zip(*found, strict=True), strict=True)})
        return torch.stack(losses)

    def evaluate(self, inputs: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean loss (K,) in nats and error (K,), a share, without training."""
        with torch.no_grad():
            own = [self.parameters(trial) for trial in range(self.trials)]
            return _scores(torch.stack([self._logits(p, inputs) for p in own]), labels)


def _scores(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Mean loss (K,) and error (K,) of logits (K, N, classes). Not-a-number logits count as errors."""
    losses = -logits.log_softmax(-1).gather(-1, labels.expand(len(logits), -1)[..., None]).mean((1, 2))
    right = (logits.argmax(-1) == labels) & logits.isfinite().all(-1)
    return losses, 1 - right.float().mean(1)


def is_mlp(model: nn.Module) -> bool:
    """Whether a model is a Sequential of Flatten, Linear with bias and ReLU between them, as `FusedMLP` takes."""
    if not isinstance(model, nn.Sequential):
        return False
    kinds = [m for m in model if not isinstance(m, nn.Flatten)]
    linear = all(isinstance(m, nn.Linear) and m.bias is not None for m in kinds[::2])
    return len(kinds) % 2 == 1 and linear and all(isinstance(m, nn.ReLU) for m in kinds[1::2])


def build(models: Sequence[nn.Module], rule: Rule, rates: Tensor, momenta: Tensor, method: str = "auto") -> Program:
    """Stack models of one architecture with a learning rate and a momentum each.

    Args:
        models: K modules of one architecture that map (B, ...) to logits (B, classes). rule: `sgd`, `momentum` or
            `nesterov`. rates, momenta: (K,) float. method: `fused`, `vmap`, `loop`, or `auto`: the fastest as
            measured, fused for MLPs everywhere, else vmap on a GPU and a loop on a CPU.

    Raises:
        ConfigError: counts or values that do not fit, a model that the method cannot take, an unknown method.
    """
    on_gpu = next(models[0].parameters()).is_cuda
    if method == "auto":
        method = "fused" if is_mlp(models[0]) else ("vmap" if on_gpu else "loop")
    if method == "fused":
        if not is_mlp(models[0]):
            raise ConfigError("only MLPs (Linear, ReLU, Linear, ...) can be fused", remedy="use vmap or loop")
        return FusedMLP([m for m in models if isinstance(m, nn.Sequential)], rule, rates, momenta)
    programs: dict[str, type[VmapProgram] | type[LoopProgram]] = {"vmap": VmapProgram, "loop": LoopProgram}
    if method not in programs:
        raise ConfigError(f"unknown method {method!r}", remedy="known: auto, fused, vmap, loop")
    return programs[method](models, rule, rates, momenta)

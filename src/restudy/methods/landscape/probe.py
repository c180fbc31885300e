"""Loss and gradient of one batch at weights of your choosing, the model itself left as it was, bit for bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from restudy.errors import ConfigError

Objective = Callable[[nn.Module], Tensor]
"""Runs the model on a batch and returns the loss, a scalar: `lambda net: F.cross_entropy(net(images), labels)`."""
Weights = Mapping[str, Tensor]
Mode = str


@dataclass(frozen=True)
class Point:
    """What a probe saw at one place: the loss, its gradient by parameter name, and at watched modules' outputs."""

    loss: Tensor
    gradient: dict[str, Tensor]
    outputs: dict[str, Tensor] = field(default_factory=dict)
    output_gradients: dict[str, Tensor] = field(default_factory=dict)


class _Wrapped(nn.Module):
    """Calls the objective as a forward pass, so that `functional_call` can exchange the parameters."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model, self.objective = model, objective

    def forward(self) -> Tensor:
        """Return the objective's loss."""
        return self.objective(self.model)


class Probe:
    """Evaluates an objective around a model's current weights.

    Every evaluation sees the same batch, the same buffers and the same random numbers (dropout, noise layers): those
    that the model's next forward pass would see, or those of `seed`. Parameters, their `.grad`, buffers (running
    statistics of batch norms), modes and the random state of the CPU and of the model's device are afterwards what
    they were. A module that counts in plain Python attributes is beyond its reach.

    Args:
        model: any module; only parameters that require a gradient are moved. objective: see `Objective`.
        mode: `train` puts all modules into training mode while probing (a batch norm then uses its batch's
            statistics, as training does), `as_is` leaves them. seed: fixes the random numbers; None takes the current
            state of the generators.

    Raises:
        ConfigError: no parameter requires a gradient, or an unknown mode.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, *, mode: Mode = "train", seed: int | None = None
    ) -> None:
        if mode not in ("train", "as_is"):
            raise ConfigError(f"mode {mode!r} is not known", where="Probe", remedy="allowed: train, as_is")
        self.model, self.mode, self.seed = model, mode, seed
        self.weights: dict[str, Tensor] = {n: p.detach() for n, p in model.named_parameters() if p.requires_grad}
        if not self.weights:
            raise ConfigError("no parameter requires a gradient", where="Probe", remedy="unfreeze some")
        first = next(iter(self.weights.values())).device
        self._devices = [first] if first.type == "cuda" else []
        self._wrapped = _Wrapped(model, objective)
        self._states = (torch.get_rng_state(), [torch.cuda.get_rng_state(device) for device in self._devices])

    def loss(self, weights: Weights | None = None) -> Tensor:
        """Return the loss at `weights` (the current ones by default), a scalar without graph."""
        with self._undisturbed(), torch.no_grad():
            return self._run(self.weights if weights is None else weights).detach()

    def point(self, weights: Weights | None = None, *, watch: Sequence[str] = (), keep_outputs: bool = False) -> Point:
        """Return loss and gradient at `weights`; `watch` names modules whose outputs' gradients are wanted too.

        Raises:
            ConfigError: a watched module does not exist, or did not run.
        """
        with self._undisturbed(), torch.enable_grad():
            leaves = self.leaves(weights)
            with self._watching(watch) as outputs:
                loss = self._run(leaves)
            if missing := [name for name in watch if name not in outputs]:
                raise ConfigError(f"modules {', '.join(missing)} did not run", where="Probe", remedy="watch others")
            seen = [outputs[name] for name in watch]
            found = torch.autograd.grad(loss, [*leaves.values(), *seen], allow_unused=True, materialize_grads=True)
        kept = {name: outputs[name].detach() for name in watch} if keep_outputs else {}
        gradient = dict(zip(leaves, found[: len(leaves)], strict=True))
        return Point(loss.detach(), gradient, kept, dict(zip(watch, found[len(leaves) :], strict=True)))

    def outputs(self, names: Sequence[str]) -> dict[str, Tensor]:
        """Return the outputs of the named modules at the current weights; a forward pass without graph.

        Raises:
            ConfigError: as in `point`.
        """
        with self._undisturbed(), torch.no_grad(), self._watching(names) as seen:
            self._run(self.weights)
        if missing := [name for name in names if name not in seen]:
            raise ConfigError(f"modules {', '.join(missing)} did not run", where="Probe", remedy="watch others")
        return {name: seen[name].detach() for name in names}

    @contextmanager
    def graph(self, weights: Weights | None = None) -> Iterator[tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]]:
        """Give loss, leaves and first gradients with their graph, for second derivatives inside the context."""
        with self._undisturbed(), torch.enable_grad():
            leaves = self.leaves(weights)
            loss = self._run(leaves)
            options: dict[str, Any] = {"create_graph": True, "allow_unused": True, "materialize_grads": True}
            first = torch.autograd.grad(loss, list(leaves.values()), **options)
            yield loss, leaves, dict(zip(leaves, first, strict=True))

    def leaves(self, weights: Weights | None = None) -> dict[str, Tensor]:
        """Return `weights` as new leaves that require a gradient, sharing memory with what was given."""
        return {n: w.detach().requires_grad_() for n, w in (self.weights if weights is None else weights).items()}

    def moved(self, gradient: Weights, size: float, only: Sequence[str] | None = None) -> dict[str, Tensor]:
        """Return the current weights minus `size` times the gradient, at all parameters or at those named."""
        chosen = self.weights.keys() if only is None else set(only)
        return {  # a clone keeps the memory format, which a difference of two may not
            n: w.clone().sub_(gradient[n], alpha=size) if n in chosen and size else w for n, w in self.weights.items()
        }

    def _run(self, weights: Weights) -> Tensor:
        """Run the objective with these weights and a copy of the buffers, from the fixed random state."""
        if self.seed is not None:
            torch.default_generator.manual_seed(self.seed)
            for device in self._devices:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(self.seed)
        else:
            torch.set_rng_state(self._states[0])
            for device, state in zip(self._devices, self._states[1], strict=True):
                torch.cuda.set_rng_state(state, device)
        given = {f"model.{n}": w for n, w in weights.items()}
        given |= {f"model.{n}": b.detach().clone() for n, b in self.model.named_buffers()}
        loss: Tensor = functional_call(self._wrapped, given, ())
        if loss.dim() != 0:
            raise ConfigError(f"the objective returns shape {tuple(loss.shape)}", remedy="return a scalar")
        return loss

    @contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Set the mode, and restore modes and random states on leaving, also after an error."""
        modes = [(module, module.training) for module in self.model.modules()]
        with torch.random.fork_rng(devices=[d.index or 0 for d in self._devices]):
            try:
                if self.mode == "train":
                    self.model.train()
                yield
            finally:
                for module, training in modes:
                    module.training = training

    @contextmanager
    def _watching(self, names: Sequence[str]) -> Iterator[dict[str, Tensor]]:
        """Collect the outputs of the named modules."""
        modules, outputs = dict(self.model.named_modules()), {}
        unknown = [name for name in names if name not in modules]
        if unknown:
            raise ConfigError(f"no module {', '.join(unknown)}", where="Probe", remedy="see model.named_modules()")

        def keep(name: str) -> Callable[..., None]:
            def hook(module: nn.Module, inputs: Any, output: Tensor) -> Tensor:
                outputs[name] = output
                return output.clone()  # what follows may work in place

            return hook  # type: ignore[return-value]

        handles = [modules[name].register_forward_hook(keep(name)) for name in names]
        try:
            yield outputs
        finally:
            for handle in handles:
                handle.remove()


def norm(vector: Weights) -> float:
    """Return the Euclidean norm over all tensors, accumulated in float64; infinity or NaN where the numbers are."""
    return float(torch.stack([t.double().square().sum() for t in vector.values()]).sum().sqrt())


def dot(first: Weights, second: Weights) -> float:
    """Return the inner product over all tensors of `first`, accumulated in float64."""
    return float(torch.stack([(t.double() * second[n].double()).sum() for n, t in first.items()]).sum())


def minus(first: Weights, second: Weights) -> dict[str, Tensor]:
    """Return the difference tensor by tensor."""
    return {n: t - second[n] for n, t in first.items()}

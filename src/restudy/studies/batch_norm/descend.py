"""Plain gradient descent with probes on the way, resumable bit for bit. No momentum, no schedule, as in the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from restudy.errors import ResultError
from restudy.methods.training.checkpoint import load_checkpoint, save_checkpoint

Rows = dict[str, list[dict[str, Any]]]


class Task(Protocol):
    """What is descended: `run` returns loss (scalar) and accuracy (scalar tensor, or NaN) of one step's batch."""

    def run(self, model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Loss and accuracy of `step`'s batch."""
        ...

    def noise_seed(self, step: int) -> int:
        """What the global random state is set to before the forward pass of `step`."""
        ...


@dataclass
class State:
    """How far a run has come: steps taken, rows of its tables, where it diverged (or -1), what observers keep."""

    step: int = 0
    diverged: int = -1
    rows: Rows = field(default_factory=dict)
    kept: dict[str, Tensor] = field(default_factory=dict)

    def add(self, table: str, *rows: dict[str, Any]) -> None:
        """Append rows to a table."""
        self.rows.setdefault(table, []).extend(rows)


def probe_steps(steps: int, dense_every: int, dense_until: int, sparse_every: int) -> list[int]:
    """The steps before which probes look: every `dense_every` up to `dense_until`, then every `sparse_every`."""
    dense = range(0, min(dense_until, steps - 1) + 1, dense_every)
    sparse = range(dense_until + sparse_every, steps, sparse_every)
    return sorted({*dense, *sparse})


def descend(
    model: nn.Module,
    task: Task,
    *,
    rate: float,
    steps: int,
    window: int,
    chance: float,
    look: Callable[[int, State], None],
    look_at: Collection[int],
    checkpoint: Path,
    checkpoint_every: int,
) -> State:
    """Take `steps` steps of gradient descent in place; the model stays in training mode.

    Args:
        window: steps that a row of the table `curves` averages over. chance: accuracy of a run after it diverged (a
            loss that is not finite), its loss is then NaN. look: called before the steps of `look_at`; must not change
            model or random state. checkpoint: written every `checkpoint_every` steps; a run that finds it goes on
            there and gives the bytes of an undisturbed one.

    Raises:
        ResultError: a checkpoint that is damaged or of another model.
    """
    state = _resume(checkpoint, model)
    parameters = list(model.parameters())
    losses: list[Tensor] = []
    hits: list[Tensor] = []
    model.train()
    with torch.random.fork_rng(devices=_devices(model)):
        while state.step < steps and state.diverged < 0:
            step = state.step
            if step in look_at:
                look(step, state)
            torch.manual_seed(task.noise_seed(step))
            loss, accuracy = task.run(model, step)
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients, strict=True):
                    parameter.sub_(gradient, alpha=rate)
            losses.append(loss.detach())
            hits.append(accuracy)
            state.step += 1
            if state.step % window == 0 or state.step == steps:
                _close_window(state, losses, hits, chance)
                losses, hits = [], []
                if state.step % checkpoint_every == 0:
                    _save(checkpoint, model, state)
    while state.step < steps:
        state.step = min(steps, state.step + window)
        state.add("curves", {"step": state.step, "loss": math.nan, "accuracy": chance})
    return state


def _close_window(state: State, losses: list[Tensor], hits: list[Tensor], chance: float) -> None:
    """Average a window's steps into one row; a loss that is not finite ends the run."""
    loss, accuracy = float(torch.stack(losses).double().mean()), float(torch.stack(hits).double().mean())
    if not math.isfinite(loss):
        state.diverged, loss, accuracy = state.step, math.nan, chance
    state.add("curves", {"step": state.step, "loss": loss, "accuracy": accuracy})


def _save(path: Path, model: nn.Module, state: State) -> None:
    save_checkpoint(path, {"model": model.state_dict(), **vars(state)})


def _resume(path: Path, model: nn.Module) -> State:
    content = load_checkpoint(path)
    if content is None:
        return State()
    try:
        model.load_state_dict(content.pop("model"))
        return State(**content)
    except (RuntimeError, TypeError, KeyError) as error:
        raise ResultError("the checkpoint is of another run", where=str(path), remedy="delete it") from error


def _devices(model: nn.Module) -> list[int]:
    device = next(model.parameters()).device
    return [device.index or 0] if device.type == "cuda" else []

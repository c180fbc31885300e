"""Training that a kill interrupts and the next run goes on with, to the same bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from numbers import Real
from pathlib import Path
from typing import Any, Protocol

import torch

from restudy.errors import ResultError
from restudy.methods.training.checkpoint import load_checkpoint, save_checkpoint


class Curves(Protocol):
    """Where live curves go: `Context.live(seed)` gives one."""

    def log(self, step: int, **values: float) -> None:
        """Send the numbers of a step."""
        ...


class Resumable:
    """A loop over units (steps, epochs) that saves its parts and goes on where it was killed.

        records: list[dict[str, float]] = []
        run = Resumable(checkpoints / "s0.pt", recipe, model=model, optimizer=optimizer, records=records)
        for epoch in run.units(epochs):
            records.append({"loss": train(model, optimizer, epoch)})

    What a unit does must follow from its number and the parts: chance drawn from a generator that is a part, or from
    one made anew from the unit's number.

    Attributes:
        done: units that are finished, those of an earlier run included.
    """

    def __init__(self, path: Path | None, recipe: Any, live: Curves | None = None, **parts: Any) -> None:
        """Take up the checkpoint, where there is one.

        Args:
            path: the checkpoint's file; None saves nothing.
            recipe: what is trained and how: a dataclass or mapping of plain values; stands in the checkpoint.
            live: told the numbers of the last mapping in the part `records` after each unit.
            parts: what changes while training: objects with `state_dict` and `load_state_dict`, random generators,
                lists and dicts of plain values (restored in place).

        Raises:
            ResultError: a checkpoint that is damaged or of another recipe.
        """
        self.path, self.live, self.parts, self.done = path, live, parts, 0
        self.recipe = asdict(recipe) if is_dataclass(recipe) and not isinstance(recipe, type) else dict(recipe)
        content = load_checkpoint(path) if path is not None else None
        if content is None:
            return
        if content.get("recipe") != self.recipe or content.get("parts", {}).keys() != parts.keys():
            raise ResultError("the checkpoint is of another run", where=str(path), remedy="delete it")
        self.done = int(content["done"])
        for name, part in parts.items():
            _restore(part, content["parts"][name])

    def units(self, total: int, every: int = 1) -> Iterator[int]:
        """Yield the numbers of the units that are left below `total`; save after each `every` units and the last.

        A loop that breaks off saves nothing of the unit at which it does; `save` does.
        """
        while self.done < total:
            yield self.done
            self.done += 1
            if self.live is not None:
                self._tell(self.live)
            if self.done % every == 0 or self.done == total:
                self.save()

    def save(self) -> None:
        """Write all parts as they are."""
        if self.path is not None:
            parts = {name: _state(part) for name, part in self.parts.items()}
            save_checkpoint(self.path, {"recipe": self.recipe, "done": self.done, "parts": parts})

    def _tell(self, live: Curves) -> None:
        records = self.parts.get("records")
        if isinstance(records, list) and records and isinstance(records[-1], Mapping):
            numbers = {k: float(v) for k, v in records[-1].items() if isinstance(v, Real) and math.isfinite(v)}
            live.log(self.done, **{k: v for k, v in numbers.items() if k != "step"})


def _state(part: Any) -> Any:
    if isinstance(part, torch.Generator):
        return part.get_state()
    return part.state_dict() if hasattr(part, "state_dict") else part


def _restore(part: Any, saved: Any) -> None:
    if isinstance(part, torch.Generator):
        part.set_state(saved)
    elif isinstance(part, list):
        part[:] = saved
    elif isinstance(part, dict):
        part.clear()
        part.update(saved)
    else:
        part.load_state_dict(saved)

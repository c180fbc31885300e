"""Whether a user's arrays fit each other and the loss, said in one line before anything is computed."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from restudy.errors import ConfigError

IGNORED = -100
"""A target of cross-entropy that counts for nothing."""


def prepared(data: Mapping[str, Tensor], loss: str, precision: torch.dtype) -> dict[str, Tensor]:
    """The arrays as a model takes them: whole numbers int64, real ones in the precision of its parameters.

    Args:
        data: `targets`, arguments of the model, and `lengths` where there are some; examples first. loss:
            `cross_entropy` or `mse`. precision: dtype of the model's parameters.

    Raises:
        ConfigError: arrays that are missing, empty, not finite, or of other lengths; targets or lengths that make no
            sense. The message names the array.
    """
    shapes = {name: tuple(values.shape) for name, values in data.items()}
    if "targets" not in data or not set(data) - {"targets", "lengths"}:
        raise _wrong(f"data hold {_listed(shapes)}", "give `targets` and `inputs` (or named arguments), one an example")
    for name, shape in shapes.items():
        if not shape:
            raise _wrong(f"`{name}` is a single number", "give arrays with the examples first")
    if len({shape[0] for shape in shapes.values()}) != 1:
        remedy = "give arrays with the examples first, as many in each"
        raise _wrong(f"data hold {_listed(shapes)}, of different lengths", remedy)
    for name, shape in shapes.items():
        if 0 in shape:
            what = f"`{name}` of shape {shape} is empty"
            raise _wrong(what, "give at least one example, with at least one token")
    found = {name: _typed(name, values, precision) for name, values in data.items()}
    _check_targets(found["targets"], loss)
    if "lengths" in found:
        _check_lengths(found)
    return found


def _typed(name: str, values: Tensor, precision: torch.dtype) -> Tensor:
    if values.is_complex():
        raise _wrong(f"`{name}` holds complex numbers", "give real or whole ones")
    if not values.is_floating_point():
        return values if values.dtype == torch.bool else values.long()
    if not bool(torch.isfinite(values).all()) and name in ("targets", "lengths", "inputs"):
        row = int(torch.nonzero(~torch.isfinite(values.reshape(len(values), -1)).all(1))[0])
        raise _wrong(f"`{name}` of example {row} is not finite", "leave that example out")
    return values.to(precision)


def _check_targets(targets: Tensor, loss: str) -> None:
    if loss == "mse":
        return
    if targets.is_floating_point() or targets.dtype == torch.bool:
        kind = str(targets.dtype).removeprefix("torch.")
        raise _wrong(f"`targets` are {kind}", "cross-entropy takes classes as whole numbers; or use --loss mse")
    low = int(targets.min())
    if low < 0 and bool(((targets < 0) & (targets != IGNORED)).any()):
        raise _wrong(f"`targets` hold {low}", f"classes start at 0; {IGNORED} leaves a target out")
    if bool((targets == IGNORED).all()):
        raise _wrong(f"all `targets` are {IGNORED}, which leaves them out", "give some targets")


def _check_lengths(data: Mapping[str, Tensor]) -> None:
    lengths = data["lengths"]
    if lengths.dim() != 1 or lengths.is_floating_point() or lengths.dtype == torch.bool:
        kind = str(lengths.dtype).removeprefix("torch.")
        raise _wrong(f"`lengths` are {tuple(lengths.shape)} {kind}", "give a whole number for each example")
    rows = [values.shape[1] for name, values in data.items() if name not in ("targets", "lengths") and values.dim() > 1]
    longest = max(rows, default=int(lengths.max()))
    for row, length in enumerate(lengths.tolist()):
        if not 1 <= length <= longest:
            remedy = f"rows have 1 to {longest} tokens; leave empty sentences out"
            raise _wrong(f"`lengths` of example {row} is {length}", remedy)


def check_outputs(outputs: object, targets: Tensor, loss: str) -> None:
    """Raise ConfigError where a model's outputs do not fit the targets of a loss."""
    if not isinstance(outputs, Tensor):
        remedy = "return a tensor, a tuple that starts with one, or something with `logits`"
        raise _wrong(f"the model returns {type(outputs).__name__}", remedy)
    shapes = f"outputs of shape {tuple(outputs.shape)} do not fit targets of shape {tuple(targets.shape)}"
    if loss == "mse":
        if outputs.shape != targets.shape:
            raise _wrong(shapes, "give targets like the outputs")
        return
    if outputs.shape[:-1] != targets.shape:
        raise _wrong(shapes, "classes stand last; or use --loss mse")
    if int(targets.max()) >= outputs.shape[-1]:
        what = f"`targets` hold {int(targets.max())} where the model has classes 0 to {outputs.shape[-1] - 1}"
        raise _wrong(what, "give data and a model of the same vocabulary")


def _listed(shapes: Mapping[str, tuple[int, ...]]) -> str:
    return ", ".join(f"`{name}` {shape}" for name, shape in shapes.items()) or "nothing"


def _wrong(what: str, remedy: str) -> ConfigError:
    return ConfigError(what, where="heads", remedy=remedy)

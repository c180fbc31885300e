"""A small training loop for classifiers: deterministic, resumable, the same for every study."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError, RestudyError, ResultError
from restudy.methods.models.initializers import derive_seed
from restudy.methods.training.checkpoint import load_checkpoint, save_checkpoint

Precision = Literal["float32", "bfloat16"]
FORMAT = 1
_CHECK_EVERY = 50


@dataclass(frozen=True)
class Epoch:
    """Mean loss (nats) and accuracy of one epoch's batches, each measured before its own step."""

    epoch: int
    loss_nats: float
    accuracy: float


@dataclass
class History:
    """What happened: one entry for each epoch, whether accuracy ended it, from which epoch it was resumed."""

    epochs: list[Epoch] = field(default_factory=list)
    stopped_early: bool = False
    resumed_from: int = 0

    @property
    def steps_accuracy(self) -> float:
        """Accuracy of the last epoch, measured while it trained; NaN before the first."""
        return self.epochs[-1].accuracy if self.epochs else math.nan


@dataclass(frozen=True)
class Settings:
    """Everything besides model and data that determines the result; stands in every checkpoint."""

    batch_size: int
    learning_rate: float
    weight_decay: float
    seed: int
    precision: str
    channels_last: bool
    data: str
    model: str


def train_classifier(
    model: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    stop_at_train_accuracy: float | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: int = 1,
    weight_decay: float = 0.0,
    precision: Precision = "float32",
    channels_last: bool = False,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> History:
    """Train a classifier in place with Adam and cross-entropy; the model is left in evaluation mode.

    Args:
        model: maps (B, ...) to logits (B, classes); decides the device. inputs: (N, ...) float; labels:
        (N,) int64. Moved to the model's device as a whole. epochs, batch_size, learning_rate, weight_decay:
        as usual; the last batch of an epoch may be smaller. seed: determines the order of the data (and
        dropout), nothing else does: runs of the same seed that differ
            in labels or weights see the images in the same order.
        stop_at_train_accuracy: end after the first epoch whose running accuracy reaches this share (0 to
        1). checkpoint: file written every `checkpoint_every` epochs and at the end, atomically; a run that
        finds it
            continues there, and the weights are bitwise those of an undisturbed run (same thread count).
        precision: `bfloat16` runs the forward pass under autocast; weights and Adam stay float32.
        channels_last: memory format of images and convolutions; about 1.3 times faster on a CPU.

    Raises:
        ConfigError: arguments that do not fit. ResultError: a checkpoint of other settings or data, or
        damaged. RestudyError: the loss is not finite; the message names epoch and step.

    """
    _check(inputs, labels, epochs, batch_size, learning_rate, stop_at_train_accuracy, precision)
    device = next(model.parameters()).device
    weights, data = _digest(model.state_dict().values()), _digest([inputs, labels])
    settings = Settings(batch_size, learning_rate, weight_decay, seed, precision, channels_last, data, weights)
    if channels_last:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.Adam(model.parameters(), learning_rate, weight_decay=weight_decay, fused=True)
    history = _resume(checkpoint, model, optimizer, settings)
    _refuse_too_long(history, epochs, stop_at_train_accuracy, checkpoint)
    inputs, labels = inputs.to(device), labels.to(device)
    while len(history.epochs) < epochs and not _reached(history, stop_at_train_accuracy):
        history.epochs.append(_train_epoch(model, optimizer, inputs, labels, len(history.epochs), settings))
        last = len(history.epochs) == epochs or _reached(history, stop_at_train_accuracy)
        if checkpoint is not None and (last or len(history.epochs) % checkpoint_every == 0):
            _save(checkpoint, model, optimizer, settings, history)
        if on_epoch is not None:
            on_epoch(history.epochs[-1])
    history.stopped_early = len(history.epochs) < epochs
    model.eval()
    return history


def evaluate(model: nn.Module, inputs: Tensor, labels: Tensor, *, batch_size: int = 256) -> tuple[float, float]:
    """Return mean cross-entropy (nats) and accuracy in evaluation mode; the model's mode is restored."""
    modes = [(module, module.training) for module in model.modules()]
    device = next(model.parameters()).device
    loss, hits = 0.0, 0
    try:
        model.eval()
        with torch.no_grad():
            for start in range(0, len(inputs), batch_size):
                target = labels[start : start + batch_size].to(device)
                logits = model(inputs[start : start + batch_size].to(device))
                loss += float(F.cross_entropy(logits, target, reduction="sum"))
                hits += int((logits.argmax(1) == target).sum())
    finally:
        for module, training in modes:
            module.training = training
    return loss / len(inputs), hits / len(inputs)


def _train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    labels: Tensor,
    number: int,
    settings: Settings,
) -> Epoch:
    generator = torch.Generator().manual_seed(derive_seed(settings.seed, "order", number))
    order = torch.randperm(len(inputs), generator=generator).to(inputs.device)
    with _seeded(inputs.device, derive_seed(settings.seed, "dropout", number)):
        losses, hits = _steps(model, optimizer, inputs, labels, order, number, settings)
    sizes = [len(part) for part in order.split(settings.batch_size)]  # type: ignore[no-untyped-call]
    total = sum(float(loss) * size for loss, size in zip(losses, sizes, strict=True))
    return Epoch(number + 1, total / len(inputs), hits / len(inputs))


def _steps(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    inputs: Tensor,
    labels: Tensor,
    order: Tensor,
    number: int,
    settings: Settings,
) -> tuple[list[Tensor], int]:
    """Take one step for each batch of `order`; return the losses and the number of hits."""
    losses: list[Tensor] = []
    hits = torch.zeros((), dtype=torch.int64, device=inputs.device)
    model.train()
    for start in range(0, len(order), settings.batch_size):
        chosen = order[start : start + settings.batch_size]
        images, target = inputs[chosen], labels[chosen]
        if settings.channels_last and images.dim() == 4:
            images = images.contiguous(memory_format=torch.channels_last)
        with torch.autocast(images.device.type, torch.bfloat16, enabled=settings.precision == "bfloat16"):
            logits = model(images)
        logits = logits.float() if logits.dtype == torch.bfloat16 else logits
        loss = F.cross_entropy(logits, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(loss.detach())
        hits += (logits.detach().argmax(1) == target).sum()
        if len(losses) % _CHECK_EVERY == 0:
            _refuse_divergence(losses, number, settings)
    _refuse_divergence(losses, number, settings)
    return losses, int(hits)


def _refuse_divergence(losses: Sequence[Tensor], number: int, settings: Settings) -> None:
    """Raise RestudyError if a recent loss is not finite; looked at now and then, as a GPU would have to wait."""
    first = max(0, len(losses) - _CHECK_EVERY)
    for step, loss in enumerate(torch.stack(list(losses[first:])).tolist(), start=first + 1):
        if not math.isfinite(loss):
            raise RestudyError(
                f"the loss is {loss} in epoch {number + 1}, step {step}",
                where="training",
                remedy=f"lower learning_rate (now {settings.learning_rate:g}) or check the inputs",
            )


def _seeded(device: torch.device, seed: int) -> Any:
    """Return a context with the global random state set for dropout, restored on leaving."""

    class Seeded:
        def __enter__(self) -> None:
            self.fork = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
            self.fork.__enter__()
            torch.manual_seed(seed)

        def __exit__(self, *details: Any) -> None:
            self.fork.__exit__(*details)

    return Seeded()


def _reached(history: History, threshold: float | None) -> bool:
    return threshold is not None and bool(history.epochs) and history.epochs[-1].accuracy >= threshold


def _resume(path: Path | None, model: nn.Module, optimizer: torch.optim.Optimizer, settings: Settings) -> History:
    content = load_checkpoint(path) if path is not None else None
    if content is None:
        return History()
    found = content.get("settings") if content.get("format") == FORMAT else None
    if found != asdict(settings):
        changed = [key for key, value in asdict(settings).items() if not found or found.get(key) != value]
        raise ResultError(
            f"the checkpoint was made with other {', '.join(changed)}",
            where=str(path),
            remedy="delete it; training starts anew",
        )
    try:
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
    except (RuntimeError, ValueError, KeyError) as error:
        raise ResultError(
            "the checkpoint belongs to another model", where=str(path), remedy="delete it; training starts anew"
        ) from error
    epochs = [Epoch(**record) for record in content["epochs"]]
    return History(epochs, resumed_from=len(epochs))


def _save(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, settings: Settings, history: History) -> None:
    save_checkpoint(
        path,
        {
            "format": FORMAT,
            "settings": asdict(settings),
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "epochs": [asdict(record) for record in history.epochs],
        },
    )


def _digest(tensors: Iterable[Tensor]) -> str:
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(f"{tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _refuse_too_long(history: History, epochs: int, threshold: float | None, path: Path | None) -> None:
    """Refuse a checkpoint that an undisturbed run with these arguments would never have reached."""
    before = History(history.epochs[:-1])
    passed = any(_reached(History([record]), threshold) for record in before.epochs)
    if passed or len(history.epochs) > epochs:
        raise ResultError(
            f"the checkpoint has {len(history.epochs)} epochs, more than this run would train",
            where=str(path),
            remedy="delete it; training starts anew",
        )


def _check(
    inputs: Tensor,
    labels: Tensor,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    threshold: float | None,
    precision: str,
) -> None:
    checks = [
        (len(inputs) > 0 and labels.shape == (len(inputs),), "labels", tuple(labels.shape), "one for each input"),
        (labels.dtype == torch.int64, "labels", labels.dtype, "int64"),
        (epochs >= 0, "epochs", epochs, "at least 0"),
        (batch_size >= 1, "batch_size", batch_size, "at least 1"),
        (learning_rate > 0 and math.isfinite(learning_rate), "learning_rate", learning_rate, "above 0"),
        (threshold is None or 0 < threshold <= 1, "stop_at_train_accuracy", threshold, "above 0, at most 1"),
        (precision in ("float32", "bfloat16"), "precision", precision, "float32 or bfloat16"),
    ]
    for fine, name, value, allowed in checks:
        if not fine:
            raise ConfigError(f"{name} is {value!r}", where="train_classifier", remedy=f"allowed: {allowed}")

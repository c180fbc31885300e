"""Descend on both networks without momentum or schedule, as in the paper, and look on the way: `train` and `deep`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.methods.landscape import geometric
from restudy.methods.training import Resumable, evaluate, keep_freed_memory

from .models import VGG, Batches, DeepLinear, Task, load_images, regression, split
from .probes import Activations, Looks, Row, Seen, probe_steps

LAST = 0.1
"""Final train accuracy: the mean over this last share of the steps, each before its own step, noise included."""
NEAR, FAR = (0.5, 4.0), (0.01, 30.0)
"""Probed step lengths over the learning rate: of the convolutional nets (section 3.1), of the deep linear network."""
DEEP_MEASURED = ("layer9", "layer17", "layer25")


@dataclass(frozen=True)
class Run:
    """What is trained and how; stands in its checkpoint.

    Attributes:
        window: steps that a row of the curves averages over.
        saved_every: windows between checkpoints.
    """

    run: str
    seed: int
    steps: int
    window: int
    saved_every: int

    def labelled(self, seen: Seen, prefix: str, found: dict[str, list[Row]]) -> None:
        """Add what was seen to tables whose names have a prefix, with the run's columns in front."""
        arm, rate = split(self.run)
        where = {"run": self.run, "arm": arm, "rate": rate, "seed": self.seed}
        for table, rows in seen.rows.items():
            found[prefix + table] += [{**where, **row} for row in rows]


def descend(model: nn.Module, task: Task, run: Run, looks: Looks, context: Context) -> Seen:
    """Take all steps in place, in training mode; a run whose loss is not finite stays at NaN and chance.

    Deterministic; resuming from any checkpoint is bit-identical.
    """
    seen, curves = Seen(), list[Row]()
    parts = {"model": model, "records": curves, "rows": seen.rows, "kept": seen.kept}
    path = context.checkpoints / f"{run.run}-s{run.seed}.pt"
    loop = Resumable(path, run, context.live(run.seed), **parts)
    model.train()
    with torch.random.fork_rng(devices=[torch.device(context.device)] if context.device != "cpu" else []):
        for window in loop.units(math.ceil(run.steps / run.window), run.saved_every):
            steps = range(window * run.window, min((window + 1) * run.window, run.steps))
            loss, accuracy = math.nan, task.chance
            if not diverged(curves):
                loss, accuracy = _window(model, task, steps, split(run.run)[1], looks, seen)
            curves.append({"step": steps.stop, "loss": loss, "accuracy": accuracy})
    seen.rows["curves"] = curves
    return seen


def diverged(curves: Sequence[Row]) -> bool:
    """Tell whether a curve ended in a loss that is not finite."""
    return bool(curves) and math.isnan(curves[-1]["loss"])


def _window(
    model: nn.Module, task: Task, steps: Sequence[int], rate: float, looks: Looks, seen: Seen
) -> tuple[float, float]:
    """Take some steps; mean loss and accuracy, each before its own step."""
    parameters = list(model.parameters())
    losses: list[Tensor] = []
    hits: list[Tensor] = []
    for step in steps:
        looks.before(step, model, task, rate, seen)
        torch.manual_seed(task.noise_seed(step))
        loss, accuracy = task.run(model, step)
        gradients = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.sub_(gradient, alpha=rate)
        losses.append(loss.detach())
        hits.append(accuracy)
    mean = float(torch.stack(losses).double().mean())
    return (mean, float(torch.stack(hits).double().mean())) if math.isfinite(mean) else (math.nan, task.chance)


def train(
    context: Context,
    *,
    run: str,
    seeds: Sequence[int],
    width: int,
    steps: int,
    batch_size: int,
    train_images: int,
    test_images: int,
    watched_images: int,
    window: int,
    lengths: int,
    eigenvalue_products: int,
    probed: Sequence[str],
    layers: Sequence[int],
    samples: int,
    bins: int,
    channels_last: bool,
    **schedule: int,
) -> Outputs:
    """Train a convolutional net on Fashion-MNIST for every seed: plain SGD, no decay, no augmentation (section 2).

    Runs outside `probed` have rows in `training` and `curves` only. `schedule`: see `probe_steps`.
    """
    keep_freed_memory()
    arm, _ = split(run)
    tables = ("training", "curves", "probes", "landscape", "drift", "activations")
    found: dict[str, list[Row]] = {table: [] for table in tables}
    names = [f"conv{number}" for number in layers]
    for seed in seeds:
        images = load_images(train_images, test_images, seed).to(context.device, channels_last)
        model = VGG(arm, width, seed=seed).to(context.device)
        if channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        looks = Looks(
            frozenset(probe_steps(steps, **schedule) if run in probed else ()),
            geometric(*NEAR, lengths),
            eigenvalue_products,
            names,
            watched=[f"{name}.conv" for name in names],
            activations=Activations(images.inputs[:watched_images], names, samples, bins),
            test=(images.test_inputs[:1000], images.test_labels[:1000]),
        )
        task, this = Batches(images, batch_size, seed), Run(run, seed, steps, window, 4)
        seen = descend(model, task, this, looks, context)
        curves = seen.rows["curves"]
        last = [row["accuracy"] for row in curves if row["step"] > (1 - LAST) * steps]
        lost = diverged(curves)
        test = task.chance if lost else evaluate(model, images.test_inputs, images.test_labels)[1]
        numbers = {"train_accuracy": sum(last) / len(last), "test_accuracy": test, "diverged": float(lost)}
        seen.measure("training", numbers)
        this.labelled(seen, "", found)
    return found


def deep(
    context: Context,
    *,
    deep_run: str,
    seeds: Sequence[int],
    depth: int,
    size: int,
    samples: int,
    steps: int,
    window: int,
    lengths: int,
    eigenvalue_products: int,
    **schedule: int,
) -> Outputs:
    """Train a deep linear network for every seed by full-batch descent (appendix); tables as in `train`.

    `deep_training` holds the loss before the first and at the last step, per sample.
    """
    arm, _ = split(deep_run)
    found: dict[str, list[Row]] = {f"deep_{table}": [] for table in ("training", "curves", "probes", "landscape")}
    measured = [name for name in DEEP_MEASURED if int(name.removeprefix("layer")) <= depth] or [f"layer{depth}"]
    at = frozenset(probe_steps(steps, **schedule))
    looks = Looks(at, geometric(*FAR, lengths), eigenvalue_products, measured)
    for seed in seeds:
        task = regression(samples, size, seed=seed, device=context.device)
        model = DeepLinear(arm, depth=depth, size=size, seed=seed).to(context.device)
        first = float(task.run(model, 0)[0].detach()) / samples
        this = Run(deep_run, seed, steps, window, 10)
        seen = descend(model, task, this, looks, context)
        curves = seen.rows["curves"]
        numbers = {"first_loss": first, "last_loss": curves[-1]["loss"] / samples}
        seen.measure("training", numbers | {"diverged": float(diverged(curves))})
        this.labelled(seen, "deep_", found)
    return found

"""Stage `train`: convolutional nets on Fashion-MNIST, one job per run (arm and learning rate), with probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.methods.landscape import Probe, geometric, layer_parameters
from restudy.methods.models import derive_seed
from restudy.methods.training import evaluate, keep_freed_memory
from restudy.studies.batch_norm.descend import State, descend, probe_steps
from restudy.studies.batch_norm.nets import CLASSES, DEPTH, VGG, split
from restudy.studies.batch_norm.observe import Settings, Watch, labelled, probe_rows, schema_of

MEAN, SPREAD = 0.286, 0.353  # of Fashion-MNIST's training pixels
LAST = 0.1
"""Final train accuracy: the mean over this last share of the steps, each before its own step, noise included."""
TABLES = ("training", "curves", "probes", "landscape", "drift", "activations")


@dataclass(frozen=True)
class Images:
    """Inputs (N, 1, 28, 28) and labels (N,) to train on, to probe activations with, and to test on."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor

    def to(self, device: str, channels_last: bool) -> Images:
        """Move to the device, in the memory format that convolutions prefer there."""
        form = torch.channels_last if channels_last else torch.contiguous_format
        inputs, test = (t.to(device).contiguous(memory_format=form) for t in (self.inputs, self.test_inputs))
        return Images(inputs, self.labels.to(device), test, self.test_labels.to(device))


@dataclass(frozen=True)
class Batches:
    """The task: batches in an order that the seed alone determines, the same for every arm and learning rate."""

    images: Images
    batch_size: int
    seed: int

    def batch(self, step: int) -> tuple[Tensor, Tensor]:
        """Images and labels of a step: passes over the data, each in an order of its own, the rest left out."""
        each = len(self.images.inputs) // self.batch_size
        epoch, place = divmod(step, each)
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        order = torch.randperm(len(self.images.inputs), generator=generator)
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size].to(self.images.labels.device)
        return self.images.inputs[chosen], self.images.labels[chosen]

    def run(self, model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Cross-entropy (nats) and accuracy of the step's batch."""
        inputs, labels = self.batch(step)
        logits = model(inputs)
        return F.cross_entropy(logits, labels), (logits.detach().argmax(1) == labels).float().mean()

    def noise_seed(self, step: int) -> int:
        """The seed of the noise layers' draws in a step."""
        return derive_seed(self.seed, "noise", step)


def train_nets(
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
    dense_every: int,
    dense_until: int,
    sparse_every: int,
    lengths: int,
    eigenvalue_products: int,
    probed: Sequence[str],
    layers: Sequence[int],
    samples: int,
    bins: int,
    channels_last: bool,
) -> Outputs:
    """Train a run for every seed; returns the tables of `observe`: training, curves, probes, landscape, ...

    Runs outside `probed` have no rows in the last four. Plain SGD without momentum, decay or augmentation, as in the
    paper's section 2; the landscape is looked at for half to four times the learning rate (section 3.1).
    """
    keep_freed_memory()
    arm, rate = split(run)
    rows: dict[str, list[dict[str, Any]]] = {table: [] for table in TABLES}
    look_at = probe_steps(steps, dense_every, dense_until, sparse_every) if run in probed else []
    for seed in seeds:
        images = load(train_images, test_images, seed).to(context.device, channels_last)
        model = VGG(arm, width, seed=seed).to(context.device)
        if channels_last:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        task = Batches(images, batch_size, seed)
        names = tuple(f"conv{number}" for number in layers)
        settings = probing(model, tuple(geometric(0.5, 4.0, lengths)), eigenvalue_products, names)
        watch = Watch(shown(images, watched_images), names, samples, bins)
        state = descend(
            model,
            task,
            rate=rate,
            steps=steps,
            window=window,
            chance=1 / CLASSES,
            look=_Looks(model, task, rate, settings, watch, frozenset(look_at)),
            look_at={t for step in look_at for t in (step, step + 1)},
            checkpoint=context.checkpoints / f"{run}-s{seed}.pt",
            checkpoint_every=4 * window,
        )
        state.add("training", *_final(model, images, state, steps))
        where = {"run": run, "arm": arm, "rate": rate, "seed": seed}
        for table, found in labelled(state.rows, where).items():
            rows[table] += found
    return {table: pa.Table.from_pylist(found, schema=schema_of(table)) for table, found in rows.items()}


@dataclass(frozen=True)
class _Looks:
    """Probes and activations before a step, and the test accuracy on up to a thousand images."""

    model: nn.Module
    task: Batches
    rate: float
    settings: Settings
    watch: Watch
    steps: frozenset[int]

    def __call__(self, step: int, state: State) -> None:
        seed, here = self.task.noise_seed(step), step in self.steps
        self.watch.look(self.model, step, state, seed, here)
        if here:
            inputs, labels = self.task.batch(step)
            probe = Probe(self.model, lambda net: F.cross_entropy(net(inputs), labels), seed=seed)
            probe_rows(step, state, probe, self.rate, self.settings)
            few = self.task.images.test_inputs[:1000], self.task.images.test_labels[:1000]
            value = evaluate(self.model, *few)[1]
            state.add("probes", {"step": step, "layer": "", "metric": "test_accuracy", "value": value, "unit": "1"})


def probing(model: nn.Module, lengths: tuple[float, ...], products: int, measured: tuple[str, ...]) -> Settings:
    """What to probe in a net of blocks: a layer's step moves its gamma and beta too; its weights are compared."""
    blocks = [f"conv{number}" for number in range(1, DEPTH + 1)]
    moved = layer_parameters(model, [*blocks, "logits"])
    compared = {name: [n for n in names if n.endswith("conv.weight")] for name, names in moved.items()}
    return Settings(lengths, products, moved, compared, measured, tuple(f"{name}.conv" for name in measured))


def shown(images: Images, count: int) -> Any:
    """The objective whose forward pass shows the activations of the first `count` training images."""
    inputs = images.inputs[:count]
    return lambda net: net(inputs).sum()


def load(train_images: int, test_images: int, seed: int) -> Images:
    """The images that a seed trains on (drawn anew for each) and the first test images, standardised."""
    data = fashion_mnist.load()
    generator = torch.Generator().manual_seed(derive_seed(seed, "images"))
    index = torch.randperm(len(data.train_labels), generator=generator)[:train_images].numpy()

    def as_inputs(images: Any) -> Tensor:
        return torch.tensor(images, dtype=torch.float32).div_(255).sub_(MEAN).div_(SPREAD)[:, None]

    return Images(
        as_inputs(data.train_images[index]),
        torch.tensor(data.train_labels[index]),
        as_inputs(data.test_images[:test_images]),
        torch.tensor(data.test_labels[:test_images]),
    )


def _final(model: nn.Module, images: Images, state: State, steps: int) -> list[dict[str, Any]]:
    """Train accuracy while training (last tenth of the steps), test accuracy in evaluation mode, divergence."""
    last = [row["accuracy"] for row in state.rows["curves"] if row["step"] > (1 - LAST) * steps]
    test = evaluate(model, images.test_inputs, images.test_labels)[1] if state.diverged < 0 else 1 / CLASSES
    numbers = {"train_accuracy": sum(last) / len(last), "test_accuracy": test, "diverged": float(state.diverged >= 0)}
    return [{"metric": name, "value": value, "unit": "1"} for name, value in numbers.items()]

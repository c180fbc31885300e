"""A semi-supervised VAE whose label is summed, drawn or relaxed, on binarised Fashion-MNIST (section 5.2).

The arms by name, and the loop that trains every arm of a seed from the same networks, serve the moving digit too.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.errors import ConfigError, RestudyError
from restudy.methods.estimators import GumbelSoftmax, Marginal, RaoBlackwell, Relax, ScoreFunction
from restudy.methods.estimators.gumbel import annealed
from restudy.methods.models import derive_seed
from restudy.methods.training import Resumable, keep_freed_memory

from .models import (
    CLASSES,
    Integrand,
    LabelledVae,
    divergence_from_uniform,
    every_label,
)

if TYPE_CHECKING:
    from restudy.tracking.live import LiveCurves

Estimator = GumbelSoftmax | Marginal | RaoBlackwell | Relax | ScoreFunction
Build = Callable[[float], Estimator]
Row = dict[str, Any]
WEIGHT_DECAY = 1e-5
LABEL_UNITS = {"nelbo": "nats", "nelbo_argmax": "nats", "accuracy": "1", "likeliest": "1"}
KNOWN = "known_place"
"""The reference arm: it is told the place, and pays log K nats for it."""


class Task(Protocol):
    """What is trained: parameters, the order of the data, a loss for a batch, and measurements."""

    model: Any

    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of an epoch, the same for every arm of a seed."""
        ...

    def loss(self, batch: Any, estimator: Estimator, generator: torch.Generator) -> Tensor:
        """The scalar to go down, a pseudo-loss where z is drawn."""
        ...

    def measure(self) -> dict[str, float]:
        """Metric -> value on the validation part."""
        ...


@dataclass(frozen=True)
class Recipe:
    """How an arm is trained, whatever the task; stands in every checkpoint.

    Temperature of Gumbel-softmax: temperature * exp(-anneal_rate * step), not below the lowest.
    """

    arm: str
    seed: int
    epochs: int
    learning_rate: float
    temperature: float
    anneal_rate: float
    lowest_temperature: float


def fit(task: Task, build: Build, recipe: Recipe, checkpoint: Path, live: LiveCurves | None = None) -> list[Row]:
    """Train with Adam, in place, and measure before the first epoch and after every one.

    Args:
        build: makes the estimator at a temperature; called anew at every step for Gumbel-softmax, else once.
        checkpoint: file written after every epoch; a run that finds it goes on there, to the same bits.

    Returns:
        One record a measurement: epoch, steps taken, CPU seconds of training, and the task's metrics.

    Raises:
        RestudyError: a metric is not finite. ResultError: a checkpoint of another recipe.
    """
    estimator, rate = build(recipe.temperature), recipe.learning_rate
    optimizer = torch.optim.Adam(task.model.parameters(), rate, weight_decay=WEIGHT_DECAY, fused=True)
    parts: dict[str, Any] = {"model": task.model, "optimizer": optimizer}
    tuned: torch.optim.Optimizer | None = None
    if isinstance(estimator, Relax):
        estimator.to(next(task.model.parameters()).device)
        tuned = torch.optim.Adam(estimator.parameters(), rate, fused=True)
        parts |= {"estimator": estimator, "tuned": tuned}
    records: list[Row] = []
    run = Resumable(checkpoint, recipe, live, **parts, records=records)
    if not records:
        records.append({"epoch": 0, "steps": 0, "seconds": 0.0, **task.measure()})
    for epoch in run.units(recipe.epochs):
        steps = records[-1]["steps"]
        generator = torch.Generator().manual_seed(derive_seed(recipe.seed, "draws", epoch))
        start = time.process_time()
        for batch in task.batches(epoch):
            if isinstance(estimator, GumbelSoftmax):
                estimator = build(annealed(recipe.temperature, recipe.anneal_rate, steps, recipe.lowest_temperature))
            _step(task, estimator, batch, generator, optimizer, tuned)
            steps += 1
        seconds = records[-1]["seconds"] + time.process_time() - start
        metrics = task.measure()
        if not all(math.isfinite(v) for v in metrics.values()):
            raise RestudyError(f"{recipe.arm} diverged in epoch {epoch + 1}", remedy="lower its learning rate")
        records.append({"epoch": epoch + 1, "steps": steps, "seconds": seconds, **metrics})
    return records


def _step(
    task: Task,
    estimator: Estimator,
    batch: Any,
    generator: torch.Generator,
    optimizer: torch.optim.Optimizer,
    tuned: torch.optim.Optimizer | None,
) -> None:
    loss = task.loss(batch, estimator, generator)
    optimizer.zero_grad(set_to_none=True)
    if tuned is not None and isinstance(estimator, Relax):
        own = list(estimator.parameters())
        for parameter, gradient in zip(own, torch.autograd.grad(estimator.variance_loss, own), strict=True):
            parameter.grad = gradient
        tuned.step()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def told(records: list[Row], here: Row, evaluations: int, units: Mapping[str, str]) -> tuple[list[Row], list[Row]]:
    """Rows of a validation table and of its timings; `evaluations` of f per example and step, all added up."""
    rows = [
        {**here, "epoch": r["epoch"], "steps": r["steps"], "evaluations": r["steps"] * evaluations}
        | {"metric": metric, "value": r[metric], "unit": unit}
        for r in records
        for metric, unit in units.items()
    ]
    spent = {"metric": "train", "unit": "seconds"}
    return rows, [{**here, "epoch": r["epoch"], "value": r["seconds"], **spent} for r in records]


def builder(arm: str, categories: int, seed: int) -> Build:
    """A function from the temperature to the estimator of an arm.

    `full` sums all categories, `rb<k>` sums the k likeliest around REINFORCE, `rb<k>_plus` around REINFORCE with a
    second draw (one, shared by the summed part), `reinforce<n>` averages n draws, `reinforce_plus` has a second draw,
    `nvil` a learned baseline and two draws, `gumbel` and `gumbel_soft` relax, `rebar` and `relax` as named. The
    arm that knows the place costs one evaluation, like a single draw.

    Raises:
        ConfigError: an unknown arm.
    """
    plus = ScoreFunction("second_sample")
    table: dict[str, Build] = {
        "full": lambda _: Marginal(categories),
        "rb1": lambda _: RaoBlackwell(ScoreFunction(), 1),
        "rb1_plus": lambda _: RaoBlackwell(plus, 1),
        "rb5_plus": lambda _: RaoBlackwell(plus, 5),
        "reinforce": lambda _: ScoreFunction(),
        KNOWN: lambda _: ScoreFunction(),
        "reinforce2": lambda _: ScoreFunction(draws=2),
        "reinforce_plus": lambda _: plus,
        "nvil": lambda _: ScoreFunction("learned", draws=2),
        "gumbel": lambda temperature: GumbelSoftmax(temperature, hard=True),
        "gumbel_soft": lambda temperature: GumbelSoftmax(temperature, hard=False),
        "rebar": lambda _: _relax(categories, None, seed),
        "relax": lambda _: _relax(categories, 128, seed),
    }
    if arm not in table:
        raise ConfigError(f"unknown arm {arm!r}", remedy=f"known: {', '.join(table)}")
    return table[arm]


def _relax(categories: int, hidden: int | None, seed: int) -> Relax:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "control variate"))
        return Relax(categories, hidden=hidden)


@dataclass(frozen=True)
class Split:
    """Binary images (N, 784) float32 and labels (N,) of the three parts."""

    labelled: Tensor
    labels: Tensor
    unlabelled: Tensor
    validation: Tensor
    truth: Tensor

    def to(self, device: str) -> Split:
        """The same on a device."""
        return Split(*(part.to(device) for part in vars(self).values()))


class SemiSupervised:
    """The task of one seed: every batch holds unlabelled images and as many labelled ones."""

    def __init__(self, model: LabelledVae, split: Split, seed: int, batch_size: int) -> None:
        self.model, self.split, self.seed, self.batch_size = model, split, seed, batch_size

    def batches(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Indices of unlabelled and of labelled images; the labelled ones start anew when they are used up."""
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        order = torch.randperm(len(self.split.unlabelled), generator=generator).split(self.batch_size)  # type: ignore[no-untyped-call]
        for part in order[: len(self.split.unlabelled) // self.batch_size]:
            yield part, torch.randint(len(self.split.labels), (self.batch_size,), generator=generator)

    def loss(self, batch: tuple[Tensor, Tensor], estimator: Estimator, generator: torch.Generator) -> Tensor:
        """Negative ELBO of both parts and the cross-entropy of the labelled one, nats per image."""
        x = self.split.unlabelled[batch[0]]
        noise = torch.randn(len(x), self.model.latent, generator=generator).to(x.device)
        log_q = self.model.log_q(x)
        unlabelled = estimator.surrogate(log_q, Integrand(self.model, x, noise), generator) + divergence_from_uniform(
            log_q
        )
        return unlabelled.mean() + self.supervised(batch[1], generator)

    def supervised(self, index: Tensor, generator: torch.Generator) -> Tensor:
        """Negative ELBO with the label given, plus cross-entropy, nats per labelled image."""
        x, y = self.split.labelled[index], self.split.labels[index]
        noise = torch.randn(len(x), self.model.latent, generator=generator).to(x.device)
        value = Integrand(self.model, x, noise).at(y[None])[0]
        return value.mean() + F.cross_entropy(self.model.classifier(x), y)

    @torch.no_grad()
    def measure(self) -> dict[str, float]:
        """Validation: negative ELBO with the label summed and at the likeliest label, accuracy, likeliest q."""
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "validation"))
        total = dict.fromkeys(LABEL_UNITS, 0.0)
        for x, y in zip(self.split.validation.split(500), self.split.truth.split(500), strict=True):  # type: ignore[no-untyped-call]
            log_q = self.model.log_q(x)
            noise = torch.randn(len(x), self.model.latent, generator=generator).to(x.device)
            values = Integrand(self.model, x, noise).at(every_label(len(x)).to(x.device))
            best = log_q.argmax(1)
            total["nelbo"] += float(((log_q.exp().T * values).sum(0) + divergence_from_uniform(log_q)).sum())
            at_best = values.gather(0, best[None])[0] + math.log(CLASSES)
            total["nelbo_argmax"] += float(at_best.sum())
            total["accuracy"] += float((best == y).sum())
            total["likeliest"] += float(log_q.exp().amax(1).sum())
        return {name: value / len(self.split.validation) for name, value in total.items()}


def semi_supervised(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    cold_arms: Sequence[str],
    labelled: int,
    unlabelled: int,
    validation: int,
    hidden: int,
    classifier: int,
    latent: int,
    batch_size: int,
    warm_steps: int,
    warm_learning_rate: float,
    epochs: int,
    learning_rates: Mapping[str, float],
    temperature: float,
    anneal_rate: float,
    lowest_temperature: float,
) -> Outputs:
    """Train every arm from the same warm start; `cold_arms` also from the untrained networks.

    Returns `semi_validation` (seed, arm, start, epoch, steps, evaluations, metric, value, unit) and the volatile
    `semi_timings` (CPU seconds of training).
    """
    keep_freed_memory()
    rows: dict[str, list[Row]] = {"semi_validation": [], "semi_timings": []}
    for seed in seeds:
        split = split_of(seed, labelled, unlabelled, validation).to(context.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "networks"))
            cold = LabelledVae(hidden, classifier, latent).to(context.device)
        warm = warmed(cold, split, seed, batch_size, warm_steps, warm_learning_rate)
        runs = [("warm", warm, arm) for arm in arms] + [("cold", cold, arm) for arm in cold_arms]
        for start, initial, arm in runs:
            task = SemiSupervised(copy.deepcopy(initial), split, seed, batch_size)
            build = builder(arm, CLASSES, seed)
            rates = float(learning_rates[arm]), temperature, anneal_rate, lowest_temperature
            path = context.checkpoints / f"s{seed}-{start}-{arm}.pt"
            records = fit(task, build, Recipe(arm, seed, epochs, *rates), path, context.live(seed))
            found = told(records, {"seed": seed, "arm": arm, "start": start}, build(1.0).evaluations, LABEL_UNITS)
            for table, more in zip(rows.values(), found, strict=True):
                table += more
    return {**rows}


def split_of(seed: int, labelled: int, unlabelled: int, validation: int) -> Split:
    """A split of Fashion-MNIST drawn for the seed, pixels drawn once as 0 or 1 with their grey value as probability."""
    data = fashion_mnist.load()
    generator = torch.Generator().manual_seed(derive_seed(seed, "split"))
    order = torch.randperm(len(data.train_labels), generator=generator)[: labelled + unlabelled].numpy()
    held = torch.randperm(len(data.test_labels), generator=generator)[:validation].numpy()
    grey = torch.from_numpy(data.train_images[order]).reshape(-1, 784).float() / 255
    shown = torch.from_numpy(data.test_images[held]).reshape(-1, 784).float() / 255
    train, test = torch.bernoulli(grey, generator=generator), torch.bernoulli(shown, generator=generator)
    labels = torch.tensor(data.train_labels[order])
    return Split(train[:labelled], labels[:labelled], train[labelled:], test, torch.tensor(data.test_labels[held]))


def warmed(model: LabelledVae, split: Split, seed: int, batch_size: int, steps: int, rate: float) -> LabelledVae:
    """A copy trained on the labelled images alone."""
    found = copy.deepcopy(model)
    task = SemiSupervised(found, split, seed, batch_size)
    optimizer = torch.optim.Adam(found.parameters(), rate, weight_decay=1e-5, fused=True)
    generator = torch.Generator().manual_seed(derive_seed(seed, "warm start"))
    for _ in range(steps):
        index = torch.randint(len(split.labels), (batch_size,), generator=generator)
        loss = task.supervised(index, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return found

"""Stage `semi_supervised`: a VAE whose label is summed, drawn or relaxed, on binarised Fashion-MNIST (section 5.2)."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.methods.models import derive_seed
from restudy.methods.training import keep_freed_memory
from restudy.studies.rao_blackwell.arms import builder
from restudy.studies.rao_blackwell.fitting import Annealing, Estimator, Recipe, fit
from restudy.studies.rao_blackwell.labelled_vae import CLASSES, Integrand, LabelledVae, every_label, label_divergence
from restudy.studies.rao_blackwell.tidy import TIMINGS, VALIDATION, timing_rows, validation_rows

UNITS = {"nelbo": "nats", "nelbo_argmax": "nats", "accuracy": "1", "likeliest": "1"}


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
        unlabelled = estimator.surrogate(log_q, Integrand(self.model, x, noise), generator) + label_divergence(log_q)
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
        total = dict.fromkeys(UNITS, 0.0)
        for x, y in zip(self.split.validation.split(500), self.split.truth.split(500), strict=True):  # type: ignore[no-untyped-call]
            log_q = self.model.log_q(x)
            noise = torch.randn(len(x), self.model.latent, generator=generator).to(x.device)
            values = Integrand(self.model, x, noise).at(every_label(len(x)).to(x.device))
            best = log_q.argmax(1)
            total["nelbo"] += float(((log_q.exp().T * values).sum(0) + label_divergence(log_q)).sum())
            at_best = values.gather(0, best[None])[0] + math.log(CLASSES)
            total["nelbo_argmax"] += float(at_best.sum())
            total["accuracy"] += float((best == y).sum())
            total["likeliest"] += float(log_q.exp().amax(1).sum())
        return {name: value / len(self.split.validation) for name, value in total.items()}


def train_semi_supervised(
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
    annealing = Annealing(temperature, anneal_rate, lowest_temperature)
    rows: list[dict[str, Any]] = []
    times: list[dict[str, Any]] = []
    for seed in seeds:
        split = load(seed, labelled, unlabelled, validation).to(context.device)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "networks"))
            cold = LabelledVae(hidden, classifier, latent).to(context.device)
        warm = warmed(cold, split, seed, batch_size, warm_steps, warm_learning_rate)
        runs = [("warm", warm, arm) for arm in arms] + [("cold", cold, arm) for arm in cold_arms]
        for start, initial, arm in runs:
            task = SemiSupervised(copy.deepcopy(initial), split, seed, batch_size)
            build = builder(arm, CLASSES, seed)
            recipe = Recipe(arm, seed, epochs, float(learning_rates[arm]), annealing)
            records = fit(task, build, recipe, _checkpoint(context, seed, start, arm))
            where = {"seed": seed, "arm": arm, "start": start}
            rows += validation_rows(where, records, build(1.0).evaluations, UNITS)
            times += timing_rows(where, records)
    return {
        "semi_validation": pa.Table.from_pylist(rows, schema=VALIDATION),
        "semi_timings": pa.Table.from_pylist(times, schema=TIMINGS),
    }


def _checkpoint(context: Context, seed: int, start: str, arm: str) -> Path:
    return context.checkpoints / f"s{seed}-{start}-{arm}.pt"


def load(seed: int, labelled: int, unlabelled: int, validation: int) -> Split:
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

"""Stage `classify`: every body on Fashion-MNIST, same images, order and steps (claims O3 to O6, O10, O12, O13)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.bench.context import Context, Outputs
from restudy.data import fashion_mnist
from restudy.methods.continuous import OdeBlock
from restudy.methods.models import derive_seed
from restudy.methods.training import evaluate, keep_freed_memory
from restudy.studies.neural_ode.fitting import Curves, Recipe, fit
from restudy.studies.neural_ode.nets import build
from restudy.studies.neural_ode.tidy import table

MEAN, SPREAD = 0.286, 0.353  # of Fashion-MNIST's training pixels
KEPT = ("odenet", "rknet", "tied6")
"""Arms whose weights later stages read."""


@dataclass(frozen=True)
class Images:
    """Inputs (N, 1, side, side) float32 and labels (N,) int64, to train on and to test on."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor


def load(seed: int, train_images: int, test_images: int, side: int) -> Images:
    """Training images drawn anew for each seed and the first test images, averaged to `side` pixels, standardised."""
    data = fashion_mnist.load()
    generator = torch.Generator().manual_seed(derive_seed(seed, "images"))
    chosen = torch.randperm(len(data.train_labels), generator=generator)[:train_images].numpy()

    def prepared(images: Any) -> Tensor:
        grey = (torch.tensor(images, dtype=torch.float32)[:, None] / 255 - MEAN) / SPREAD
        return F.avg_pool2d(grey, 28 // side)

    return Images(
        prepared(data.train_images[chosen]),
        torch.tensor(data.train_labels[chosen]),
        prepared(data.test_images[:test_images]),
        torch.tensor(data.test_labels[:test_images]),
    )


@dataclass
class Classification:
    """The task: batches in an order that the seed alone determines, the same for every arm."""

    model: nn.Module
    images: Images
    batch_size: int
    seed: int
    accuracy: float = 0.0
    _orders: dict[int, Tensor] = field(default_factory=dict)

    def loss(self, step: int) -> Tensor:
        """Cross-entropy of the step's batch, nats."""
        epoch, place = divmod(step, len(self.images.labels) // self.batch_size)
        if epoch not in self._orders:
            generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
            self._orders = {epoch: torch.randperm(len(self.images.labels), generator=generator)}
        chosen = self._orders[epoch][place * self.batch_size : (place + 1) * self.batch_size]
        device = next(self.model.parameters()).device
        labels = self.images.labels[chosen].to(device)
        logits = self.model(self.images.inputs[chosen].to(device))
        self.accuracy = float((logits.detach().argmax(1) == labels).float().mean())
        return F.cross_entropy(logits, labels)

    def numbers(self) -> dict[str, float]:
        """Accuracy before the step, and the field's evaluations where there is one."""
        found = {"accuracy": self.accuracy}
        body = getattr(self.model, "body", None)
        if isinstance(body, OdeBlock):
            found |= {"forward": body.evaluations.forward, "backward": body.evaluations.backward}
        return found


UNITS = {"loss": "nats", "forward": "evaluations", "backward": "evaluations"}


def train_classifiers(
    context: Context,
    *,
    seeds: Sequence[int],
    arms: Sequence[str],
    train_images: int,
    test_images: int,
    side: int,
    channels: int,
    hidden: int,
    batch_size: int,
    steps: int,
    learning_rates: Mapping[str, float],
    tolerance: float,
    window: int,
) -> Outputs:
    """Train every arm with SGD (momentum .9, cosine decay) for every seed.

    Returns `training` (test error, parameters, final train loss and accuracy, evaluations early and late), `curves`,
    the volatile `train_timings` (CPU seconds), and the weights of `KEPT`.
    """
    keep_freed_memory()
    rows: dict[str, list[dict[str, Any]]] = {"training": [], "curves": [], "train_timings": []}
    weights: dict[str, Tensor] = {}
    for seed in seeds:
        images = load(seed, train_images, test_images, side)
        for arm in arms:
            model = build(arm, channels=channels, side=side, hidden=hidden, tolerance=tolerance, seed=seed)
            model.to(context.device)
            recipe = Recipe(f"{arm}-s{seed}", steps, float(learning_rates[arm]), "sgd", True, window)
            task = Classification(model, images, batch_size, seed)
            curves = fit(task, recipe, context.checkpoints / f"{recipe.name}.pt")
            here = {"seed": seed, "arm": arm}
            rows["training"] += [here | row for row in _summary(model, images, curves)]
            rows["curves"] += [
                here | {"step": int(row["step"]), "metric": m, "value": v, "unit": UNITS.get(m, "1")}
                for row in curves.rows
                for m, v in row.items()
                if m != "step"
            ]
            rows["train_timings"] += [
                here | {"step": int(row["step"]), "seconds": s}
                for row, s in zip(curves.rows, curves.seconds, strict=True)
            ]
            if arm in KEPT:
                weights |= {f"s{seed}/{arm}/{n}": t.detach().cpu().clone() for n, t in model.state_dict().items()}
    return {name: table(name, found) for name, found in rows.items()} | {"weights": weights}


def _summary(model: nn.Module, images: Images, curves: Curves) -> list[dict[str, Any]]:
    """Numbers of a finished run; final ones are means over the last tenth of the steps, before each step."""
    accuracy = math.nan if curves.diverged else evaluate(model, images.test_inputs, images.test_labels)[1]
    found = {
        "test_error": (1 - accuracy, "1"),
        "parameters": (float(sum(p.numel() for p in model.parameters())), "count"),
        "train_loss": (curves.last("loss"), "nats"),
        "train_accuracy": (curves.last("accuracy"), "1"),
        "diverged": (float(curves.diverged), "1"),
    }
    if "forward" in curves.rows[0]:
        for name in ("forward", "backward"):
            found |= {
                f"{name}_early": (curves.first(name), "evaluations"),
                f"{name}_late": (curves.last(name), "evaluations"),
            }
            found[f"{name}_mean"] = (sum(row[name] for row in curves.rows) / len(curves.rows), "evaluations")
    return [{"metric": metric, "value": value, "unit": unit} for metric, (value, unit) in found.items()]

"""Workloads by name, `data-model-rule`: what the parts mean, their data, models, step budgets and search boxes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from restudy.data import fashion_mnist, mnist5k
from restudy.data.dataset import ImageSet
from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.sweeps.programs import RULES, Rule
from restudy.methods.sweeps.search import Range, sobol
from restudy.methods.sweeps.trainer import Task, Trial

CLASSES = 10
HIDDEN: dict[str, tuple[int, ...]] = {
    "softmax": (),
    "mlp32": (32,),
    "mlp64": (64,),
    "mlp128": (128,),
    "mlp128x3": (128, 128, 128),
    "mlp1024": (1024,),
}
"""Widths of the hidden layers; `cnn` is the convolutional model beside them."""
SPREAD = {"fashion": (0.286, 0.33), "mnist5k": (0.131, 0.29)}
"""Mean and standard deviation of the training pixels, at either size."""


@dataclass(frozen=True)
class Workload:
    """A data set (`fashion`, `fashion_half`, `mnist5k`), a model, and an update rule."""

    data: str
    model: str
    rule: Rule

    @property
    def source(self) -> str:
        """The data set without `_half`."""
        return self.data.removesuffix("_half")

    @property
    def goal(self) -> str:
        """What goals are keyed by: data and model; every rule has the same."""
        return f"{self.source}-{self.model}"


def parse(workload: str) -> Workload:
    """Split a name like `fashion-mlp64-momentum`; ConfigError for a part that is not known."""
    parts = workload.split("-")
    known = len(parts) == 3 and parts[0].removesuffix("_half") in SPREAD and parts[1] in {*HIDDEN, "cnn"}
    rules: dict[str, Rule] = {rule: rule for rule in RULES}
    if not known or parts[2] not in rules:
        raise ConfigError(f"unknown workload {workload!r}", remedy="use data-model-rule, e.g. fashion-mlp64-sgd")
    return Workload(parts[0], parts[1], rules[parts[2]])


def load(workload: Workload, seed: int, *, train: int, validation: int, test: int, monitor: int, side: int) -> Task:
    """Draw the images of a seed: training and validation images from the training part, test images from the test part.

    Small data sets give all they have: one part in four of what is not for testing goes to validation. `_half` keeps
    the first half of the training images and the same others. Inputs are float32 (N, side * side), or (N, 1, side,
    side) for the convolutional model, standardised.
    """
    images = (fashion_mnist if workload.source == "fashion" else mnist5k).load()
    generator = np.random.default_rng(derive_seed(seed, "images", workload.source))
    order = generator.permutation(len(images.train_images))
    if workload.source != "fashion":
        validation = len(order) // 4
        train = len(order) - validation
    if train + validation > len(order):
        raise ConfigError(f"{train} + {validation} images", remedy=f"{workload.source} has {len(order)}")
    chosen, held = order[:train], order[train : train + validation]
    chosen = chosen[: train // 2] if workload.data.endswith("_half") else chosen
    tested = generator.permutation(len(images.test_images))[:test]
    flat = workload.model != "cnn"

    def part(index: npt.NDArray[np.int64], of_test: bool = False) -> tuple[Tensor, Tensor]:
        return _tensors(images, index, of_test, side, flat, *SPREAD[workload.source])

    return Task(part(chosen), part(chosen[:monitor]), part(held), part(tested, True))


def _tensors(
    images: ImageSet, index: npt.NDArray[np.int64], of_test: bool, side: int, flat: bool, mean: float, spread: float
) -> tuple[Tensor, Tensor]:
    pixels = (images.test_images if of_test else images.train_images)[index]
    labels = (images.test_labels if of_test else images.train_labels)[index]
    inputs = torch.from_numpy(pixels.astype(np.float32) / 255.0)[:, None]
    if side != pixels.shape[-1]:
        inputs = nn.functional.avg_pool2d(inputs, pixels.shape[-1] // side)
    inputs = (inputs - mean) / spread
    return inputs.flatten(1) if flat else inputs, torch.from_numpy(labels.copy())


def make_model(workload: Workload, side: int, seed: int) -> nn.Module:
    """An untrained model of the workload with torch's default initial weights, drawn from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if workload.model == "cnn":
            return _cnn(side)
        widths = [side * side, *HIDDEN[workload.model], CLASSES]
        layers: list[nn.Module] = []
        for inputs, outputs in zip(widths[:-1], widths[1:], strict=True):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def _cnn(side: int) -> nn.Sequential:
    """Two 5x5 convolutions of 32 and 64 channels with pooling, then 1,024 units: the paper's simple CNN."""
    first = [nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(64 * (side // 4) ** 2, 1024), nn.ReLU(), nn.Linear(1024, CLASSES))


def step_budget(batch_size: int, smallest: int, first: int, least: int) -> int:
    """Steps of every trial of a batch size: as many examples as at the smallest, but at least `least` steps."""
    return max(first * smallest // batch_size, least)


def searched(rate_range: tuple[float, float], rest_range: tuple[float, float]) -> dict[str, Range]:
    """The box: effective learning rate eta / (1 - m), and 1 - m, both on a log scale."""
    return {"effective_learning_rate": Range(*rate_range), "one_minus_momentum": Range(*rest_range)}


def draw_trials(workload: Workload, seed: int, trials: int, box: Mapping[str, Range]) -> list[Trial]:
    """The trials of a seed, the same for every batch size and rule; plain SGD leaves out the momentum."""
    points = sobol(box, trials, derive_seed(seed, "search") % 2**32)
    found = []
    for i in range(trials):
        rest = 1.0 if workload.rule == "sgd" else float(points["one_minus_momentum"][i])
        rate = float(points["effective_learning_rate"][i])
        found.append(Trial(i, rate * rest, 1.0 - rest, derive_seed(seed, "init", i)))
    return found

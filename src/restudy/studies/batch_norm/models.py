"""The study's networks and data: eight convolutions on Fashion-MNIST, and a deep linear network on a regression.

Initial weights are Glorot-uniform from the seed and equal in every arm. Arms: `std` is plain, `bn` has batch norm,
`noisy` has noise of random mean and scale behind every batch norm, `std_noise` that noise alone, `l1`, `l2` and `linf`
have other normalisations.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.data import fashion_mnist
from restudy.errors import ConfigError
from restudy.methods.models import derive_seed
from restudy.methods.normalization import AffineNoise, BatchNorm, LpNorm

FACTORS = (1, 2, 4, 4, 8, 8, 8, 8)
"""Channels of the convolutions over the width; 64 gives VGG-A."""
POOLED = (1, 2, 4, 6)
"""Convolutions followed by a pool: four, since 28 pixels do not survive VGG's five."""
CLASSES = 10
MEAN, SPREAD = 0.286, 0.353  # of Fashion-MNIST's training pixels
NORMS: dict[str, Callable[[int], nn.Module] | None] = {
    "std": None,
    "std_noise": None,
    "bn": BatchNorm,
    "noisy": BatchNorm,
    "l1": lambda units: LpNorm(units, 1),
    "l2": lambda units: LpNorm(units, 2),
    "linf": lambda units: LpNorm(units, math.inf),
}
NOISY = ("noisy", "std_noise")


def split(run: str) -> tuple[str, float]:
    """Split a run into arm and learning rate: `bn-0.1` is batch norm at 0.1, `std-1e-7` is fine too.

    Raises:
        ConfigError: another form, or an unknown arm.
    """
    arm, _, rate = run.partition("-")
    try:
        return arm, float(rate if arm in NORMS else "")
    except ValueError:
        remedy = f"write arm-rate, e.g. bn-0.1; arms: {', '.join(NORMS)}"
        raise ConfigError(f"run {run!r}", where="batch_norm", remedy=remedy) from None


class VGG(nn.Sequential):
    """Blocks `conv1` ... `conv8` after VGG-A and a linear layer `logits`: (N, 1, 28, 28) to (N, 10)."""

    def __init__(self, arm: str, width: int, *, seed: int) -> None:
        channels = [1, *(factor * width for factor in FACTORS)]
        layers: dict[str, nn.Module] = {
            f"conv{number}": _block(channels[number - 1], channels[number], arm, number in POOLED)
            for number in range(1, len(channels))
        }
        layers |= {"flatten": nn.Flatten(), "logits": nn.Linear(channels[-1], CLASSES)}
        super().__init__(OrderedDict(layers))
        _initialize(self, seed)


def _block(inputs: int, outputs: int, arm: str, pooled: bool) -> nn.Sequential:
    """Build a block; absent parts are identities, so that every place has a name.

    The output of `conv` is what a normalisation would see, that of `noise` the input of the non-linearity.
    """
    build = NORMS[arm]
    parts: dict[str, nn.Module] = {
        "conv": nn.Conv2d(inputs, outputs, 3, padding=1, bias=build is None),
        "norm": nn.Identity() if build is None else build(outputs),
        "noise": AffineNoise() if arm in NOISY else nn.Identity(),
        "relu": nn.ReLU(),
        "pool": nn.MaxPool2d(2) if pooled else nn.Identity(),
    }
    return nn.Sequential(OrderedDict(parts))


class DeepLinear(nn.Sequential):
    """Layers `layer1` ... `layerK`, (N, size) to (N, size), each but the last followed by the arm's normalisation.

    float64 throughout, since the probes subtract nearly equal gradients.
    """

    def __init__(self, arm: str, *, depth: int = 25, size: int = 10, seed: int) -> None:
        layers: dict[str, nn.Module] = {}
        for number in range(1, depth + 1):
            build = NORMS[arm] if number < depth else None
            norm = nn.Identity() if build is None else build(size)
            parts = {"linear": nn.Linear(size, size, bias=False), "norm": norm}
            layers[f"layer{number}"] = nn.Sequential(OrderedDict(parts))
        super().__init__(OrderedDict(layers))
        self.double()
        _initialize(self, seed)


def _initialize(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(derive_seed(seed, "initial weights"))
    for module in model.modules():
        if isinstance(module, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


class Task:
    """What is descended.

    Attributes:
        chance: accuracy of a run that diverged; NaN where there is no accuracy.
    """

    chance: float = math.nan

    def run(self, model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Return loss and accuracy of the batch of a step, two scalars; accuracy is NaN where there is none."""
        raise NotImplementedError

    def noise_seed(self, step: int) -> int:
        """Return the seed of the noise layers' draws in a step."""
        return 0


@dataclass(frozen=True)
class Images:
    """Standardised inputs (N, 1, 28, 28) and labels (N,) int64 to train on and to test on."""

    inputs: Tensor
    labels: Tensor
    test_inputs: Tensor
    test_labels: Tensor

    def to(self, device: str, channels_last: bool) -> Images:
        """Move to the device, in the memory format that convolutions prefer there."""
        form = torch.channels_last if channels_last else torch.contiguous_format
        inputs, test = (t.to(device).contiguous(memory_format=form) for t in (self.inputs, self.test_inputs))
        return Images(inputs, self.labels.to(device), test, self.test_labels.to(device))


def load_images(train_images: int, test_images: int, seed: int) -> Images:
    """Load the images that a seed trains on (drawn anew for each) and the first test images."""
    data = fashion_mnist.load()
    generator = torch.Generator().manual_seed(derive_seed(seed, "images"))
    index = torch.randperm(len(data.train_labels), generator=generator)[:train_images].numpy()

    def as_inputs(images: Any) -> Tensor:
        return torch.tensor(images, dtype=torch.float32).div_(255).sub_(MEAN).div_(SPREAD)[:, None]

    test = as_inputs(data.test_images[:test_images]), torch.tensor(data.test_labels[:test_images])
    return Images(as_inputs(data.train_images[index]), torch.tensor(data.train_labels[index]), *test)


@dataclass(frozen=True)
class Batches(Task):
    """Classify batches in an order that the seed alone determines, the same for every arm and learning rate."""

    images: Images
    batch_size: int
    seed: int
    chance: float = 1 / CLASSES

    def run(self, model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Return cross-entropy (nats) and accuracy of a step's batch; each pass over the images has its own order."""
        epoch, place = divmod(step, len(self.images.inputs) // self.batch_size)
        generator = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        order = torch.randperm(len(self.images.inputs), generator=generator)
        chosen = order[place * self.batch_size : (place + 1) * self.batch_size].to(self.images.labels.device)
        logits, labels = model(self.images.inputs[chosen]), self.images.labels[chosen]
        return F.cross_entropy(logits, labels), (logits.detach().argmax(1) == labels).float().mean()

    def noise_seed(self, step: int) -> int:
        """Return a seed that every arm shares."""
        return derive_seed(self.seed, "noise", step)


@dataclass(frozen=True)
class Regression(Task):
    """Learn a Gaussian matrix A in full batches: inputs x and targets A x, both (N, size) float64 (appendix).

    The reduction is a sum, which the text leaves open: with a mean the printed learning rates hardly move the loss.
    """

    inputs: Tensor
    targets: Tensor

    def run(self, model: nn.Module, step: int) -> tuple[Tensor, Tensor]:
        """Return the squared error summed over samples and outputs."""
        return (model(self.inputs) - self.targets).square().sum(), torch.tensor(math.nan)


def regression(samples: int, size: int, *, seed: int, device: str = "cpu") -> Regression:
    """Draw Gaussian inputs and a Gaussian matrix from the seed."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "linear data"))
    inputs = torch.randn(samples, size, generator=generator, dtype=torch.float64)
    matrix = torch.randn(size, size, generator=generator, dtype=torch.float64)
    return Regression(inputs.to(device), (inputs @ matrix.T).to(device))

"""The pairs of model and data set that the study trains, and the part of the data that a seed sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from restudy.data import fashion_mnist, mnist5k
from restudy.data.dataset import ImageSet
from restudy.errors import ConfigError
from restudy.methods.models import MLP, SmallCNN, derive_seed

LOADERS = {
    "cnn-fashion_mnist": fashion_mnist.load,
    "mlp-mnist5k": mnist5k.load,
    "cnn_paper_init-fashion_mnist": fashion_mnist.load,
}
CLASSES = 10
Init = Literal["torch", "paper"]


@dataclass(frozen=True)
class Sizes:
    """Sizes of the models: channels of the two convolutions, the CNN's hidden layer, those of the MLP."""

    channels: tuple[int, int]
    hidden: int
    mlp_hidden: tuple[int, ...]
    init: Init

    @classmethod
    def of(cls, channels: Sequence[int], hidden: int, mlp_hidden: Sequence[int], init: str) -> Sizes:
        """Sizes from the lists of study.yaml."""
        first, second = channels
        return cls((first, second), hidden, tuple(mlp_hidden), "paper" if init == "paper" else "torch")


def build(pair: str, sizes: Sizes, seed: int) -> SmallCNN | MLP:
    """The untrained model of a pair; `seed` determines its weights.

    Raises:
        ConfigError: unknown pair.
    """
    if pair not in LOADERS:
        raise ConfigError(f"pair {pair!r} is not known", remedy=f"allowed: {', '.join(LOADERS)}")
    if pair.startswith("cnn"):
        init: Init = "paper" if pair.startswith("cnn_paper_init") else sizes.init
        return SmallCNN(sizes.channels, sizes.hidden, CLASSES, init=init, seed=seed)
    return MLP((28 * 28, *sizes.mlp_hidden, CLASSES), init=sizes.init, seed=seed)


def load(pair: str) -> ImageSet:
    """The images of a pair, uint8 (N, 28, 28), with labels."""
    return LOADERS[pair]()


def as_inputs(images: object) -> Tensor:
    """uint8 images (N, 28, 28) as network inputs: float32 (N, 1, 28, 28) in [0, 1]."""
    return torch.tensor(images, dtype=torch.float32).div_(255)[:, None]


def chosen(count: int, available: int, seed: int, purpose: str) -> Tensor:
    """Which of the `available` images a seed uses for a purpose: at most `count` indices, int64, no repeats."""
    generator = torch.Generator().manual_seed(derive_seed(seed, "images", purpose))
    return torch.randperm(available, generator=generator)[:count]


def restore(model: nn.Module, weights: dict[str, Tensor], prefix: str) -> nn.Module:
    """Load the tensors `<prefix>/<parameter>` into a model and put it into evaluation mode."""
    names = {key.removeprefix(f"{prefix}/"): tensor for key, tensor in weights.items() if key.startswith(f"{prefix}/")}
    model.load_state_dict(names)
    return model.eval()

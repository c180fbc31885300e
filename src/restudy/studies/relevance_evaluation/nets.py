"""Networks and images of the study: three data sets, of which one has no black background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.data import fashion_mnist, mnist5k, photos
from restudy.data.dataset import ImageSet
from restudy.methods.models import SmallCNN, derive_seed

CLASSES = 10
SIDE = 28
LOADERS: dict[str, Callable[[], ImageSet]] = {
    "fashion_mnist": fashion_mnist.load,
    "mnist5k": mnist5k.load,
    "garments": fashion_mnist.load,
}
"""`garments`: Fashion-MNIST whose black background is replaced by a piece of a photograph."""
BANK = {"train": 1200, "test": 400}
PIECES = (56, 112)
"""Sides of the pieces cut from photographs, in pixels, before they are resized to 28."""


@dataclass(frozen=True)
class Images:
    """Images (N, 1, 28, 28) in [0, 1], labels (N,), and where the object is, bool (N, 28, 28)."""

    images: Tensor
    labels: Tensor
    foreground: Tensor


def drawn(pair: str, part: str, count: int, seed: int, purpose: str) -> Images:
    """At most `count` images of a part (`train` or `test`) of a data set, drawn for a seed and a purpose.

    Backgrounds of `garments` are drawn with them; those of the training and of the test images come from different
    halves of the photographs.
    """
    data = LOADERS[pair]()
    pixels, labels = (getattr(data, f"{part}_{what}") for what in ("images", "labels"))
    generator = torch.Generator().manual_seed(derive_seed(seed, "images", pair, part, purpose))
    chosen = torch.randperm(len(labels), generator=generator)[:count]
    images = torch.tensor(pixels[chosen.numpy()], dtype=torch.float32).div_(255)
    foreground = images > 0
    if pair == "garments":
        bank = backgrounds(part)
        behind = bank[torch.randint(len(bank), (len(images),), generator=generator)]
        images = torch.where(foreground, images, behind)
    return Images(images[:, None], torch.tensor(labels)[chosen], foreground)


@cache
def backgrounds(part: str) -> Tensor:
    """Pieces of photographs in grey, (M, 28, 28) in [0, 1]: left halves for training, right halves for tests."""
    generator = np.random.default_rng([7, BANK[part]])
    halves = []
    for photo in photos.load().values():
        grey = photo.mean(axis=2) if photo.ndim == 3 else photo
        middle = grey.shape[1] // 2
        halves.append(
            torch.tensor(grey[:, :middle] if part == "train" else grey[:, middle:], dtype=torch.float32) / 255
        )
    pieces = []
    for _ in range(BANK[part]):
        half = halves[generator.integers(len(halves))]
        side = int(generator.integers(*PIECES))
        top, left = (int(generator.integers(size - side + 1)) for size in half.shape)
        piece = half[top : top + side, left : left + side]
        pieces.append(F.adaptive_avg_pool2d(piece[None], SIDE)[0])
    return torch.stack(pieces)


def build(channels: Sequence[int], hidden: int, seed: int) -> SmallCNN:
    """The untrained CNN, in torch's default initial weights."""
    first, second = channels
    return SmallCNN((first, second), hidden, CLASSES, seed=seed)


def without_biases(model: nn.Module) -> nn.Module:
    """The model with all biases 0, and kept there by training."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            parameter.data.zero_()
            parameter.requires_grad_(False)
    return model


def restored(channels: Sequence[int], hidden: int, weights: dict[str, Tensor], prefix: str) -> nn.Module:
    """The trained model whose tensors are stored as `<prefix>/<parameter>`, in evaluation mode."""
    names = {key.removeprefix(f"{prefix}/"): value for key, value in weights.items() if key.startswith(f"{prefix}/")}
    model = build(channels, hidden, 0)
    model.load_state_dict(names)
    return model.eval()


def predicted(model: nn.Module, images: Tensor, batch_size: int) -> Tensor:
    """The class with the highest logit, int64 (N,)."""
    with torch.no_grad():
        return torch.cat([model(part).argmax(1) for part in images.split(batch_size)])  # type: ignore[no-untyped-call]

"""The paper's networks; the images of a seed: which ones, and how their grey values become binary pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.data.dataset import ImageSet
from restudy.errors import ConfigError
from restudy.methods.importance import DeepGaussianAutoencoder
from restudy.methods.models import derive_seed

from .arms import Arm

SIDE = 28


def untrained(
    arm: Arm, seed: int, hidden: int, latent: int, pixel_means: Tensor | None = None
) -> DeepGaussianAutoencoder:
    """Build the network of an arm: the same weights for all arms of a seed that have as many layers."""
    widths = {1: ((latent,), (hidden,)), 2: ((2 * latent, latent), (hidden, hidden // 2))}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "networks", arm.layers))
        return DeepGaussianAutoencoder(SIDE**2, *widths[arm.layers], pixel_means)


def trained(weights: Mapping[str, Tensor], seed: int, name: str) -> DeepGaussianAutoencoder:
    """Restore the network of a run from tensors named s<seed>/<run>/<parameter>; its sizes are read off them."""
    prefix = f"s{seed}/{name}/"
    state = {key.removeprefix(prefix): value for key, value in weights.items() if key.startswith(prefix)}
    layers = len({key.split(".")[1] for key in state if key.startswith("encoder.")})
    hidden = [len(state[f"encoder.{i}.body.0.bias"]) for i in range(layers)]
    units = [len(state[f"encoder.{i}.mean.bias"]) for i in range(layers)]
    model = DeepGaussianAutoencoder(state["encoder.0.body.0.weight"].shape[1], units, hidden)
    model.load_state_dict(state)
    return model


@dataclass(frozen=True)
class Images:
    """Grey training images (N, 784) in [0, 1], one binary draw of them, and one of the test images, all float32.

    The binary draws are the same for every arm of a seed: what was trained on one of them and what was trained on
    fresh draws are measured on the same pixels.
    """

    grey: Tensor
    fixed: Tensor
    test: Tensor

    @classmethod
    def draw(cls, data: ImageSet, seed: int, train_images: int, test_images: int) -> Images:
        """Draw the seed's images from the two parts of a data set.

        Raises:
            ConfigError: more images are asked for than the data set holds.
        """
        for asked, there in ((train_images, len(data.train_images)), (test_images, len(data.test_images))):
            if asked > there:
                raise ConfigError(f"{asked} images asked for, {there} are there", remedy="lower the parameter")
        generator = torch.Generator().manual_seed(derive_seed(seed, "split"))
        parts = []
        for images, wanted in ((data.train_images, train_images), (data.test_images, test_images)):
            chosen = torch.randperm(len(images), generator=generator)[:wanted].numpy()
            parts.append(torch.from_numpy(images[chosen]).reshape(wanted, -1).float() / 255)
        fixed, test = (torch.bernoulli(part, generator=generator) for part in parts)
        return cls(parts[0], fixed, test)

    def first(self, images: int | None) -> Images:
        """Keep the first training images only; all of them for None."""
        return self if images is None else Images(self.grey[:images], self.fixed[:images], self.test)

    def to(self, device: str) -> Images:
        """Move the images to a device."""
        return Images(self.grey.to(device), self.fixed.to(device), self.test.to(device))


@dataclass(frozen=True)
class Batches:
    """Mini-batches that depend on seed and step alone, so that every arm of a seed sees the same.

    Attributes:
        batch_size: images in a step; a pass over the images drops what does not fill a batch.
        fixed: pixels as they were drawn once, not anew at every use.
    """

    images: Images
    seed: int
    batch_size: int
    fixed: bool

    def at(self, step: int) -> Tensor:
        """Return the binary images (B, 784) of a step, counted from 0."""
        size = min(self.batch_size, len(self.images.grey))
        epoch, place = divmod(step, len(self.images.grey) // size)
        order = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        index = torch.randperm(len(self.images.grey), generator=order)[place * size : (place + 1) * size]
        if self.fixed:
            return self.images.fixed[index]
        pixels = torch.Generator().manual_seed(derive_seed(self.seed, "pixels", step))
        return torch.bernoulli(self.images.grey[index].cpu(), generator=pixels).to(self.images.grey.device)

"""The images of one seed: which ones, and how their grey values become binary pixels."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from restudy.data.dataset import ImageSet
from restudy.errors import ConfigError
from restudy.methods.models import derive_seed

SIDE = 28


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
        """Images of the two parts of a data set, drawn for the seed.

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
        """With the first training images only."""
        return self if images is None else Images(self.grey[:images], self.fixed[:images], self.test)

    def to(self, device: str) -> Images:
        """The same on a device."""
        return Images(self.grey.to(device), self.fixed.to(device), self.test.to(device))


@dataclass(frozen=True)
class Batches:
    """Mini-batches that depend on seed and step alone, so that every arm of a seed sees the same.

    Attributes:
        images: where they are taken from.
        seed: of the run.
        batch_size: images in a step; a pass over the images drops what does not fill a batch.
        fixed: pixels as they were drawn once, not anew at every use.
    """

    images: Images
    seed: int
    batch_size: int
    fixed: bool

    def at(self, step: int) -> Tensor:
        """Binary images (B, 784) of a step, counted from 0."""
        size = min(self.batch_size, len(self.images.grey))
        epoch, place = divmod(step, len(self.images.grey) // size)
        order = torch.Generator().manual_seed(derive_seed(self.seed, "order", epoch))
        index = torch.randperm(len(self.images.grey), generator=order)[place * size : (place + 1) * size]
        if self.fixed:
            return self.images.fixed[index]
        pixels = torch.Generator().manual_seed(derive_seed(self.seed, "pixels", step))
        return torch.bernoulli(self.images.grey[index].cpu(), generator=pixels).to(self.images.grey.device)

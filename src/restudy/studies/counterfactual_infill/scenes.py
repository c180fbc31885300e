"""Scenes with a known object: a Fashion-MNIST object at a random place on a textured ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from restudy.data import fashion_mnist, photos
from restudy.methods.models import derive_seed

TEXTURES = ("brick", "grass", "gravel")
GROUND_MEAN, GROUND_SPREAD = 0.35, 0.12
SILHOUETTE = 0.1
GAP = 16

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Scenes:
    """Scenes and what is known of them.

    `images` and `grounds` (the same scenes without their objects): float32 (N, 1, S, S) in [0, 1]; `objects`: bool
    (N, 1, S, S), the object's pixels; `labels`: int64 (N,); `corners`: int64 (N, 2), top and left of the square
    of side S / 2 that the object was pasted from.
    """

    images: Tensor
    grounds: Tensor
    objects: Tensor
    labels: Tensor
    corners: Tensor

    def __getitem__(self, index: Tensor) -> Scenes:
        return Scenes(*(part[index] for part in vars(self).values()))

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> Scenes:
        """The same on a device."""
        return Scenes(*(part.to(device) for part in vars(self).values()))

    def squares(self) -> Tensor:
        """Bool (N, 1, S, S): the square that holds the object; its shape says nothing of the class."""
        return square_masks(self.corners, self.images.shape[-1] // 2, self.images.shape[-1])


def square_masks(corners: Tensor, side: int, canvas: int) -> Tensor:
    """Bool (N, 1, canvas, canvas), true on squares of `side` pixels whose top left corners are given, int64 (N, 2)."""
    place = torch.arange(canvas, device=corners.device)
    rows = (place >= corners[:, :1]) & (place < corners[:, :1] + side)
    columns = (place >= corners[:, 1:]) & (place < corners[:, 1:] + side)
    return (rows[:, :, None] & columns[:, None, :])[:, None]


def empty_squares(scenes: Scenes, seed: int) -> Tensor:
    """Bool (N, 1, S, S): a square of side S / 4 that touches the object's square nowhere."""
    canvas = scenes.images.shape[-1]
    side, taken = canvas // 4, canvas // 2
    generator = np.random.default_rng(derive_seed(seed, "empty squares"))
    corners = []
    for top, left in scenes.corners.tolist():
        while True:
            y, x = generator.integers(0, canvas - side + 1, 2)
            if y + side <= top or y >= top + taken or x + side <= left or x >= left + taken:
                corners.append((int(y), int(x)))
                break
    return square_masks(torch.tensor(corners, device=scenes.corners.device), side, canvas)


def make(part: str, count: int, canvas: int, classes: Sequence[int], seed: int, purpose: str) -> Scenes:
    """Draw scenes.

    Args:
        part: `train` or `test`: objects of that part of Fashion-MNIST on grounds cut from disjoint halves of the
            textures (16 pixels between them are left out).
        count: how many. canvas: side S in pixels, 28 or 56. classes: which of the ten; labels are places in this list.
        seed, purpose: determine the draw; different purposes are unrelated.
    """
    generator = np.random.default_rng(derive_seed(seed, part, purpose))
    objects, labels = _objects(part, canvas // 2)
    usable = np.flatnonzero(np.isin(labels, classes))
    chosen = usable[generator.integers(0, len(usable), count)]
    places = np.array([list(classes).index(label) for label in labels[chosen]], dtype=np.int64)
    grounds = _grounds(generator, part, count, canvas)
    corners = generator.integers(0, canvas // 2 + 1, (count, 2))
    images, masks = grounds.copy(), np.zeros((count, canvas, canvas), dtype=bool)
    side = canvas // 2
    for i, (top, left) in enumerate(corners):
        shown = objects[chosen[i]]
        place = np.s_[i, top : top + side, left : left + side]
        masks[place] = shown > SILHOUETTE
        images[place] = np.where(masks[place], 0.25 + 0.75 * shown, images[place])
    return Scenes(
        torch.from_numpy(images)[:, None],
        torch.from_numpy(grounds)[:, None],
        torch.from_numpy(masks)[:, None],
        torch.from_numpy(places),
        torch.from_numpy(corners.astype(np.int64)),
    )


@cache
def _objects(part: str, side: int) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Objects in [0, 1], float32 (N, side, side), by means over blocks of pixels; labels int64 (N,)."""
    data = fashion_mnist.load()
    images, labels = (data.train_images, data.train_labels) if part == "train" else (data.test_images, data.test_labels)
    block = images.shape[-1] // side
    small = images.reshape(len(images), side, block, side, block).mean((2, 4), dtype=np.float32) / np.float32(255)
    return small, labels


@cache
def _textures(part: str) -> tuple[Floats, ...]:
    """Half of each texture at half resolution, at a common mean and spread, clipped to [0, 1]."""
    found = []
    for name in TEXTURES:
        photo = photos.load()[name].astype(np.float32)
        rows, columns = (n // 2 * 2 for n in photo.shape)
        small = photo[:rows, :columns].reshape(rows // 2, 2, columns // 2, 2).mean((1, 3))
        scaled = GROUND_MEAN + GROUND_SPREAD * (small - small.mean()) / small.std()
        middle, half = small.shape[1] // 2, GAP // 2
        cut = scaled[:, : middle - half] if part == "train" else scaled[:, middle + half :]
        found.append(np.clip(cut, 0, 1).astype(np.float32))
    return tuple(found)


def _grounds(generator: np.random.Generator, part: str, count: int, canvas: int) -> Floats:
    """Float32 (count, canvas, canvas): crops of the textures, half of them mirrored."""
    textures = _textures(part)
    found = np.empty((count, canvas, canvas), dtype=np.float32)
    for i in range(count):
        texture = textures[generator.integers(len(textures))]
        top, left = (generator.integers(0, size - canvas + 1) for size in texture.shape)
        crop = texture[top : top + canvas, left : left + canvas]
        found[i] = crop[:, ::-1] if generator.random() < 0.5 else crop
    return found

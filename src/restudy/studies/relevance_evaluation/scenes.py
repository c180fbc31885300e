"""Scenes for EfficientNet-Lite0: an animal, cut out, on a photograph; and plain pieces of the photographs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.methods.models.efficientnet import scale_pixels

CORNERS = ((0.5, 0.5), (0.0, 0.0), (0.0, 1.0), (1.0, 0.0), (1.0, 1.0))
"""Where a piece of a photograph sits: the centre first."""
PIECE = 0.8
"""Side of a piece over the photograph's shorter side."""


@dataclass(frozen=True)
class Scenes:
    """Images (N, 3, H, W) scaled for the network; where the animal is, bool (N, H, W), nowhere in a plain piece; names.

    `kind` is `scene` or `crop`, `photo` the photograph behind, `scene` a name of its own for each image.
    """

    images: Tensor
    inside: Tensor
    kind: list[str]
    photo: list[str]
    scene: list[str]


def scenes(
    photos: Mapping[str, npt.NDArray[np.uint8]],
    stamps: Mapping[str, npt.NDArray[np.uint8]],
    *,
    pixels: int,
    crops: int,
    object_share: tuple[float, float],
    seed: int,
) -> Scenes:
    """One scene for each cut-out, then `crops` plain pieces of each photograph.

    A cut-out is resized so that its longer side is a share of the image's side, drawn between the two ends of
    `object_share`, and placed anywhere inside. Photographs take turns; where a piece is cut from one is drawn.
    """
    generator = np.random.default_rng(seed)
    whole = {name: _colour(photo) for name, photo in photos.items()}
    names = list(whole)
    images, inside, kind, photo, scene = [], [], [], [], []
    for number, (name, stamp) in enumerate(stamps.items()):
        behind = names[number % len(names)]
        image = _piece(whole[behind], (generator.random(), generator.random()), pixels)
        share = generator.uniform(*object_share)
        pasted, mask = _pasted(image, stamp, share, (generator.random(), generator.random()))
        images.append(pasted)
        inside.append(mask)
        kind.append("scene")
        photo.append(behind)
        scene.append(name)
    for behind in names:
        for crop, place in enumerate(CORNERS[:crops]):
            images.append(_piece(whole[behind], place, pixels))
            inside.append(torch.zeros(pixels, pixels, dtype=torch.bool))
            kind.append("crop")
            photo.append(behind)
            scene.append(f"{behind} {crop}")
    return Scenes(scale_pixels(torch.stack(images)), torch.stack(inside), kind, photo, scene)


def _colour(photo: npt.NDArray[np.uint8]) -> Tensor:
    array = photo[..., None].repeat(3, axis=2) if photo.ndim == 2 else photo
    return torch.tensor(array, dtype=torch.float32).permute(2, 0, 1) / 255


def _piece(image: Tensor, place: tuple[float, float], pixels: int) -> Tensor:
    side = round(min(image.shape[1:]) * PIECE)
    top, left = (round((size - side) * at) for size, at in zip(image.shape[1:], place, strict=True))
    return _resized(image[:, top : top + side, left : left + side], (pixels, pixels))


def _resized(image: Tensor, size: tuple[int, int]) -> Tensor:
    return F.interpolate(image[None], size, mode="bilinear", antialias=True)[0]


def _pasted(
    image: Tensor, stamp: npt.NDArray[np.uint8], share: float, place: tuple[float, float]
) -> tuple[Tensor, Tensor]:
    """The image with the cut-out on it, and where more than half of a pixel is the cut-out's."""
    pixels = image.shape[1]
    longest = max(stamp.shape[:2])
    size = tuple(max(1, round(side * share * pixels / longest)) for side in stamp.shape[:2])
    # Colour is resized with its opacity, so that what is transparent leaves no seam.
    layers = torch.tensor(stamp, dtype=torch.float32).permute(2, 0, 1) / 255
    opacity = _resized(layers[3:], (size[0], size[1])).clamp(0, 1)
    colour = _resized(layers[:3] * layers[3:], (size[0], size[1])).clamp(0, 1)
    top, left = (round((pixels - side) * at) for side, at in zip(size, place, strict=True))
    found, mask = image.clone(), torch.zeros(pixels, pixels, dtype=torch.bool)
    where = (slice(top, top + size[0]), slice(left, left + size[1]))
    found[:, *where] = colour + (1 - opacity) * found[:, *where]
    mask[where] = opacity[0] > 0.5
    return found, mask

"""What takes the place of a perturbed region: the function g of the paper, in several forms.

A fill is drawn for the whole image at once; a perturbation sequence shows more and more of it. That is the same as
drawing region by region, since no fill but the generative one looks at what was filled before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.errors import ConfigError

Draw = Callable[[Tensor, torch.Generator], Tensor]
Infill = Callable[[Tensor, Tensor, torch.Generator], Tensor]


@dataclass(frozen=True)
class Fill:
    """A way to fill regions.

    Attributes:
        name: how results name it.
        draw: images (N, C, H, W) and a CPU generator to what stands in for them, same shape and dtype.
        random: whether draws differ, so that repeating them makes sense.
        infill: instead of `draw`, for a model that looks at what is left: images (N, C, H, W), a mask (N, H, W) that is
            true where a region is to be filled, and a generator, to images of the same shape.
    """

    name: str
    draw: Draw | None = None
    random: bool = False
    infill: Infill | None = None

    def __post_init__(self) -> None:
        if (self.draw is None) == (self.infill is None):
            raise ConfigError(f"fill {self.name!r} has both or neither of draw and infill", remedy="give one of them")


def uniform(low: float = 0.0, high: float = 1.0) -> Fill:
    """Noise, independent for each pixel and channel, uniform between the ends of the input range (the paper's own)."""

    def draw(images: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.rand(images.shape, generator=generator, dtype=torch.float64)
        return (low + (high - low) * noise).to(images)

    return Fill("uniform", draw, random=True)


def constant(value: float = 0.0, name: str = "black") -> Fill:
    """One value everywhere; 0 is black for pixels in [0, 1]."""
    return Fill(name, lambda images, _: torch.full_like(images, value))


def image_mean() -> Fill:
    """The mean of each image, channel by channel."""
    return Fill("mean", lambda images, _: images.mean((2, 3), keepdim=True).expand_as(images))


def blur(sigma: float = 2.0) -> Fill:
    """The image itself, blurred by a Gaussian of `sigma` pixels (cut at 3 sigma, border repeated)."""
    if sigma <= 0:
        raise ConfigError(f"sigma is {sigma}", where="blur", remedy="give a positive number of pixels")

    def draw(images: Tensor, _: torch.Generator) -> Tensor:
        radius = max(1, round(3 * sigma))
        at = torch.arange(-radius, radius + 1, dtype=images.dtype, device=images.device)
        kernel = torch.exp(-at.square() / (2 * sigma**2))
        kernel = kernel / kernel.sum()
        flat = images.flatten(0, 1)[:, None]
        padded = F.pad(flat, (radius, radius, radius, radius), mode="replicate")
        return F.conv2d(F.conv2d(padded, kernel.view(1, 1, -1, 1)), kernel.view(1, 1, 1, -1)).view(images.shape)

    return Fill("blur", draw)


def from_images(pool: Tensor, block: int | None = None) -> Fill:
    """The same place of other images: `pool` (M, C, H, W), for example training images.

    `block`: side of the squares that come from one image each, counted from the upper left corner; give the size of
    the regions, so that every region comes from an image of its own. Without it one image fills all regions.
    """
    if pool.dim() != 4 or len(pool) == 0:
        raise ConfigError(f"pool has shape {tuple(pool.shape)}", where="from_images", remedy="give (M, C, H, W)")

    def draw(images: Tensor, generator: torch.Generator) -> Tensor:
        if images.shape[1:] != pool.shape[1:]:
            raise ConfigError(
                f"images {tuple(images.shape[1:])}, pool {tuple(pool.shape[1:])}",
                where="from_images",
                remedy="give a pool of the images' size",
            )
        height, width = images.shape[2:]
        side = block or max(height, width)
        rows, columns = -(-height // side), -(-width // side)
        chosen = torch.randint(len(pool), (len(images), rows, columns), generator=generator)
        chosen = chosen.repeat_interleave(side, 1).repeat_interleave(side, 2)[:, None, :height, :width]
        chosen = chosen.to(pool.device)
        channel = torch.arange(images.shape[1], device=pool.device).view(1, -1, 1, 1)
        down = torch.arange(height, device=pool.device).view(1, 1, -1, 1)
        right = torch.arange(width, device=pool.device).view(1, 1, 1, -1)
        return pool[chosen, channel, down, right].to(images)

    return Fill("dataset", draw, random=True)


def generative(infill: Infill, name: str = "generative", *, random: bool = True) -> Fill:
    """A model that paints the masked part from what is left of the image; called once for every step."""
    return Fill(name, random=random, infill=infill)

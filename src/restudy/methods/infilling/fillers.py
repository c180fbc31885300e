"""In-fillers: what takes the place of hidden pixels.

Called with images (N, 1, S, S) in [0, 1], a mask of the same shape (1 where hidden) and standard normal noise
(N, *noise_shape(S)); the result is a whole picture of which only the hidden part is used. Generative in-fillers are
given the visible part alone. Blur is not: like the method it comes from (Fong and Vedaldi 2017) it smooths the whole
image, hidden pixels included.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.methods.infilling.fitting import shown_to_net
from restudy.methods.infilling.nets import LATENT, ConditionalVae, Generator


class Infiller(Protocol):
    """`static`: the picture depends on neither mask nor noise, so it can be made once for each image."""

    @property
    def static(self) -> bool:
        """See above."""
        ...

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """Shape of the noise for one image of side `size`."""
        ...

    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Pictures (N, 1, S, S)."""
        ...


@dataclass(frozen=True)
class Constant:
    """One grey value, e.g. the mean over the training set (0 after normalisation), or black."""

    value: float
    static: bool = True

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """No noise."""
        return (0,)

    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Pictures of one grey."""
        return torch.full_like(images, self.value)


@dataclass(frozen=True)
class Blur:
    """Gaussian blur of the whole image; `sigma` in pixels, borders reflected."""

    sigma: float
    static: bool = True

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """No noise."""
        return (0,)

    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Smoothed images."""
        reach = min(int(3 * self.sigma + 0.5), images.shape[-1] - 1)
        offset = torch.arange(-reach, reach + 1, dtype=images.dtype, device=images.device)
        kernel = torch.exp(-0.5 * (offset / self.sigma) ** 2)
        kernel = kernel / kernel.sum()
        padded = F.pad(images, (reach,) * 4, mode="reflect")
        rows = F.conv2d(padded, kernel[None, None, :, None])
        return F.conv2d(rows, kernel[None, None, None, :])


@dataclass(frozen=True)
class RandomColour:
    """One uniform grey for each picture plus pixel noise of standard deviation `spread`, cut to [0, 1]."""

    spread: float = 0.2
    static: bool = False

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """One number for the grey and one for each pixel."""
        return (1 + size * size,)

    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Noisy pictures."""
        grey = torch.special.ndtr(noise[:, :1])
        pictures: Tensor = (grey + self.spread * noise[:, 1:]).clamp(0, 1).view_as(images)
        return pictures


@dataclass(frozen=True)
class Local:
    """Mean of the visible pixels in a square window (odd side), 0 where there is none."""

    window: int
    static: bool = False

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """No noise."""
        return (0,)

    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Smoothed visible parts."""
        visible = (hidden <= 0).to(images.dtype)
        return self._sum(torch.where(hidden > 0, 0.0, images)) / self._sum(visible).clamp(min=1.0)

    def _sum(self, pictures: Tensor) -> Tensor:
        return F.avg_pool2d(pictures, self.window, stride=1, padding=self.window // 2, divisor_override=1)


@dataclass(frozen=True)
class Generative:
    """A conditional VAE or GAN generator: paints from the visible part, the mask and noise."""

    net: ConditionalVae | Generator
    static: bool = False

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """A latent of 8 channels at a quarter of the size."""
        return (LATENT, size // 4, size // 4)

    @torch.no_grad()
    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Painted scenes."""
        painted: Tensor = self.net(shown_to_net(images, hidden), noise)
        return painted


@dataclass(frozen=True)
class Regression:
    """A painter without noise: one answer for each hole."""

    net: Generator
    static: bool = False

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """No noise."""
        return (0,)

    @torch.no_grad()
    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """Painted scenes."""
        latent = images.new_zeros(len(images), LATENT, images.shape[-1] // 4, images.shape[-1] // 4)
        painted: Tensor = self.net(shown_to_net(images, hidden), latent)
        return painted


@dataclass(frozen=True)
class Known:
    """Pictures that are known beforehand, (N, 1, S, S): the same scenes without their objects, for a judge."""

    pictures: Tensor
    static: bool = True

    def noise_shape(self, size: int) -> tuple[int, ...]:
        """No noise."""
        return (0,)

    def __call__(self, images: Tensor, hidden: Tensor, noise: Tensor) -> Tensor:
        """The known pictures; `images` must be those that they belong to, in order."""
        return self.pictures


def composite(images: Tensor, pictures: Tensor, mask: Tensor) -> Tensor:
    """phi(x, z) = (1 - z) x + z x^."""
    return images + mask * (pictures - images)

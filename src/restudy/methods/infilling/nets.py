"""Networks of the generative in-fillers: small convolutions that work at a quarter of the canvas."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LATENT = 8


class Surroundings(nn.Module):
    """What is visible: (N, 2, S, S), scene with the hidden part set to 0 and the mask, to features at S/2 and S/4.

    The third convolution is dilated, so that a place sees over a hole of about a third of a 28-pixel canvas.
    """

    def __init__(self, channels: int, inputs: int = 2) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, channels, 5, stride=2, padding=2)
        self.second = nn.Conv2d(channels, 2 * channels, 3, stride=2, padding=1)
        self.third = nn.Conv2d(2 * channels, 2 * channels, 3, padding=2, dilation=2)

    def forward(self, shown: Tensor) -> tuple[Tensor, Tensor]:
        """Features (N, channels, S/2, S/2) and (N, 2 * channels, S/4, S/4)."""
        fine = F.leaky_relu(self.first(shown), 0.1)
        coarse = F.leaky_relu(self.second(fine), 0.1)
        return fine, coarse + F.leaky_relu(self.third(coarse), 0.1)


class Painter(nn.Module):
    """Surroundings' features and a latent (N, 8, S/4, S/4) to a whole scene (N, 1, S, S) in [0, 1]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.join = nn.Conv2d(2 * channels + LATENT, 2 * channels, 3, padding=1)
        self.middle = nn.Conv2d(2 * channels, 4 * channels, 3, padding=1)
        self.last = nn.Conv2d(2 * channels, 4, 3, padding=1)

    def forward(self, fine: Tensor, coarse: Tensor, latent: Tensor) -> Tensor:
        """Paint; sub-pixel convolutions double the resolution twice."""
        found = F.leaky_relu(self.join(torch.cat([coarse, latent], 1)), 0.1)
        found = F.leaky_relu(F.pixel_shuffle(self.middle(found), 2), 0.1)
        found = F.pixel_shuffle(self.last(torch.cat([found, fine], 1)), 2)
        return torch.sigmoid(found)


class ConditionalVae(nn.Module):
    """p(x | z, surroundings) p(z | surroundings), with q(z | whole scene, surroundings) for training.

    Sohn, Lee, Yan 2015. z has 8 channels at a quarter of the canvas, normal with diagonal covariance.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.surroundings = Surroundings(channels)
        self.whole = Surroundings(channels, inputs=3)
        self.prior = nn.Conv2d(2 * channels, 2 * LATENT, 1)
        self.posterior = nn.Conv2d(2 * channels, 2 * LATENT, 1)
        self.painter = Painter(channels)

    def forward(self, shown: Tensor, normal: Tensor) -> Tensor:
        """A scene (N, 1, S, S) with z drawn from the prior; `normal` (N, 8, S/4, S/4) is standard normal noise."""
        fine, coarse = self.surroundings(shown)
        mean, log_scale = self.prior(coarse).chunk(2, 1)
        painted: Tensor = self.painter(fine, coarse, mean + log_scale.clamp(-5, 2).exp() * normal)
        return painted


class Generator(nn.Module):
    """Paints a scene from its surroundings and noise."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.surroundings = Surroundings(channels)
        self.painter = Painter(channels)

    def forward(self, shown: Tensor, normal: Tensor) -> Tensor:
        """A scene (N, 1, S, S); `normal` (N, 8, S/4, S/4) is standard normal noise."""
        fine, coarse = self.surroundings(shown)
        painted: Tensor = self.painter(fine, coarse, normal)
        return painted


class PatchDiscriminator(nn.Module):
    """Scene and mask (N, 2, S, S) to a logit for each of (S/4)^2 overlapping patches (Isola and others 2017)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(2, channels, 4, stride=2, padding=1), nn.LeakyReLU(0.2)),
            *(nn.Conv2d(channels, 2 * channels, 4, stride=2, padding=1), nn.LeakyReLU(0.2)),
            nn.Conv2d(2 * channels, 1, 3, padding=1),
        )

    def forward(self, scene: Tensor, hidden: Tensor) -> Tensor:
        """Logits (N, 1, S/4, S/4), high where a patch looks real."""
        logits: Tensor = self.body(torch.cat([scene, hidden], 1))
        return logits

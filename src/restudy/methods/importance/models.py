"""Autoencoders of one or more stochastic layers, Gaussian latents, Bernoulli pixels (Burda et al. 2016, section 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from restudy.errors import ConfigError

HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)
Noise = Sequence[Tensor]
"""One standard normal tensor (k, B, units) for each stochastic layer, from the pixels upwards."""


def normal_log_density(h: Tensor, mean: Tensor, log_std: Tensor) -> Tensor:
    """log N(h; mean, exp(log_std)^2) summed over the last axis, in nats."""
    return -(0.5 * ((h - mean) * (-log_std).exp()) ** 2 + log_std + HALF_LOG_2PI).sum(-1)


class GaussianLayer(nn.Module):
    """Two tanh layers, then mean and log standard deviation: sigma is the exponential of a linear function."""

    def __init__(self, inputs: int, hidden: int, units: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.mean, self.log_std = nn.Linear(hidden, units), nn.Linear(hidden, units)

    def forward(self, below: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation (..., units) of an input (..., inputs)."""
        features = self.body(below)
        return self.mean(features), self.log_std(features)


class DeepGaussianAutoencoder(nn.Module):
    """q(h1|x) q(h2|h1) ... and p(h_L) ... p(h1|h2) p(x|h1); all conditionals are small tanh networks.

    Args:
        pixels: number of binary inputs.
        units: units of the stochastic layers from the pixels upwards; the paper has (50,) and (100, 50).
        hidden: widths of the two deterministic layers beside each; the paper has (200,) and (200, 100).
        pixel_means: share of ones of each training pixel (pixels,); the output bias starts at its logit.

    Raises:
        ConfigError: no stochastic layer, or not one width for each.
    """

    def __init__(
        self, pixels: int, units: Sequence[int], hidden: Sequence[int], pixel_means: Tensor | None = None
    ) -> None:
        super().__init__()
        if not units or len(units) != len(hidden):
            raise ConfigError(f"units {list(units)}, hidden {list(hidden)}", remedy="give one width for each layer")
        self.units = tuple(units)
        below = (pixels, *units[:-1])
        self.encoder = nn.ModuleList(GaussianLayer(*sizes) for sizes in zip(below, hidden, units, strict=True))
        self.decoder = nn.ModuleList(
            GaussianLayer(units[i + 1], hidden[i + 1], units[i]) for i in range(len(units) - 1)
        )
        width = hidden[0]
        self.pixels = nn.Sequential(
            nn.Linear(units[0], width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, pixels)
        )
        self._initialise(pixel_means)

    def _initialise(self, pixel_means: Tensor | None) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        last = self.pixels[-1]
        if pixel_means is not None and isinstance(last, nn.Linear):
            with torch.no_grad():
                last.bias.copy_(torch.logit(pixel_means.clamp(0.001, 0.999)))

    def encoder_parameters(self) -> list[nn.Parameter]:
        """The parameters of q."""
        return list(self.encoder.parameters())

    def decoder_parameters(self) -> list[nn.Parameter]:
        """The parameters of p."""
        return [*self.decoder.parameters(), *self.pixels.parameters()]

    def draw_noise(self, k: int, images: int, generator: torch.Generator) -> list[Tensor]:
        """Standard normal noise for k samples of so many images, drawn on the generator's device."""
        like = next(self.parameters())
        return [torch.randn(k, images, n, generator=generator, dtype=like.dtype).to(like.device) for n in self.units]

    def log_weights(self, x: Tensor, noise: Noise, *, path_only: bool = False) -> Tensor:
        """log w_i = log p(x, h_i) - log q(h_i | x) at h_i made from x and the noise, (k, B) in nats.

        Args:
            x: binary images (B, pixels).
            noise: see `Noise`; gradients pass through the samples to the parameters of q.
            path_only: the parameters of the density log q are held fixed, so its gradient runs through the samples
                alone (what the estimators STL and DReG need); the value is the same.
        """
        latents, log_q = self.encode(x, noise, path_only=path_only)
        return self.log_joint(x, latents) - log_q

    def encode(self, x: Tensor, noise: Noise, *, path_only: bool = False) -> tuple[list[Tensor], Tensor]:
        """Samples (k, B, units) of every layer and their log q, (k, B)."""
        below, latents = x, []
        log_q = x.new_zeros(())
        for layer, draws in zip(self.encoder, noise, strict=True):
            mean, log_std = layer(below)
            h = mean + log_std.exp() * draws
            if path_only:
                fixed = {name: parameter.detach() for name, parameter in layer.named_parameters()}
                log_q = log_q + normal_log_density(h, *functional_call(layer, fixed, (below,)))
            else:
                # At its own sample the density depends on the noise and on sigma alone.
                log_q = log_q - (0.5 * draws**2 + log_std + HALF_LOG_2PI).sum(-1)
            latents.append(h)
            below = h
        return latents, log_q

    def log_joint(self, x: Tensor, latents: Sequence[Tensor]) -> Tensor:
        """log p(x, h) for samples (k, B, units) of every layer, (k, B)."""
        top = latents[-1]
        total = -(0.5 * top**2 + HALF_LOG_2PI).sum(-1)
        for i, layer in enumerate(self.decoder):
            total = total + normal_log_density(latents[i], *layer(latents[i + 1]))
        logits = self.pixels(latents[0])
        return total - F.binary_cross_entropy_with_logits(logits, x.expand_as(logits), reduction="none").sum(-1)

    @torch.no_grad()
    def generate(self, images: int, generator: torch.Generator) -> Tensor:
        """Probabilities of the pixels of images drawn from p, (images, pixels)."""
        draws = [noise[0] for noise in self.draw_noise(1, images, generator)]
        h = draws[-1]
        for layer, noise in zip(reversed(self.decoder), reversed(draws[:-1]), strict=True):
            mean, log_std = layer(h)
            h = mean + log_std.exp() * noise
        probabilities: Tensor = self.pixels(h).sigmoid()
        return probabilities

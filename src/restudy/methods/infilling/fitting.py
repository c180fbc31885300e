"""Training of in-fillers: a conditional VAE, a conditional GAN with a patch discriminator, a plain regression."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from restudy.errors import ConfigError, RestudyError
from restudy.methods.infilling.holes import random_holes
from restudy.methods.infilling.nets import LATENT, ConditionalVae, Generator, PatchDiscriminator
from restudy.methods.models import derive_seed

N = TypeVar("N", bound=nn.Module)
PIXEL_SCALE = 0.1
"""Standard deviation of a pixel under the VAE's decoder, in units of the range [0, 1]."""
ADVERSARIAL = 0.02
"""Weight of the adversarial term beside the mean absolute error."""


def fit_vae(scenes: Tensor, *, channels: int, steps: int, batch_size: int, learning_rate: float, seed: int) -> Losses:
    """Train a conditional VAE on scenes (N, 1, S, S) in [0, 1]; the evidence bound of the whole scene per pixel.

    Adam with a step size that falls to 0 along a half cosine. `seed` determines weights, order, holes and noise.

    Raises:
        ConfigError: no scene or no step. RestudyError: the loss is not finite.
    """
    _check(scenes, steps, batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "vae"))
        net = _placed(ConditionalVae(channels), scenes)
    optimizer = torch.optim.Adam(net.parameters(), learning_rate, fused=True)
    losses = []
    for step, (real, hidden, generator) in enumerate(_batches(scenes, steps, batch_size, seed)):
        _cosine(optimizer, learning_rate, step, steps)
        shown = shown_to_net(real, hidden)
        fine, coarse = net.surroundings(shown)
        mean, log_scale = net.prior(coarse).chunk(2, 1)
        _, whole = net.whole(torch.cat([shown, real], 1))
        offset, log_width = net.posterior(whole).chunk(2, 1)
        log_scale, log_width = log_scale.clamp(-5, 2), log_width.clamp(-5, 2)
        centre = mean + offset
        normal = torch.randn(offset.shape, generator=generator).to(real.device)
        painted = net.painter(fine, coarse, centre + log_width.exp() * normal)
        error = ((painted - real) / PIXEL_SCALE).square().sum() / 2
        loss = (error + _divergence(offset, log_width, log_scale)) / real.numel()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        _refuse_divergence("VAE", losses)
    return net.eval().requires_grad_(False), {"vae": losses}


def fit_gan(scenes: Tensor, *, channels: int, steps: int, batch_size: int, learning_rate: float, seed: int) -> Losses:
    """Train a generator against a patch discriminator (hinge loss) beside its mean absolute error.

    The generator is judged on the completed scene, visible part kept; the discriminator sees the mask. Arguments
    and errors as in `fit_vae`.
    """
    _check(scenes, steps, batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "gan"))
        net = _placed(Generator(channels), scenes)
        critic = _placed(PatchDiscriminator(channels), scenes)
    first = torch.optim.Adam(net.parameters(), learning_rate, betas=(0.5, 0.99), fused=True)
    second = torch.optim.Adam(critic.parameters(), learning_rate, betas=(0.5, 0.99), fused=True)
    losses: dict[str, list[float]] = {"generator": [], "discriminator": []}
    for step, (real, hidden, generator) in enumerate(_batches(scenes, steps, batch_size, seed)):
        for optimizer in (first, second):
            _cosine(optimizer, learning_rate, step, steps)
        normal = _normal(real, generator)
        painted = net(shown_to_net(real, hidden), normal)
        completed = real + hidden * (painted - real)
        verdict = torch.cat([critic(real, hidden), critic(completed.detach(), hidden)])
        told, untold = verdict.chunk(2)
        against = F.relu(1 - told).mean() + F.relu(1 + untold).mean()
        second.zero_grad(set_to_none=True)
        against.backward()  # type: ignore[no-untyped-call]
        second.step()
        critic.requires_grad_(False)
        loss = (painted - real).abs().mean() - ADVERSARIAL * critic(completed, hidden).mean()
        critic.requires_grad_(True)
        first.zero_grad(set_to_none=True)
        loss.backward()
        first.step()
        losses["generator"].append(float(loss.detach()))
        losses["discriminator"].append(float(against.detach()))
        _refuse_divergence("GAN", losses["generator"])
    return net.eval().requires_grad_(False), losses


def fit_regression(
    scenes: Tensor, *, channels: int, steps: int, batch_size: int, learning_rate: float, seed: int
) -> Losses:
    """Train the painter alone, by the mean absolute error and without noise: one answer for each hole.

    Weights, order and holes differ from those of the other two, so that it can judge masks made with them. Arguments
    and errors as in `fit_vae`.
    """
    _check(scenes, steps, batch_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "regression"))
        net = _placed(Generator(channels), scenes)
    optimizer = torch.optim.Adam(net.parameters(), learning_rate, fused=True)
    losses = []
    for step, (real, hidden, _) in enumerate(_batches(scenes, steps, batch_size, derive_seed(seed, "regression"))):
        _cosine(optimizer, learning_rate, step, steps)
        size = real.shape[-1] // 4
        painted = net(shown_to_net(real, hidden), real.new_zeros(len(real), LATENT, size, size))
        loss = (painted - real).abs().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
        _refuse_divergence("regression", losses)
    return net.eval().requires_grad_(False), {"regression": losses}


Losses = tuple[ConditionalVae | Generator, dict[str, list[float]]]


def _divergence(offset: Tensor, log_width: Tensor, log_scale: Tensor) -> Tensor:
    """KL divergence of N(m + offset, exp(log_width)^2) from N(m, exp(log_scale)^2), nats, added up."""
    spread = ((2 * log_width).exp() + offset.square()) / (2 * (2 * log_scale).exp())
    return (log_scale - log_width - 0.5 + spread).sum()


def shown_to_net(scenes: Tensor, hidden: Tensor) -> Tensor:
    """What a generative in-filler is given: the visible part, 0 elsewhere, and the mask, (N, 2, S, S)."""
    return torch.cat([torch.where(hidden > 0, 0.0, scenes), hidden.to(scenes.dtype)], 1)


def _placed(net: N, scenes: Tensor) -> N:
    """The net on the scenes' device; the last-channel layout is half as fast again on a CPU."""
    net.to(scenes.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    return net


def _normal(scenes: Tensor, generator: torch.Generator) -> Tensor:
    size = scenes.shape[-1] // 4
    return torch.randn(len(scenes), LATENT, size, size, generator=generator).to(scenes.device)


def _batches(
    scenes: Tensor, steps: int, batch_size: int, seed: int
) -> Iterator[tuple[Tensor, Tensor, torch.Generator]]:
    """Scenes and holes of every step, and the generator for its noise; both in-fillers of a seed get the same."""
    for step in range(steps):
        generator = torch.Generator().manual_seed(derive_seed(seed, "in-filler step", step))
        chosen = torch.randint(len(scenes), (batch_size,), generator=generator)
        holes = random_holes(batch_size, scenes.shape[-1], generator)
        yield scenes[chosen.to(scenes.device)], holes.to(scenes.device), generator


def _cosine(optimizer: torch.optim.Optimizer, learning_rate: float, step: int, steps: int) -> None:
    for group in optimizer.param_groups:
        group["lr"] = learning_rate * 0.5 * (1 + math.cos(math.pi * step / steps))


def _check(scenes: Tensor, steps: int, batch_size: int) -> None:
    if scenes.dim() != 4 or not len(scenes) or scenes.shape[-1] % 4:
        raise ConfigError(f"scenes of shape {tuple(scenes.shape)}", remedy="give (N, 1, S, S) with S a multiple of 4")
    if steps < 1 or batch_size < 1:
        raise ConfigError(f"{steps} steps of {batch_size} scenes", remedy="give at least one of each")


def _refuse_divergence(name: str, losses: list[float]) -> None:
    if not math.isfinite(losses[-1]):
        raise RestudyError(f"the {name} in-filler diverged at step {len(losses)}", remedy="lower its learning rate")

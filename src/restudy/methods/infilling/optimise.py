"""Masks by gradient descent: FIDO's Bernoulli masks and the single deterministic mask of Fong and Vedaldi 2017 (BBMP).

Images and penalties are optimised together: the state of Adam is kept per entry and an image's loss holds no other
image, so a batch gives what a loop over images gives, up to the rounding of the convolutions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from restudy.errors import ConfigError
from restudy.methods.infilling.concrete import concrete_sample, pixel_logits, pixel_probabilities, upsampled
from restudy.methods.infilling.fillers import Infiller
from restudy.methods.infilling.noise import Noise
from restudy.methods.infilling.objectives import Objective, check_objective, objective_score, penalised_area, saliency

TEMPERATURE = 0.1
RAMP = 0.1
"""Share of the iterations over which the penalty grows from 0 to its weight (30 of 300 in the released code)."""


@dataclass(frozen=True)
class Settings:
    """How masks are optimised.

    `grid`: side of the coarse grid. `iterations` of Adam at `learning_rate`, which falls linearly to 0; the released
    code has 300 at .05. `samples`: masks drawn in an iteration (BBMP has one mask and draws none).
    """

    grid: int = 14
    iterations: int = 300
    learning_rate: float = 0.05
    samples: int = 8


@dataclass(frozen=True)
class Masks:
    """The result for L penalties and N images.

    `grid`: (L, N, 1, g, g), probability (FIDO) or extent (BBMP) of hiding. `objective` says which way it is read.
    `trace`: (L, iterations), mean over the images of score plus full penalty, before each step.
    """

    grid: Tensor
    objective: Objective
    trace: Tensor

    def theta(self, size: int) -> Tensor:
        """Hiding of the pixels, (L, N, 1, size, size)."""
        return upsampled(self.grid.flatten(0, 1), size).view(*self.grid.shape[:3], size, size)

    def saliency(self, size: int) -> Tensor:
        """High where a pixel matters, (L, N, 1, size, size)."""
        return saliency(self.theta(size), self.objective)


def fido(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    infiller: Infiller,
    penalties: Sequence[float],
    seeds: Sequence[int],
    *,
    objective: Objective = "sdr",
    settings: Settings = Settings(),  # noqa: B008
) -> Masks:
    """Optimise Bernoulli drop probabilities (Chang et al. 2019, section 3).

    Args:
        model: maps (N, 1, S, S) to logits; in evaluation mode. images: (N, 1, S, S) in [0, 1]. target: (N,) int64.
        infiller: sees the rounded mask, gets no gradient. penalties: lambda per pixel, one for each of L runs.
        seeds: one for each image; all penalties of an image share its noise.
        objective: `sdr`, `ssr` or `joint`. settings: see there.

    Raises:
        ConfigError: an unknown objective, lengths that do not fit, or `joint` with an in-filler that looks at the mask.
    """
    check_objective(objective)
    if objective == "joint" and not infiller.static:
        raise ConfigError("the joint objective needs an in-filler that is static", remedy="use a constant or blur")
    size, count, runs = _sizes(images, target, penalties, seeds)
    noise = Noise(seeds, images.device)
    logits = torch.zeros(runs, count, 1, settings.grid, settings.grid, device=images.device, requires_grad=True)
    weight = torch.tensor(penalties, device=images.device).repeat_interleave(count)
    m = settings.samples
    shown, classes = (_repeated(part, runs, m) for part in (images, target))
    still = infiller(images, torch.zeros_like(images), noise.normal(0)) if infiller.static else None
    fixed = _repeated(still, runs, m) if still is not None else None

    def loss() -> tuple[Tensor, Tensor]:
        theta = pixel_probabilities(logits.flatten(0, 1), size)
        uniform = noise.uniform(m, 1, size, size).repeat(runs, 1, 1, 1, 1)
        mask = concrete_sample(pixel_logits(theta)[:, None], uniform, TEMPERATURE).flatten(0, 1)
        if fixed is None:
            normal = noise.normal(m, *infiller.noise_shape(size)).flatten(0, 1)
            pictures = _filled(infiller, shown, mask, normal, runs)
        else:
            pictures = fixed
        score = objective_score(model, shown, pictures, mask, classes, objective).view(-1, m).mean(1)
        return score, weight * penalised_area(theta, objective)

    trace = _descend(logits, loss, settings, (runs, count))
    return Masks(torch.sigmoid(logits.detach()), objective, trace)


def bbmp(
    model: nn.Module,
    images: Tensor,
    target: Tensor,
    infiller: Infiller,
    penalties: Sequence[float],
    seeds: Sequence[int],
    *,
    settings: Settings = Settings(),  # noqa: B008
) -> Masks:
    """Optimise one deterministic mask for each image, deletion objective (Fong and Vedaldi 2017).

    The extent of hiding starts at 0, is cut to [0, 1] after each step, and mixes as it is; the in-filler sees it
    rounded. No total variation term, no jitter, as in the comparison of Chang et al. Arguments as in `fido`.
    """
    size, count, runs = _sizes(images, target, penalties, seeds)
    noise = Noise(seeds, images.device)
    extent = torch.zeros(runs, count, 1, settings.grid, settings.grid, device=images.device, requires_grad=True)
    weight = torch.tensor(penalties, device=images.device).repeat_interleave(count)
    shown, classes = (_repeated(part, runs, 1) for part in (images, target))
    still = infiller(images, torch.zeros_like(images), noise.normal(0)) if infiller.static else None
    fixed = _repeated(still, runs, 1) if still is not None else None

    def loss() -> tuple[Tensor, Tensor]:
        mask = upsampled(extent.flatten(0, 1), size)
        pictures = fixed
        if pictures is None:
            pictures = _filled(infiller, shown, mask, noise.normal(*infiller.noise_shape(size)), runs)
        return objective_score(model, shown, pictures, mask, classes, "sdr"), weight * mask.flatten(1).sum(1)

    trace = _descend(extent, loss, settings, (runs, count), ramp=0.0, clamp=True)
    return Masks(extent.detach().clone(), "sdr", trace)


def _descend(
    leaf: Tensor,
    loss: Callable[[], tuple[Tensor, Tensor]],
    settings: Settings,
    shape: tuple[int, int],
    *,
    ramp: float = RAMP,
    clamp: bool = False,
) -> Tensor:
    optimizer = torch.optim.Adam([leaf], settings.learning_rate)
    trace = []
    for step in range(settings.iterations):
        for group in optimizer.param_groups:
            group["lr"] = settings.learning_rate * (1 - step / settings.iterations)
        score, penalty = loss()
        share = min(1.0, step / (ramp * settings.iterations)) if ramp else 1.0
        trace.append((score + penalty).detach().view(shape).mean(1))
        optimizer.zero_grad(set_to_none=True)
        (score + share * penalty).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if clamp:
            with torch.no_grad():
                leaf.clamp_(0, 1)
    return torch.stack(trace, 1)


def _filled(infiller: Infiller, shown: Tensor, mask: Tensor, normal: Tensor, runs: int) -> Tensor:
    """Pictures for rounded masks; all penalties of an image get the same noise, and no gradient passes."""
    rounded = (mask.detach() > 0.5).to(shown.dtype)
    return infiller(shown, rounded, normal.repeat(runs, *[1] * (normal.dim() - 1))).detach()


def _repeated(part: Tensor, runs: int, samples: int) -> Tensor:
    """(N, ...) to (runs * N * samples, ...): runs outermost, samples innermost."""
    return part.repeat_interleave(samples, 0).repeat(runs, *[1] * (part.dim() - 1))


def _sizes(images: Tensor, target: Tensor, penalties: Sequence[float], seeds: Sequence[int]) -> tuple[int, int, int]:
    if images.dim() != 4 or target.shape != (len(images),) or len(seeds) != len(images) or not penalties:
        raise ConfigError(
            f"{tuple(images.shape)}, target {tuple(target.shape)}, {len(seeds)} seeds, penalties {list(penalties)}",
            where="masks",
            remedy="give images (N, 1, S, S), N classes, N seeds and at least one penalty",
        )
    return images.shape[-1], len(images), len(penalties)

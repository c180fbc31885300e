"""SmoothGrad, SmoothGrad of integrated gradients, VarGrad: attributions of noisy copies of the input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from restudy.errors import ConfigError
from restudy.methods.attribution.gradients import PATH_OPTIONS, path_attribution
from restudy.methods.attribution.passes import Problem
from restudy.methods.attribution.registry import RANDOMNESS, Method, Option, generator_of, register


def noise_draws(inputs: Tensor, options: Mapping[str, Any]) -> Iterator[Tensor]:
    """Yield `samples` draws of noise (N, C, H, W), dtype and device of the inputs, one at a time.

    Standard deviation of an image: `stdev`, or else `spread` times its range max - min (Smilkov et al. 2017).
    Drawn in float32 on the CPU, so that neither device, dtype nor batch size changes the numbers.
    `noise` (samples, N, C, H, W) replaces the draws.
    """
    given = options["noise"]
    if given is not None:
        if given.shape != (options["samples"], *inputs.shape):
            raise ConfigError(
                f"noise has shape {tuple(given.shape)}",
                remedy=f"expected {(options['samples'], *inputs.shape)}",
            )
        for draw in given:
            yield draw.to(inputs)
        return
    if options["stdev"] is not None:
        scale = torch.full_like(inputs[:, :1, :1, :1], options["stdev"])
    else:
        scale = options["spread"] * (inputs.amax((1, 2, 3), keepdim=True) - inputs.amin((1, 2, 3), keepdim=True))
    generator = generator_of(options)
    for _ in range(options["samples"]):
        yield torch.randn(inputs.shape, generator=generator).to(inputs) * scale


def gradient_moments(problem: Problem, options: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """Return mean and population variance over noisy copies of the gradient, both (N, C, H, W)."""

    def compute() -> tuple[Tensor, Tensor]:
        inputs, draws = problem.inputs, noise_draws(problem.inputs, options)
        mean, squares, count = torch.zeros_like(inputs), torch.zeros_like(inputs), 0
        group = max(1, problem.batch_size // len(inputs))
        while part := list(islice(draws, group)):
            points = (inputs + torch.stack(part)).flatten(0, 1)
            grads = problem.gradients(points, problem.target.repeat(len(part))).view(len(part), *inputs.shape)
            # Chan, Golub, LeVeque 1979: joins the moments of two groups without cancellation.
            part_mean = grads.mean(0)
            delta, total = part_mean - mean, count + len(part)
            squares += (grads - part_mean).square().sum(0) + delta.square() * (count * len(part) / total)
            mean += delta * (len(part) / total)
            count = total
        return mean, squares / count

    result: tuple[Tensor, Tensor] = problem.remember(_key(options), compute)
    return result


def smooth_path_attribution(problem: Problem, options: Mapping[str, Any]) -> Tensor:
    """Return the mean over noisy copies of integrated gradients, (N, C, H, W)."""
    total = torch.zeros_like(problem.inputs)
    for noise in noise_draws(problem.inputs, options):
        total += path_attribution(problem, problem.inputs + noise, options)
    return total.div(options["samples"])


def _key(options: Mapping[str, Any]) -> tuple[object, ...]:
    shared = options["noise"] if options["noise"] is not None else options["generator"]
    # A generator moves on with each use, so its draws are never shared.
    unshared = object() if isinstance(shared, torch.Generator) else id(shared)
    return ("noisy", options["samples"], options["spread"], options["stdev"], options["seed"], unshared)


def _noise_options(samples: int) -> tuple[Option, ...]:
    return (
        Option("samples", samples, (int,), "noisy copies of each input", minimum=1),
        Option("spread", 0.15, (float, int), "standard deviation / (max - min of the image)", minimum=0),
        Option("stdev", None, (float, int, type(None)), "standard deviation itself, instead of spread", minimum=0),
        Option("noise", None, (Tensor, type(None)), "noise to use, (samples, N, C, H, W)"),
        *RANDOMNESS,
    )


register(
    Method(
        "smoothgrad",
        "mean of the gradient over noisy copies of the input",
        "Smilkov et al. 2017, arXiv:1706.03825, section 3; spread .15 and 50 copies as Adebayo et al. 2018",
        lambda problem, options: gradient_moments(problem, options)[0],
        options=_noise_options(50),
        random=True,
        passes=lambda options: float(options["samples"]),
    )
)
register(
    Method(
        "smoothgrad_ig",
        "mean of integrated gradients over noisy copies of the input",
        "Adebayo et al. 2018, arXiv:1810.03292, section 2.1 (IG-SG)",
        smooth_path_attribution,
        options=(*_noise_options(25), *PATH_OPTIONS),
        random=True,
        passes=lambda options: float(options["samples"] * options["steps"]),
    )
)
register(
    Method(
        "vargrad",
        "variance of the gradient over noisy copies of the input",
        "Adebayo et al. 2018, Local explanation methods ..., arXiv:1810.03307, section 2; 25 copies",
        lambda problem, options: gradient_moments(problem, options)[1],
        options=_noise_options(25),
        signed=False,
        random=True,
        passes=lambda options: float(options["samples"]),
    )
)

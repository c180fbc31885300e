"""Control maps that no model enters: iid noise, and the edges of the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from restudy.methods.attribution.passes import Problem
from restudy.methods.attribution.registry import RANDOMNESS, Method, generator_of, register


def noise_map(problem: Problem, options: Mapping[str, Any]) -> Tensor:
    """Return independent standard normal values, (N, C, H, W), drawn on the CPU in float32."""
    return torch.randn(problem.inputs.shape, generator=generator_of(options)).to(problem.inputs)


def sobel_magnitude(images: Tensor) -> Tensor:
    """Return the Sobel magnitude of each channel, (N, C, H, W).

    Root of the mean square of the two derivatives, kernels [1, 2, 1]/4 by [1, 0, -1], border repeated: the
    same values as `skimage.filters.sobel`.
    """
    smooth = images.new_tensor([1.0, 2.0, 1.0]) / 4
    slope = images.new_tensor([1.0, 0.0, -1.0])
    kernels = torch.stack([torch.outer(slope, smooth), torch.outer(smooth, slope)])[:, None]
    flat = F.pad(images.flatten(0, 1)[:, None], (1, 1, 1, 1), mode="replicate")
    derivatives = F.conv2d(flat, kernels)
    return derivatives.square().mean(1).sqrt().view(images.shape)


register(
    Method(
        "noise",
        "control: iid normal values",
        "control of ours; see Binder et al. 2023, arXiv:2211.12486, section 4",
        noise_map,
        options=RANDOMNESS,
        input_only=True,
        random=True,
        passes=lambda options: 0.0,
    )
)
register(
    Method(
        "edges",
        "control: Sobel magnitude of the input",
        "Adebayo et al. 2018, arXiv:1810.03292, figure 1 (edge detector)",
        lambda problem, options: sobel_magnitude(problem.inputs),
        signed=False,
        input_only=True,
        passes=lambda options: 0.0,
    )
)
